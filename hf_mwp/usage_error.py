"""Error for a request of the user that cannot be carried out."""


class UsageError(ValueError):
    """
    Something that the user can put right; the command line reports it without a traceback.

    Args:
        message (`str`): Problem and remedy.
    """


# What is said of a model or tokenizer whose classes are in its own Python files.
OWN_CODE = (
    "needs Python code of its own, which is not run: load it with `trust_remote_code=True` in Python and pass the "
    "object, or name another one"
)
