"""Check that the weights of a model are finite numbers."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from hf_mwp.utils.usage_error import UsageError


def check_finite(weights: Mapping[str, Tensor | np.ndarray], source: object, stored_as: str | None = None) -> None:
    """Raise `UsageError` if weights contain infinity or NaN. The message names the model `source`. `stored_as` is the
    type to which finite weights were converted, such as `"half precision"`."""
    for name, values in weights.items():
        tensor = torch.as_tensor(values)
        if not tensor.is_floating_point() or tensor.isfinite().all():
            continue
        if stored_as is not None:
            fault = f"the weights {name} are too large for {stored_as}, in which they are stored"
            raise UsageError(f"{source}: {fault}. Train the model again with a higher weight decay.")
        fault = f"the weights {name} contain infinity or NaN"
        remedy = "Use an earlier checkpoint, or train again with a lower learning rate"
        raise UsageError(f"{source}: {fault}. {remedy}.")
