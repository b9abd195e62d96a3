"""Each guard of the protocol is needed: without it, the explorer finds a violation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import watcher
from interleavings.guards import GUARDS, NOT_EXPLORED, Guard
from interleavings.prove import SCHEDULES_MAX, find

pytestmark = [pytest.mark.timeout(900)]
ROOT = Path(watcher.__file__).parents[1]
FOLDERS = ("consumers", "sinks", "runners/delivery", "runners/watcher_run", "runners/shared_run")
QUERIES = "runners/spark/consumer.py"
OF_SETTINGS = (
    "settings|divisible|still_polled|future|erasable|change_sets|timestamp|positions_table"
    "|spelling|is_ours|processed|deletion_policy|cascades"
)
"""What refuses a table that cannot be read or cleared, a name, or a start in the future, whoever
asks."""
CHECK = re.compile(rf"_?(check|demand)(_(?!{OF_SETTINGS})\w+)?\Z")
"""How functions are called that refuse who may not go on."""


def list_modules() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / "watcher" / folder).rglob("*.py"))
    yield ROOT / "watcher" / QUERIES


def find_calls(node: ast.AST, inside: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The calls of checks, with the qualified names of the functions that they are in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from find_calls(child, (*inside, child.name))
            continue
        if isinstance(child, ast.Call):
            called = child.func
            name = str(getattr(called, "id", None) or getattr(called, "attr", ""))
            if CHECK.match(name):
                yield ".".join(inside), name
        yield from find_calls(child, inside)


def find_guards() -> set[tuple[str, str]]:
    return {
        (f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}:{function}", check)
        for path in list_modules()
        for function, check in find_calls(ast.parse(path.read_text()), ())
    }


def is_of_delivery(place: tuple[str, str]) -> bool:
    """The check of the lease, under the name that its owner has for it."""
    of_delivery = place[0].startswith(("watcher.runners.delivery", "watcher.sinks"))
    return of_delivery and place[1] == "_check"


def test_every_guard_is_removed_once() -> None:
    found = {
        (site, "check") if is_of_delivery((site, c)) else (site, c) for site, c in find_guards()
    }
    tables = {place for place in found if "table_resolver" in place[0]}
    listed = {guard.place for guard in GUARDS}
    assert found - tables == listed | NOT_EXPLORED.keys()
    assert not listed & NOT_EXPLORED.keys()


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_that_is_removed_is_missed(guard: Guard) -> None:
    number, outcome = find(guard, SCHEDULES_MAX)
    assert outcome is not None, f"nobody missed it in {number} schedules"
