"""The error of a solver's folder that cannot be used as it is."""


class SolverFolderError(Exception):
    """
    A folder or repository that does not hold a whole solver: weights are missing or damaged, or belong to another
    model.

    It is no `ValueError`, `OSError`, `TypeError` or `RuntimeError`: `transformers.pipeline` takes these for a sign to
    try another class, and in the end buries them in a traceback.

    Args:
        message (`str`): Which folder and file, what is wrong with it, and what to do.
    """
