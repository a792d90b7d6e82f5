"""Recipes: several commands that build on each other, each done once."""

from .recipe import Recipe, run_recipe
from .recipe_file import RecipeError, read_recipe
from .stage import Stage, StageResult


__all__ = ["Recipe", "RecipeError", "Stage", "StageResult", "read_recipe", "run_recipe"]
