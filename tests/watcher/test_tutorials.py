"""The tutorials do what they say, followed from top to bottom."""

from __future__ import annotations

import json
from pathlib import Path

from fixtures.listings import DOCS, follow, read_listings


def read_lines(output: str) -> list[tuple[str, str]]:
    """First and last name of each change that ``watch`` has printed."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return sorted((each["values"]["FirstName"], each["values"]["LastName"]) for each in lines)


def test_the_tutorial_without_spark(tmp_path: Path) -> None:
    steps = read_listings(DOCS / "tutorials" / "without-spark.md")
    _, _, applied, _, first, second, greeted, known, _ = follow(steps, tmp_path)
    assert "LastModified" in applied
    assert read_lines(first) == [("Catalina", "Smith"), ("Marc", "Richards")]
    assert read_lines(second) == [("Marc", "Ricardo")]
    assert sorted(greeted.splitlines()) == ["UPSERT Catalina Smith", "UPSERT Marc Ricardo"]
    assert "my-reader" in known
    assert "greeter" in known
    assert "2 rows" in known
