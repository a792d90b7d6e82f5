"""The error of everything that reads or computes an expression."""


class ExpressionError(ValueError):
    """
    An expression or number that cannot be read, built or evaluated.

    Args:
        message (`str`): Problem and remedy.
        position (`int`, *optional*): Where: 0-based character offset into the text that was read, or 0-based index
            into a token sequence.
        token (`str`, *optional*): The offending token. The message shows at most 40 of its characters, the attribute
            keeps all of them.

    Attributes `position`, `token` and `reason` (the message without place and token) hold the parts.
    """

    def __init__(self, message: str, position: int | None = None, token: str | None = None):
        self.reason = message
        self.position = position
        self.token = token
        if token is not None:
            shown = token if len(token) <= 40 else f"{token[:37]}..."
            message = f"{message} (token {shown!r})" if position is None else f"{message} (at {position}: {shown!r})"
        elif position is not None:
            message = f"{message} (at {position})"
        super().__init__(message)
