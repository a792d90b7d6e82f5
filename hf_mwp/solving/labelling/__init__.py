"""Labellers: solvers and language models that propose equations for problems."""
