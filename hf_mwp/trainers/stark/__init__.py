"""Distillation from sparse teachers."""
