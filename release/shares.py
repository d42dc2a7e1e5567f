"""What an installed jobtui has below `share`: the man page, and completions where shells look for them.

python -m release.shares        # renews it in the repository, and what completions offer; a test says when
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from jobtui.commands.help import help_table
from release.manual import manual
from release.words import words

SHARE = Path(__file__).parents[1] / "share"


SHARES: dict[str, Callable[[], str]] = {
    "man/man1/jobtui.1": manual,
    "bash-completion/completions/jobtui": help_table()["completion"]["bash"].lstrip,
    "zsh/site-functions/_jobtui": help_table()["completion"]["zsh"].lstrip,
    "fish/vendor_completions.d/jobtui.fish": help_table()["completion"]["fish"].lstrip,
}
"""Paths below `share`, as Debian has them, and what is there."""


MADE: dict[str, Callable[[], str]] = {"jobtui/completion.json": words}
"""Files of the program itself that are made, from the repository's directory on."""


def renew(place: Path, files: Mapping[str, Callable[[], str]] = SHARES) -> None:
    """Write all of them below a directory."""
    for name, make in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make())


if __name__ == "__main__":
    renew(SHARE)
    renew(SHARE.parent, MADE)
