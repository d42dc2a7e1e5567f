"""Tables that come with the program: what is data stands in TOML beside the code that reads it."""

from functools import cache
from pkgutil import get_data
from typing import Any


def text_of(package: str, name: str) -> str:
    return (get_data(package, name) or b"").decode()


@cache
def tables_of(package: str, name: str) -> dict[str, Any]:
    """What `<name>.toml` in the folder of a package holds."""
    import tomllib  # takes long, and most need no table

    return tomllib.loads(text_of(package, f"{name}.toml"))
