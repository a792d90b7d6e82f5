"""From the trees that a solver finds to an answer."""

from .beams import read_beam


__all__ = ["read_beam"]
