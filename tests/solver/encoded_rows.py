"""Rows of encoded problems, as collators get them."""


def rows_of(columns):
    """Turn columns into a list of rows."""
    rows = []
    for values in zip(*columns.values(), strict=True):
        rows.append(dict(zip(columns, values, strict=True)))
    return rows
