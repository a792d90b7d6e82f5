"""
`hf-mwp` in a process for which Accelerate takes the CPU for a GPU: it uses FSDP and DeepSpeed only on accelerators,
although both run on the CPU. Not a test.
"""

import sys

import torch
from accelerate import PartialState
from accelerate.utils import DistributedType

from hf_mwp.commands.main import main


def _prepare_backend(self, cpu=False, sagemaker_dp=False, backend=None):
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    self.device = torch.device("cpu")
    return "gloo", DistributedType.MULTI_GPU


if __name__ == "__main__":
    PartialState._prepare_backend = _prepare_backend
    sys.exit(main(sys.argv[1:]))
