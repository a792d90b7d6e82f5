"""Linear layer for few rows in NumPy."""

import numpy as np


WIDTH = 64
"""Number of columns of a block: four vector registers of 16 numbers."""

MIN_WIDTH = 16
"""Minimum number of columns of a block."""


class FewRowsLinear:
    """
    Linear layer for few rows, such as the trees of a beam, with its matrix in blocks of columns.

    Before a large product, OpenBLAS copies the matrix to a layout that suits its registers. For a few rows, the copy
    takes several times as long as the product. Small products, of at most 100^3 multiplications, need no copy:
    each block makes one, and is one piece of memory.

    Args:
        matrix (`np.ndarray` of shape `(in, out)`): Matrix. A transposed view is not copied.
        bias (`np.ndarray` of shape `(out,)`): Bias.
    """

    def __init__(self, matrix: np.ndarray, bias: np.ndarray) -> None:
        self.bias = bias
        num_inputs, num_outputs = matrix.shape
        if matrix.flags.c_contiguous:
            # Fill the last block with columns of zeros.
            width = WIDTH
            num_blocks = -(-num_outputs // width)
            padded = np.zeros((num_inputs, num_blocks * width), np.float32)
            padded[:, :num_outputs] = matrix
            blocks = padded.reshape(num_inputs, num_blocks, width).transpose(1, 0, 2)
            self.blocks = np.ascontiguousarray(blocks)
        else:
            width = block_width(num_outputs)
            self.blocks = matrix.reshape(num_inputs, num_outputs // width, width).transpose(1, 0, 2)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Compute the outputs `(n, out)` of inputs `(n, in)`."""
        products = np.matmul(x, self.blocks)
        output = products.transpose(1, 0, 2).reshape(len(x), -1)[:, : len(self.bias)]
        output += self.bias
        return output


def block_width(num_outputs: int) -> int:
    """Return the width of blocks that divide a number of columns: at most [`WIDTH`] but not narrow, or else all."""
    for width in range(WIDTH, MIN_WIDTH - 1, -1):
        if num_outputs % width == 0:
            return width
    return num_outputs
