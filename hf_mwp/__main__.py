"""Entry point of `python -m hf_mwp`, which is the same as `hf-mwp`."""

import sys

from .cli.main import main


if __name__ == "__main__":
    sys.exit(main())
