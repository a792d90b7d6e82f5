"""Distillation of one model into another."""
