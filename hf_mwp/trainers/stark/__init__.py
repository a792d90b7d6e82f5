"""Distillation from sparse teachers (STARK)."""
