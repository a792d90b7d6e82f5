"""Errors that the command line reports without a traceback."""


class CommandError(Exception):
    """
    Something that the user of a command can put right.

    Args:
        message (`str`): What is wrong, and what to do about it.
    """
