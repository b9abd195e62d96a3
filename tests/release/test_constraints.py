"""What `make setup` installs: a file for each Python, each dependency within its bounds."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = sorted((ROOT / "scripts" / "constraints").glob("*.txt"))
CHOSEN_BY_BOOTSTRAP = "pyspark"
LINE = re.compile(r"([a-z0-9-]+)==([0-9A-Za-z.!+]+)")


def read_versions(path: Path) -> dict[str, str]:
    """The version of each package."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return dict(LINE.findall("\n".join(lines)))


def list_requirements(names: Iterable[str]) -> Iterator[Requirement]:
    """What the project and some of its extras ask for; an extra may name others."""
    yield from map(Requirement, PROJECT["dependencies"])
    for name in names:
        for each in map(Requirement, PROJECT["optional-dependencies"][name]):
            if each.name == PROJECT["name"]:
                yield from list_requirements(each.extras)
            else:
                yield each


def test_every_python_that_is_named_as_tested_has_its_versions() -> None:
    marked = {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: Python ::" in each}
    assert {path.stem.removeprefix("python-") for path in FILES} == marked


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_has_a_version_within_the_bounds_of_every_dependency(path: Path) -> None:
    versions = read_versions(path)
    requirements = [
        each for each in list_requirements(["dev", "java"]) if each.name != CHOSEN_BY_BOOTSTRAP
    ]
    assert len(requirements) > 40
    wrong = [
        str(each)
        for each in requirements
        if not each.specifier.contains(versions.get(canonicalize_name(each.name), "0"))
    ]
    assert wrong == []
