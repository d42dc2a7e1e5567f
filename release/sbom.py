"""The bill of materials: CycloneDX 1.6 as JSON, made from the locks (https://cyclonedx.org/docs/1.6/json/).

    python -m release.sbom        # renews sbom.cdx.json; a test says when that is due

It holds no time and no random number: the same locks give the same bytes.
"""

import json
import tomllib
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jobtui import __version__
from release.locks import BASE, OURSELVES, Locked, by_name, read_lock

ROOT = Path(__file__).parents[1]
SBOM = ROOT / "sbom.cdx.json"
LICENCES = Path(__file__).with_name("licences.toml")
DEVELOPMENT = "dev"
"""The extra that nobody who uses jobtui installs."""
OUR_PURL = f"pkg:pypi/jobtui@{__version__}"


def project() -> Mapping[str, Any]:
    """The table `project` of pyproject.toml."""
    table: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def extras() -> tuple[str, ...]:
    """The extras that are locked: those that need something."""
    needed = project()["optional-dependencies"]
    return tuple(name for name, needs in needed.items() if needs and name != DEVELOPMENT)


def bill() -> str:
    """The bill of materials of jobtui and all its extras."""
    base = read_lock(BASE)
    required = {one.name for one in base}
    locked = {**by_name(one for extra in extras() for one in read_lock(extra)), **by_name(base)}
    wanted_by = _wanted_by([base, *map(read_lock, extras())])
    components = [_component(locked[name], name in required) for name in sorted(locked)]
    contents = {
        "metadata": {"component": _ourselves()},
        "components": components,
        "dependencies": _dependencies(locked, wanted_by),
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(contents, sort_keys=True))
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        **contents,
    }
    return json.dumps(document, indent=1) + "\n"


def _ourselves() -> Mapping[str, object]:
    about = project()
    return {
        "type": "application",
        "bom-ref": OUR_PURL,
        "name": about["name"],
        "version": __version__,
        "description": about["description"],
        "licenses": [{"license": {"id": about["license"]}}],
        "purl": OUR_PURL,
    }


def licence_of(name: str) -> str:
    """The SPDX expression of a library's licence. Raises KeyError for one that nobody looked up yet."""
    licences: Mapping[str, str] = tomllib.loads(LICENCES.read_text())
    return licences[name]


def _purl(one: Locked) -> str:
    return f"pkg:pypi/{one.name}@{one.version}"


def _component(one: Locked, is_required: bool) -> Mapping[str, object]:
    """A library; its hashes are those of every file that pip may take for it."""
    return {
        "type": "library",
        "bom-ref": _purl(one),
        "name": one.name,
        "version": one.version,
        "scope": "required" if is_required else "optional",
        "licenses": [{"expression": licence_of(one.name)}],
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in sorted(one.hashes)],
        "purl": _purl(one),
    }


def _wanted_by(locks: Iterable[Iterable[Locked]]) -> Mapping[str, set[str]]:
    wanted: dict[str, set[str]] = {}
    for lock in locks:
        for one in lock:
            for who in one.wanted_by:
                wanted.setdefault(who, set()).add(one.name)
    return wanted


def _dependencies(locked: Mapping[str, Locked], wanted: Mapping[str, set[str]]) -> list[object]:
    """Who depends on whom, jobtui first."""
    who = [(OUR_PURL, OURSELVES), *((_purl(locked[name]), name) for name in sorted(locked))]
    return [
        {"ref": purl, "dependsOn": [_purl(locked[name]) for name in sorted(wanted.get(asker, ()))]}
        for purl, asker in who
    ]


if __name__ == "__main__":
    SBOM.write_text(bill())
