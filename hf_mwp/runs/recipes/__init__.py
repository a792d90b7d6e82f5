"""Recipes: several commands that build on each other, each done once."""

from .recipe import Recipe, RecipeError, read_recipe
from .stage import Stage, StageResult


__all__ = ["Recipe", "RecipeError", "Stage", "StageResult", "read_recipe"]
