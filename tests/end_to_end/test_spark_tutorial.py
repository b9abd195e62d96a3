"""The tutorial with Spark does what it says, followed from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fixtures.listings import DOCS, follow, read_listings

from watcher.process.spark.java import ensure_java

pytestmark = [pytest.mark.spark]
FIRST_STEPS = 4
"""The shell listings of the tutorial without Spark up to its step 3."""


def read_table(output: str) -> list[tuple[int, str]]:
    """Key and last name of the rows of the table that ``show`` prints."""
    rows = re.findall(r"^\|\s*(\d+)\|\s*(\w+)\|", output, re.MULTILINE)
    return sorted((int(key), name) for key, name in rows)


def test_the_tutorial_with_spark(tmp_path: Path) -> None:
    ensure_java()
    before = read_listings(DOCS / "tutorials" / "without-spark.md")
    fourth = [place for place, each in enumerate(before) if each.kind == "sh"][FIRST_STEPS - 1]
    steps = [*before[: fourth + 1], *read_listings(DOCS / "tutorials" / "with-spark.md")]
    first, second, _ = follow(steps, tmp_path)[-3:]
    assert read_table(first) == [(1, "Richards"), (2, "Smith")]
    assert read_table(second) == [(1, "Ricardo"), (1, "Richards"), (2, "Smith")]
