"""Evaluates expressions with HTCondor's own library, one line of standard input after the other.

    python -I -S ad_child.py DIRECTORY SECONDS

A program of its own, as the library runs in native code on what any user wrote: it can be stopped, may use so
much memory and time, opens no file after its start, and ends without a trace. DIRECTORY is where `classad2`
is. Both ways a line is a JSON document: first the version of the library, or why there is none; then for each
question, which is `expression` and its `scope`, the fields of an answer. It ends after SECONDS without any.
"""

import json
import resource
import signal
import sys
from collections.abc import Mapping
from typing import Any

CPU_S = 1
"""Of the processor for one expression."""
MOST_BYTES = 512 << 20
"""Of memory; the library itself maps 95 MB."""
MOST_CHARACTERS = 4_096
"""Of an answer."""


def confine() -> None:
    """Let nothing be written, no process begun, and no memory be taken beyond bounds."""
    for what, most in (
        (resource.RLIMIT_AS, MOST_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        hard = resource.getrlimit(what)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (bound, bound))


def spare_time() -> None:
    """Let it end when the next expression takes too long."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def answer(library: Any, question: Mapping[str, Any]) -> Mapping[str, object]:
    """The value of an expression in the ad that its scope is."""
    ad = library.ClassAd()
    try:
        for name, expression in question["scope"]:
            ad[name] = library.ExprTree(expression)
        tree = library.ExprTree(question["expression"])
    except library.ClassAdException:
        return {"failed": "is not understood by HTCondor's library"}
    try:
        value = tree.eval(ad)
        left = ad.flatten(tree)
    except library.ClassAdException:
        return {"failed": "could not be evaluated by HTCondor's library"}
    is_number = isinstance(value, bool | int | float) and not isinstance(value, library.Value)
    rest = str(left) if isinstance(value, library.Value) and isinstance(left, library.ExprTree) else ""
    return {
        "text": text_of(value, library)[:MOST_CHARACTERS],
        "holds": bool(value) if is_number else None,
        "rest": rest if len(rest) <= MOST_CHARACTERS else "",
    }


def text_of(value: object, library: Any) -> str:
    """A value as it is written in an ad; of one that has parts, what it is."""
    if isinstance(value, library.Value):
        return "undefined" if value is library.Value.Undefined else "error"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.15g}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else f"a {type(value).__name__}"


def main(directory: str, idle_s: int) -> int:
    """Answer until the input ends."""
    confine()
    sys.path.append(directory)
    try:
        import classad2
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is to be told
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"}), flush=True)  # noqa: T201
        return 1
    print(json.dumps({"version": classad2.version()}), flush=True)  # noqa: T201
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    while True:
        signal.alarm(idle_s)
        line = sys.stdin.readline()
        signal.alarm(0)
        if not line:
            return 0
        spare_time()
        print(json.dumps(answer(classad2, json.loads(line))), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
