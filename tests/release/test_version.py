"""One version: deploy/, the documentation and the changelog name that of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION: str = PROJECT["version"]
NAMED = re.compile(r"\bspanner-watcher(?:-emulator)?(?::|==)(\d+\.\d+\.\d+)")
"""An image, or a requirement of pip."""


def list_pages() -> list[Path]:
    """The files that name a version of the product; pictures do not."""
    folders = (ROOT / "deploy", ROOT / "docs")
    files = [p for each in folders for p in each.rglob("*") if p.is_file()]
    return [ROOT / "README.md", *(p for p in files if p.suffix != ".webp")]


def test_images_and_requirements_are_of_this_version() -> None:
    named = [
        (str(path.relative_to(ROOT)), version)
        for path in list_pages()
        for version in NAMED.findall(path.read_text())
    ]
    assert {"deploy/Dockerfile", "docs/deployment.md"} <= {path for path, _ in named}
    assert not [each for each in named if each[1] != VERSION]


def test_the_changelog_begins_with_what_is_unreleased_and_this_version() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    version, _, day = headings[1].partition(" - ")
    assert version == VERSION
    assert date.fromisoformat(day).isoformat() == day


def test_the_classifier_says_that_it_is_stable() -> None:
    (status,) = (each for each in PROJECT["classifiers"] if each.startswith("Development Status"))
    assert ("Stable" in status) == (not VERSION.startswith("0."))
