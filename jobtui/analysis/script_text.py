"""A script as lines that may be shown: text made of its bytes, secrets masked, and what each line is."""

import re
from enum import StrEnum
from typing import NamedTuple

from jobtui.model.scripts import Environment, Variable, text_of
from jobtui.model.secret_lines import masked_lines
from jobtui.model.secrets import mask_document, mask_text


class Piece(StrEnum):
    """What a piece of a line of a script is."""

    PLAIN = "plain"
    COMMENT = "comment"
    DIRECTIVE = "directive"
    STRING = "string"
    VARIABLE = "variable"
    KEYWORD = "keyword"


class ScriptPiece(NamedTuple):
    """Some text of a line, and what it is."""

    text: str
    piece: Piece = Piece.PLAIN


_TOKENS = re.compile(
    r"""(?P<comment>(?:^|(?<=\s))\#.*)
    |(?P<string>"(?:[^"\\]|\\.)*"|'[^']*')
    |(?P<variable>\$(?:\w+|\{[^}]*\}|[@*\#?$!-]))
    |(?P<keyword>\b(?:if|then|elif|else|fi|for|in|do|done|while|until|case|esac|function|return|exit|export
        |set|source|local|def|import|from|class|srun|mpirun|mpiexec|module|cd)\b)""",
    re.VERBOSE | re.ASCII,
)
_DIRECTIVE = re.compile(r"#(?:SBATCH|PBS|!)")
LONGEST_COLOURED = 2_000
"""Characters of a line that are looked at for what they are."""
MOST_COLOURED = 300_000
"""Characters of a script that are: a pathological one takes 6 µs for each."""


def lines_of(script: bytes) -> list[str]:
    """The lines of a script, as they are, bytes that are no text shown for what they are."""
    lines = text_of(script).split("\n")
    return lines if lines[-1] else lines[:-1]


def masked_script(script: bytes) -> str:
    """A script as text with its secrets masked, its lines and their ends as they are."""
    return "\n".join(masked_lines(text_of(script).split("\n")))


def pieces(line: str) -> tuple[ScriptPiece, ...]:
    """A line in the pieces of which it is made."""
    if _DIRECTIVE.match(line):
        return (ScriptPiece(line, Piece.DIRECTIVE),)
    found, at = [], 0
    for token in _TOKENS.finditer(line, 0, LONGEST_COLOURED):
        if token.start() > at:
            found.append(ScriptPiece(line[at : token.start()]))
        found.append(ScriptPiece(token[0], Piece(token.lastgroup or Piece.PLAIN)))
        at = token.end()
    return (*found, ScriptPiece(line[at:])) if at < len(line) or not found else tuple(found)


class ShownVariable(NamedTuple):
    """A variable as it may be shown. `value` is None where the entry had no `=`."""

    name: str
    value: str | None


def shown_variables(environment: Environment) -> list[ShownVariable]:
    """The variables of an environment, values of secrets masked."""
    return [shown_variable(variable) for variable in environment.variables]


def shown_variable(variable: Variable) -> ShownVariable:
    """One of them."""
    name = text_of(variable.name)
    if variable.value is None:
        return ShownVariable(mask_text(name), None)
    value = mask_document({name: text_of(variable.value)})
    assert isinstance(value, dict)
    return ShownVariable(
        mask_text(name), "\n".join(masked_lines(str(next(iter(value.values()))).split("\n")))
    )
