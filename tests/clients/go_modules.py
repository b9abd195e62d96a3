"""Suites that are part of a Go module."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from clients.outcomes import Outcome, read_go
from clients.suite import MINUTES_MAX, Workplace

TEST = re.compile(r"^func (Test(?!Main\b)\w+)\(", re.MULTILINE)


def copy_module(place: Workplace, module: str, version: str) -> Path:
    """A module as the proxy serves it, in a folder that may be written."""
    said = place.call(["go", "mod", "download", "-json", f"{module}@{version}"])
    folder = place.folder / "source"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(json.loads(said)["Dir"], folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    return folder


def run_go_tests(
    place: Workplace,
    source: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> list[Outcome]:
    """The outcomes of ``go test`` in a module. One process at a time: its tests share a server."""
    command = ["go", "test", "-json", "-count=1", "-p=1", f"-timeout={MINUTES_MAX}m", *arguments]
    said = place.call(command, source, environment, may_fail=True)
    return read_go(said.splitlines())


def name_tests(*files: Path) -> str:
    """The pattern for ``-run`` that the tests of these files match."""
    names = [name for file in files for name in TEST.findall(file.read_text())]
    return f"^({'|'.join(names)})$"


def replace_in(path: Path, text: str, by: str) -> None:
    """Changes a suite in one place. Raises ValueError where the text is not there exactly once: a
    new version has to be looked at."""
    content = path.read_text()
    if content.count(text) != 1:
        raise ValueError(f"{path.name} has {content.count(text)} times: {text}")
    path.write_text(content.replace(text, by))
