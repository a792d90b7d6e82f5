"""Equations for problems with known answers, from solvers and language models."""
