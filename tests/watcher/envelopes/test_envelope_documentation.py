"""What docs/envelopes.md shows is what the envelopes write, and which of them can be filled."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from fixtures.any_change import CHOICES
from fixtures.envelope_examples import CAPTURES, EXAMPLES, TABLE_ROWS, Options, can_fill
from fixtures.envelope_examples import example_record as record_of
from fixtures.written_by_row import WRITERS

from watcher.envelopes import ENVELOPES
from watcher.settings.watcher import parse_watch_config

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs/envelopes.md").read_text()
CELL = re.compile(r"`(\w+) = \"(\w+)\"`")


@pytest.mark.parametrize(("name", "options"), EXAMPLES)
def test_the_example_of_an_envelope_is_its_record(name: str, options: Options) -> None:
    (_, section) = re.split(rf"^## {name}(?:,.*)?$", TEXT, flags=re.MULTILINE)
    match = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert match is not None
    shown = json.loads(match[1])
    if name == "debezium":
        shown["source"]["version"] = version("spanner-watcher")
    assert shown == record_of(name, options)
    assert list(shown) == list(record_of(name, options))  # type: ignore[call-overload]


def test_every_envelope_is_registered_as_a_whole() -> None:
    reference = (ROOT / "docs/reference/commands.md").read_text()
    (shown,) = re.findall(r"The format of lines and messages: (.*?)\. Their options", reference)
    assert set(re.sub(r" \([^)]*\)", "", shown).split(", ")) == set(ENVELOPES)
    schemas = {path.name for path in (ROOT / "watcher/envelopes/schemas").iterdir()}
    for name, kind in ENVELOPES.items():
        assert re.search(rf"^## (.*, )?{name}(,|$)", TEXT, re.MULTILINE), "docs/envelopes.md"
        assert name in {drawn for drawn, _ in CHOICES}, "tests/fixtures/any_change.py"
        assert kind.binary == (kind.layout is None)
        if kind.layout is not None:
            assert kind in WRITERS, "tests/fixtures/written_by_row.py"
            assert kind.has_key == (kind.layout.key is None), "a reader finds one key, not two"
            assert f"{name}.json" in schemas
            assert (f"{name}-key.json" in schemas) == kind.has_key


def test_the_table_says_which_capture_can_fill_which_envelope() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in TEXT.splitlines()
        if line.endswith(("| yes |", "| no |"))
    ]
    shown = {
        (row[0].strip("`"), tuple(CELL.findall(row[1])), number): cell == "yes"
        for row in rows
        for number, cell in enumerate(row[2:])
    }
    assert shown == {
        (name, tuple(options.items()), number): can_fill(name, options, known)
        for name, options in TABLE_ROWS
        for number, known in enumerate(CAPTURES.values())
    }


def test_every_option_is_documented() -> None:
    for name, model in ENVELOPES.items():
        for option in model.model_fields:
            assert f"`{option}" in TEXT, f"{option} of {name}"


def test_the_configuration_is_valid() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    given = {"database": "projects/p1/instances/i1/databases/d1"} | tomllib.loads(text)
    assert parse_watch_config(given).delivery.envelope == "debezium"
