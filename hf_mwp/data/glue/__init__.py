"""Loader of GLUE tasks."""
