"""Linear layer for few rows in NumPy."""

import numpy as np


WIDTH = 64
"""Default number of columns of a block: four vector registers of 16 numbers."""

SMALL_PRODUCT = 100**3
"""Maximum number of multiplications of a product without copies."""

MIN_WIDTH = 16
"""Minimum number of columns of a block."""


class FewRowsLinear:
    """
    Linear layer for few rows, such as the trees of a beam or the tokens of a short text, with its matrix in blocks of
    columns.

    Before a large product, OpenBLAS copies the matrix to a layout that suits its registers. For a few rows, the copy
    takes several times as long as the product. Small products need no copy: a block makes one with a few rows, and is
    one piece of memory. More rows are multiplied in portions.

    Args:
        matrix (`np.ndarray` of shape `(in, out)`): Matrix. A transposed view is not copied.
        bias (`np.ndarray` of shape `(out,)`): Bias.
        width (`int`, *optional*, defaults to 64): Number of columns of a block, at most for a view. Narrow blocks make
            small products also of more rows.
    """

    def __init__(self, matrix: np.ndarray, bias: np.ndarray, width: int = WIDTH) -> None:
        self.bias = bias
        num_inputs, num_outputs = matrix.shape
        if matrix.flags.c_contiguous:
            # Fill the last block with columns of zeros.
            num_blocks = -(-num_outputs // width)
            self.blocks = np.zeros((num_blocks, num_inputs, width), np.float32)
            for number, block in enumerate(self.blocks):
                columns = matrix[:, number * width : (number + 1) * width]
                block[:, : columns.shape[1]] = columns
        else:
            width = block_width(num_outputs, width)
            self.blocks = matrix.reshape(num_inputs, num_outputs // width, width).transpose(1, 0, 2)
        self.max_rows = max(SMALL_PRODUCT // (num_inputs * width), 1)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Compute the outputs `(n, out)` of inputs `(n, in)`."""
        portions = []
        for start in range(0, len(x), self.max_rows):
            rows = x[start : start + self.max_rows]
            products = np.matmul(rows, self.blocks)
            portions.append(products.transpose(1, 0, 2).reshape(len(rows), -1))
        output = portions[0] if len(portions) == 1 else np.concatenate(portions)
        output = output[:, : len(self.bias)]
        output += self.bias
        return output


def block_width(num_outputs: int, limit: int) -> int:
    """Return the width of blocks that divide a number of columns: at most the limit but not narrow, or else all."""
    for width in range(limit, MIN_WIDTH - 1, -1):
        if num_outputs % width == 0:
            return width
    return num_outputs
