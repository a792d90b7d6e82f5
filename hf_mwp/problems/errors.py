"""The error of everything that reads a math word problem."""


class ProblemError(ValueError):
    """A math word problem that lacks what is asked of it, or has it in a form that cannot be read."""
