"""The environment of a job as Slurm and SArchive keep it.

In a file (Slurm's own, copied by SArchive as it is): four bytes, little-endian, the count of entries, then
every entry with a NUL behind it. An entry is `NAME=value`; a value may hold newlines, `=` and any byte, and
there are entries without `=`. In a document of SArchive (Kafka, Elasticsearch) it is an object, in which an
entry with several `=` stands whole as a name without value: the producer splits at every `=`.
"""

from collections.abc import Iterator, Mapping

from jobtui.model.scripts import Environment, Variable

COUNT_BYTES = 4


def parse_environment(data: bytes) -> Environment:
    """The environment in a file. Raises nothing: what is wrong with it shows in `announced`."""
    announced = int.from_bytes(data[:COUNT_BYTES], "little")
    return Environment(tuple(map(_variable, entries_of(data[COUNT_BYTES:]))), announced)


def write_environment(variables: Mapping[str, str]) -> bytes:
    """The file that Slurm writes for these."""
    entries = [f"{name}={value}".encode() + b"\0" for name, value in variables.items()]
    return len(entries).to_bytes(COUNT_BYTES, "little") + b"".join(entries)


def entries_of(data: bytes) -> list[bytes]:
    """What stands between NULs; a last entry without one was cut off and counts too."""
    entries = data.split(b"\0")
    return entries if entries[-1] else entries[:-1]


def parse_document(document: Mapping[object, object], *, is_files: bool = False) -> Environment:
    """The environment in a document, with what its producer damaged mended."""
    variables = list(_of_document(document, is_files=is_files))
    mended = [variable.name for variable, was_damaged in variables if was_damaged]
    return Environment(tuple(variable for variable, _ in variables), mended=tuple(mended), is_files=is_files)


def _of_document(document: Mapping[object, object], *, is_files: bool) -> Iterator[tuple[Variable, bool]]:
    for name, value in document.items():
        key, text = str(name).encode("utf-8", "replace"), _text(value)
        is_damaged = not is_files and not text and b"=" in key
        yield (_variable(key) if is_damaged else Variable(key, text)), is_damaged


def _text(value: object) -> bytes:
    return ("" if value is None else str(value)).encode("utf-8", "replace")


def _variable(entry: bytes) -> Variable:
    name, equals, value = entry.partition(b"=")
    return Variable(name, value if equals else None)
