"""For any table, any copy of it and any edit of that copy, ``verify`` finds what plain Python
finds."""

from __future__ import annotations

import os
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fixtures.any_copy import (
    SPELLINGS,
    WRITERS,
    AnyColumn,
    AnyTable,
    Edit,
    any_edits,
    any_tables,
    compare,
    edit_nothing,
    normalize_key,
    write_copy,
)
from fixtures.dialects import create_in
from fixtures.replicas import verify_folder
from fixtures.server import NUMBERS
from google.cloud.spanner_v1.instance import Instance
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanner_schema.model.schema import Dialect
from watcher.replica.verification.comparison import Depth
from watcher.replica.verification.report import TableReport

TINY = Depth(rows=4, parts=2, leaf_rows=1)
EXAMPLES = int(os.environ.get("VERIFY_EXAMPLES", "8"))


def verify_copy(
    instance: Instance, table: AnyTable, edit: Edit, format_: str, boost: bool
) -> TableReport:
    """What ``verify`` says of a table and its edited copy."""
    name = f"verified-{next(NUMBERS)}"
    database = create_in(table.dialect, instance, name, [table.statement])
    try:
        end = table.write(database)
        with tempfile.TemporaryDirectory() as folder:
            cut = write_copy(table, edit, Path(folder), format_, end)
            report = verify_folder(database, Path(folder), cut, depth=TINY, data_boost=boost)
    finally:
        database.drop()
    (found,) = report.tables
    assert report.equal == found.equal
    return found


def read_key(table: AnyTable, shown: Any) -> tuple[Any, ...]:
    """The key of a difference, as plain Python has it."""
    return tuple(read_shown(shown[each.name], each) for each in table.key)


def read_shown(value: Any, column: AnyColumn) -> Any:
    if value is None or column.spelling in ("BOOL", "INT64", "STRING(MAX)", "UUID"):
        return value
    known = [normalize_key(each) for each in column.values]
    return next(each for each in known if show(each) == show_again(value, column))


def show(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.hex() if isinstance(value, bytes) else str(value)


def show_again(value: Any, column: AnyColumn) -> str:
    """What JSON shows, in the form in which ``str`` shows it here."""
    if column.spelling == "TIMESTAMP":
        whole, micros = value[:19].replace("T", " "), value[20:26]
        return f"{whole}{'' if micros == '000000' else '.' + micros}+00:00"
    return str(value + 0.0 if isinstance(value, float) else value)


@pytest.mark.essential
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), format_=st.sampled_from(sorted(WRITERS)), boost=st.booleans())
def test_verify_and_plain_python_agree(
    instance: Instance, data: st.DataObject, format_: str, boost: bool
) -> None:
    table = data.draw(any_tables())
    edit = data.draw(any_edits(table))
    report = verify_copy(instance, table, edit, format_, boost)
    missing = {each.name for each in table.columns} - set(edit.names)
    if missing - set(edit.left_out):
        assert not report.equal
        assert all(name in report.problem for name in missing)
        return
    expected = compare(table, edit.rows, edit.names)
    assert not report.problem, report.to_json()
    found = [(each.kind.value, read_key(table, each.key)) for each in report.differences]
    assert sorted(found, key=repr) == expected
    assert report.equal == (not expected)
    assert report.rows == len(table.rows)
    assert set(report.left_out) == missing


KEYS = ["INT64", "STRING(MAX)", "BYTES(MAX)", "FLOAT64", "DATE", "TIMESTAMP", "BOOL", "UUID"]


def make_wide(dialect: Dialect, keys: int, width: int) -> AnyTable:
    """A table with many columns, of every type, and three rows."""
    kinds = list(SPELLINGS)
    key = tuple(AnyColumn(f"k{n}", KEYS[n % len(KEYS)]) for n in range(keys))
    others = tuple(
        AnyColumn(f"c{n}", kinds[n % len(kinds)], n // len(kinds) % 2 == 1) for n in range(width)
    )
    rows = []
    for number in range(3):
        row = {each.name: each.values[0] for each in key} | {"k0": number}
        for place, each in enumerate(others):
            value = each.values[(number + place) % len(each.values)]
            row[each.name] = [value, None] if each.array else value
        rows.append(row)
    return AnyTable("Wide", dialect, key, others, tuple(rows))


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize(("keys", "width", "boost"), [(1, 250, False), (16, 120, True)])
def test_statements_stay_within_the_limits_of_spanner(
    instance: Instance, dialect: Dialect, keys: int, width: int, boost: bool
) -> None:
    table = make_wide(dialect, keys, width)
    same = edit_nothing(lambda _: None, table)  # type: ignore[arg-type]
    assert verify_copy(instance, table, same, "parquet", boost).equal
    last = dict(table.rows[2])
    last["c88"] = not last["c88"]
    edit = Edit("cell", (*table.rows[:2], last), same.names)
    report = verify_copy(instance, table, edit, "parquet", boost)
    assert [(each.kind.value, each.key["k0"]) for each in report.differences] == [("changed", 2)]
