"""Tables that come with the program, as TOML next to the code that reads them; where a user's files are."""

import os
import re
from functools import cache
from typing import Any

import jobtui


def text_of(package: str, name: str) -> str:
    loader: Any = jobtui.__loader__  # pkgutil would do the same, and takes long to import
    return str(loader.get_data("/".join((*jobtui.__path__, *package.split(".")[1:], name))).decode())


@cache
def tables_of(package: str, name: str, *, without: str = "") -> dict[str, Any]:
    """What `<name>.toml` in the folder of a package holds, but for the `[[tables]]` of one name."""
    import tomllib  # takes long, and most need no table

    tables = rf"(?ms)^\[\[{re.escape(without)}\]\]$.*?(?=^\[|\Z)"
    return tomllib.loads(re.sub(tables, "", text_of(package, f"{name}.toml")))


def home_of(kind: str) -> str:
    """The directory below which programs keep files of a user: CONFIG, DATA or CACHE, as XDG names them."""
    usual = {"CONFIG": "~/.config", "DATA": "~/.local/share", "CACHE": "~/.cache"}[kind]
    return os.environ.get(f"XDG_{kind}_HOME", "").strip() or os.path.expanduser(usual)
