"""Repeated pruning and distillation of a model."""
