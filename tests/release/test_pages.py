"""What CONTRIBUTING, SECURITY, the decisions and the page of deployments name is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs/decisions"
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "docs/deployment.md",
    *sorted(DECISIONS.glob("*.md")),
]
TOP = r"(?:watcher|ddl|emulator|benchmarks|conformance|tests|docs|deploy|scripts)/"
PATH = re.compile(rf"`({TOP}[\w@./-]*)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
SECTIONS = ["Context", "Decision", "Refused", "Consequences"]


@cache
def list_tests() -> frozenset[str]:
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    return frozenset(name for text in texts for name in re.findall(r"def (test_\w+)\(", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    named = {ROOT / name for name in PATH.findall(text) if "NAME" not in name}
    named |= {page.parent / link for link in LINK.findall(text)}
    assert not [path for path in named if not path.exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", page.read_text()))
    assert named <= list_tests()


@pytest.mark.parametrize("page", sorted(DECISIONS.glob("0*.md")), ids=lambda page: page.stem)
def test_a_decision_says_what_was_refused_and_what_it_costs(page: Path) -> None:
    assert re.findall(r"^## (.*)", page.read_text(), re.MULTILINE) == SECTIONS
    assert f"({page.name})" in (DECISIONS / "index.md").read_text()


def test_what_a_contributor_is_sent_to_is_there() -> None:
    """The names in the code that CONTRIBUTING.md asks to extend."""
    for path, name in (
        ("tests/watcher/test_captures.py", "CAPTURES"),
        ("watcher/captures/__init__.py", "class Capture"),
        ("watcher/sinks/contract.py", "class ChangeSink"),
        ("watcher/model/outputs.py", "MESSAGE_FORMATS"),
        ("watcher/model/outputs.py", "SINKS"),
        ("watcher/settings/destinations/__init__.py", "DESTINATIONS"),
        ("watcher/settings/destinations/__init__.py", "class QueueSections"),
        ("spanner_schema/model/column_types.py", "COLUMN_TYPES"),
        ("watcher/model/value_types.py", "VALUE_TYPES"),
        ("ddl/tracking/lint.py", "RULES"),
        ("tests/ddl/test_lint.py", "CASES"),
        ("tests/fixtures/any_change.py", "CHOICES"),
    ):
        assert re.search(rf"^{name}\b", (ROOT / path).read_text(), re.MULTILINE), (path, name)
        assert name.removeprefix("class ") in (ROOT / "CONTRIBUTING.md").read_text()
