"""Each kind of source has one descriptor: a new one appears everywhere by one line."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.backends.registry import SOURCES
from tests.modules import MODULES, PACKAGE

WORDS = frozenset({one.kind for one in SOURCES} | {one.setting for one in SOURCES}) - {""}
ASKED = frozenset({"kind", "setting"})
"""What is compared: the kind of a source, the setting that names it."""
TOY = """
import sys
from jobtui.analysis import systems
from jobtui.backends import registry
from tests import toy_source

registry.SOURCES = (*registry.SOURCES, toy_source.TOY)
systems.SYSTEMS = (*systems.SYSTEMS, toy_source.TOY_SYSTEM)
from jobtui.cli import main
sys.exit(main(sys.argv[1:]))
"""
TABLE = """
from jobtui.backends import registry
from tests import toy_source

registry.SOURCES = (*registry.SOURCES, toy_source.TOY)
from tests.reference import sources_table
print("\\n".join(sources_table()))
"""


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


@pytest.mark.parametrize(
    "source",
    [
        'spec.setting == "srdb"',
        'source.kind != "journald" or x',
        'KIND = "slurm"\nsource.kind == KIND',
        'kinds = frozenset({"logfile", "journald"})',
        'spec.setting in ("balsam", "slurm")',
    ],
)
def test_a_comparison_of_kinds_is_seen(source: str) -> None:
    assert list(kinds_compared(source, {"KIND": "slurm"}))


def test_no_two_kinds_have_one_name() -> None:
    assert len({one.kind for one in SOURCES}) == len(SOURCES)
    named = [one.setting for one in SOURCES if one.setting]
    assert len(set(named)) == len(named)


def run_with_toy(*words: str, code: str = TOY) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True, text=True, timeout=60, cwd=PACKAGE.parent, check=False,
    )  # fmt: skip


def test_a_new_source_appears_everywhere_by_one_line(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'toy = ["{tmp_path}/here"]\n')
    assert "--toy FILE" in run_with_toy("--help").stdout
    assert "--toy" in run_with_toy("completion", "bash", "--", "--t").stdout
    assert "toy" in run_with_toy("--config", str(config), "config").stdout
    checked = run_with_toy("--config", str(config), "doctor", "--json")
    assert '"kind": "toy_file"' in checked.stdout.replace('":"', '": "'), checked.stderr
    listed = run_with_toy("--config", str(config), "jobs", "--json")
    assert "toy/1" in listed.stdout, listed.stderr
    assert "| `--toy FILE` |" in run_with_toy(code=TABLE).stdout


def test_the_jobs_of_a_new_system_are_explained_by_its_file(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'toy = ["{tmp_path}/here"]\n')
    explained = run_with_toy("--config", str(config), "explain", "toy/1")
    assert "It is going, as toys do" in explained.stdout, explained.stderr


async def test_a_new_source_is_on_the_screen_of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    from jobtui.backends import registry
    from jobtui.model.health import SourceHealth
    from jobtui.render.sources import labels
    from tests.toy_source import TOY as KIND

    monkeypatch.setattr(registry, "SOURCES", (*SOURCES, KIND))
    assert labels([SourceHealth(name="/srv/a", kind=KIND.kind)]) == ["toy"]
    assert KIND.kind in registry.kinds_that_give(registry.Gives.JOBS)
