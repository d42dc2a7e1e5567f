"""Entry of the program: `jobtui` and `python -m jobtui`."""

import sys

from jobtui.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
