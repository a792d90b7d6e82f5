"""Recipes: YAML files of stages (commands) that use each other's results; completed stages are reused."""

from .recipe import Recipe, RecipeError, read_recipe
from .running import run_recipe
from .stage import Stage, StageResult


__all__ = ["Recipe", "RecipeError", "Stage", "StageResult", "read_recipe", "run_recipe"]
