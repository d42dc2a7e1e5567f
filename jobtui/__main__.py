"""Entry of the program: `jobtui` and `python -m jobtui`."""

import sys

INTERRUPTED = 130


def main() -> int:
    """Run the command line; ctrl+c ends it quietly, also while it is still imported."""
    try:
        from jobtui.cli import main as run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
