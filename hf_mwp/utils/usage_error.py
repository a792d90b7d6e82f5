"""Error for a user request that cannot be carried out."""


class UsageError(ValueError):
    """Error that the user can correct. Its message says how, and the command line prints it without a traceback."""


# End of the error message for a model or tokenizer whose classes are in Python files of its repository.
OWN_CODE = (
    "needs Python code from its repository, which is not executed. Load it in Python with `trust_remote_code=True` "
    "and pass the object, or choose a different one"
)


def not_a_solver(source: object, model_type: object) -> str:
    """Return the sentence on a folder or repository with another model than a solver."""
    return (
        f"{source} contains a model of type {model_type!r:.80}, not a solver (such as type 'mwp_solver'). If it is an "
        f"encoder, train a solver from it with `hf-mwp train --encoder {source}`."
    )
