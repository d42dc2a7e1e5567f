"""Each kind of source has one descriptor: a new one appears everywhere by one line."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.backends import registry
from jobtui.backends.registry import SOURCES
from jobtui.model.health import SourceHealth
from jobtui.render.sources import labels
from tests import reference
from tests.commands.running import in_turn
from tests.modules import MODULES, PACKAGE
from tests.rows import program
from tests.toy_source import TOY as TOY_KIND

WORDS = frozenset({one.kind for one in SOURCES} | {one.setting for one in SOURCES}) - {""}
ASKED = frozenset({"kind", "setting"})
"""What is compared: the kind of a source, the setting that names it."""
TOY = program("toy")


def texts_of(source: str) -> dict[str, str]:
    return {
        target.id: node.value.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }


def kinds_compared(source: str, texts: dict[str, str]) -> Iterator[int]:
    """The lines where a kind or a setting is compared with a text, or looked for among texts."""

    def words(node: ast.AST) -> Iterator[str]:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
            elif isinstance(part, ast.Name):
                yield texts.get(part.id, "")

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_asked = any(isinstance(one, ast.Attribute) and one.attr in ASKED for one in sides)
            if is_asked and any(word in WORDS for one in sides for word in words(one)):
                yield node.lineno
        elif isinstance(node, ast.Set | ast.Tuple | ast.List) and len(node.elts) > 1:
            named = [one.value for one in node.elts if isinstance(one, ast.Constant)]
            if len(named) == len(node.elts) and WORDS.issuperset(named):
                yield node.lineno


SYSTEMS = frozenset({"commands.py", "flags.py"})
"""Lists of systems of jobs, which are no kinds of sources."""


def test_no_kind_is_compared_or_listed_outside_the_registry() -> None:
    signs = (".kind", ".setting", *(f'"{word}"' for word in WORDS))
    sources = {module: module.read_text() for module in MODULES}
    own = {module: texts_of(text) for module, text in sources.items() if any(sign in text for sign in signs)}
    texts = {name: text for module in own.values() for name, text in module.items()}
    found = [
        f"{module.relative_to(PACKAGE)}:{line}"
        for module in own
        if module != PACKAGE / "backends" / "registry.py" and module.name not in SYSTEMS
        for line in kinds_compared(sources[module], {**texts, **own[module]})
    ]
    assert not found, f"ask the descriptor of the source instead: {found}"


def test_no_two_kinds_have_one_name() -> None:
    assert len({one.kind for one in SOURCES}) == len(SOURCES)
    named = [one.setting for one in SOURCES if one.setting]
    assert len(set(named)) == len(named)


def test_a_new_source_and_system_appear_everywhere_by_one_line_each(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'toy = ["{tmp_path}/here"]\n')
    asked = {
        "--help": "--toy FILE", "completion bash -- --t": "--toy", "config": "toy",
        "doctor --json": '"kind":"toy_file"', "jobs --json": "toy/1",
        "explain toy/1": "It is going, as toys do",
        "jobs --at 2026-11-20T10:00Z --json": '"queued_at":"2026-11-20T10:00:00',
    }  # fmt: skip
    told = in_turn(*(["--config", str(config), *line.split()] for line in asked), before=TOY)
    for line, ran in zip(asked, told, strict=True):
        assert asked[line] in ran.out.replace('": "', '":"'), (line, ran.err)


def test_a_new_source_is_on_its_screen_and_in_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "SOURCES", (*SOURCES, TOY_KIND))
    monkeypatch.setattr(reference, "SOURCES", registry.SOURCES)
    assert labels([SourceHealth(name="/srv/a", kind=TOY_KIND.kind)]) == ["toy"]
    assert TOY_KIND.kind in registry.kinds_that_give(registry.Gives.JOBS)
    assert "| `--toy FILE` |" in "".join(reference.sources_table())
