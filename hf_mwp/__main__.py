"""Entry point of `python -m hf_mwp`, which is the same as `hf-mwp`."""

import sys

from .commands.main import main


if __name__ == "__main__":
    sys.exit(main())
