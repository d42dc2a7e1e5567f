"""The beginning of the single file: unpacks what this Python needs, once, and starts jobtui from there.

It is `__main__.py` of the archive. Only the standard library is there; and any Python from 3.6 on reads it,
so that one which is too old is told so. What is unpacked is a cache and no more, `~/.cache/jobtui-zipapp`
or below `$XDG_CACHE_HOME`: for its owner alone, one directory for each build, and those of other builds that
no one runs are removed when one is unpacked. Without a place to keep it, it is there for this run only.
"""

import atexit
import fcntl
import json
import os
import shutil
import stat
import sys
import tempfile
import zipfile

OLDEST = (3, 11)
"""As pyproject.toml has it."""
ROOT = "jobtui-zipapp"
MAKING = "making-"
TRIES = 5


def main() -> "int | str":
    """Start jobtui; its exit code, or why it cannot be started."""
    if sys.version_info < OLDEST:
        return f"jobtui needs Python {dotted(OLDEST)} or newer, and this is {dotted(sys.version_info[:2])}"
    archive = os.path.abspath(sys.path[0])
    with zipfile.ZipFile(archive) as packed:
        index = json.loads(packed.read("index.json"))
        served = index["targets"]
        target = f"cp{sys.version_info[0]}{sys.version_info[1]}-{os.uname().machine}"
        if not sys.platform.startswith("linux") or target not in served:
            return f"this file serves {', '.join(served)} on Linux with glibc, and not {target}"
        place = unpacked(packed, f"{index['build']}-{target}", served[target])
    sys.path[0] = place
    try:
        from jobtui.__main__ import main as start
    except ImportError as error:
        return (
            f"the libraries in {place} cannot be loaded ({error}); name a directory from which programs may "
            "run in XDG_CACHE_HOME"
        )
    sys.argv[0] = "jobtui"
    return start()


def dotted(version: "tuple[int, ...]") -> str:
    """A version as it is written."""
    return ".".join(map(str, version))


def unpacked(packed: zipfile.ZipFile, name: str, wheels: "list[str]") -> str:
    """The directory with these wheels of the archive, which nobody removes while this process runs."""
    os.umask(0o077 | os.umask(0o077))
    try:
        root = own_root()
        for _ in range(TRIES):
            place = os.path.join(root, name)
            if not os.path.isdir(place):
                unpack_in(root, place, packed, wheels)
                tidy(root, place)
            if hold(place, fcntl.LOCK_SH) is not None:
                return place
    except OSError:
        pass
    place = tempfile.mkdtemp(prefix="jobtui-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    unpack(place, packed, wheels)
    return place


def own_root() -> str:
    """The cache directory, which is ours and no one else's. Raises OSError when it cannot be."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    root = os.path.join(cache, ROOT)
    os.makedirs(root, mode=0o700, exist_ok=True)
    about = os.lstat(root)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        raise OSError("not a directory of one's own")
    if about.st_mode & 0o077:
        os.chmod(root, 0o700)
    return root


def unpack_in(root: str, place: str, packed: zipfile.ZipFile, wheels: "list[str]") -> None:
    """Unpack to a place that is there as a whole or not at all, whatever happens meanwhile."""
    making = tempfile.mkdtemp(prefix=MAKING, dir=root)
    try:
        held = hold(making, fcntl.LOCK_EX)
        unpack(making, packed, wheels)
        if held is not None:
            os.close(held)
        os.rename(making, place)
    except OSError:
        shutil.rmtree(making, ignore_errors=True)
        if not os.path.isdir(place):  # else another one was faster
            raise


def unpack(place: str, packed: zipfile.ZipFile, wheels: "list[str]") -> None:
    """Put the files of the wheels, one beside the other, into a directory."""
    begins = tuple(f"wheels/{wheel}/" for wheel in wheels)
    for entry in packed.infolist():
        if entry.filename.startswith(begins) and not entry.is_dir():
            inside = entry.filename.split("/", 2)[2]
            path = os.path.join(place, inside)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with packed.open(entry) as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target)


def hold(place: str, how: int) -> "int | None":
    """A lock on a directory until this process ends, as its descriptor; None when it is gone or another's."""
    try:
        held = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(held, how | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(held), os.stat(place)):
            return held
    except OSError:
        pass
    os.close(held)
    return None


def tidy(root: str, kept: str) -> None:
    """Remove what other builds left, unless somebody runs it."""
    for entry in list(os.scandir(root)):
        if entry.path == kept or not entry.is_dir(follow_symlinks=False):
            continue
        held = hold(entry.path, fcntl.LOCK_EX)
        if held is not None:
            shutil.rmtree(entry.path, ignore_errors=True)
            os.close(held)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
