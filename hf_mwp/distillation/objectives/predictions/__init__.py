"""Objectives on predictions."""
