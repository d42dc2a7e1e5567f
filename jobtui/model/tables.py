"""Tables that come with the program: what is data stands in TOML beside the code that reads it."""

from functools import cache
from typing import Any


@cache
def tables_of(package: str, name: str) -> dict[str, Any]:
    """What `<name>.toml` in the folder of a package holds."""
    import tomllib  # both take long, and most need no table
    from importlib import resources

    return tomllib.loads(resources.files(package).joinpath(f"{name}.toml").read_text("utf-8"))
