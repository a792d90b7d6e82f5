"""Pruning and distillation in generations."""
