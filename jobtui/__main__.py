"""Entry of the program: `jobtui` and `python -m jobtui`."""

import sys
from contextlib import suppress

INTERRUPTED = 130


def main() -> int:
    """Run the command line; ctrl+c ends it quietly, also while it is still imported."""
    try:
        if sys.argv[1:2] == ["completion"] and sys.argv[3:4] == ["--"] and sys.argv[4:]:
            with suppress(Exception):  # the rest of the program says what is wrong
                from jobtui.completion import offer  # each key waits for it, and needs nothing else

                return offer(sys.argv[2], sys.argv[4:])
        from jobtui.cli import main as run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
