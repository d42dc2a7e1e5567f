"""Reads lines on standard input and prints `number:offset:` of each one that a pattern is found in.

    python line_filter.py [--ignore-case] -- PATTERN

A program of its own, because a regular expression can take forever and only a process can be stopped. Needs
nothing but the standard library. The offset is that of the line's first byte. Exits with 2 and a line on
standard error if the pattern is invalid.
"""

import re
import sys


def main(arguments: list[str]) -> int:
    *options, pattern = arguments
    try:
        search = re.compile(pattern.encode(), re.IGNORECASE if "--ignore-case" in options else 0).search
    except re.error as error:
        sys.stderr.write(f"{error}\n")
        return 2
    offset = 0
    for number, line in enumerate(sys.stdin.buffer, 1):
        if search(line.rstrip(b"\r\n")):
            sys.stdout.write(f"{number}:{offset}:\n")
            sys.stdout.flush()
        offset += len(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
