"""What a user asked for and cannot be done."""


class UsageError(ValueError):
    """
    Something that the user can put right; the command line reports it without a traceback.

    Args:
        message (`str`): What is wrong, and what to do about it.
    """
