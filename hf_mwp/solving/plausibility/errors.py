"""Errors of re-rankers."""


class PlausibilityError(ValueError):
    """A re-ranker that cannot be read, fitted, or used for what it is asked to rank."""
