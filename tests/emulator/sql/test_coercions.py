"""Which type becomes which by itself: each cell of the table, in each form, through the API."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fixtures.coercion_cells import FORMS, GOOGLESQL_TYPES, PLACES, TEXTS, Cell, becomes, list_cells
from fixtures.queries import ask
from google.api_core import exceptions
from google.cloud import spanner_v1
from google.cloud.spanner_v1.database import Database

from emulator.sql.coercions import COERCIONS
from emulator.sql.postgres.type_names import show_type
from emulator.sql.types import name_of
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Dialect

VALUES: dict[str, object] = {"BOOL": True, "FLOAT32": 1.5, "FLOAT64": 1.5}
"""As JSON has them; of the others it is a text."""
UNTYPED: dict[str, set[object]] = {
    "BOOL": {True},
    "FLOAT32": {1.5},
    "FLOAT64": {1.5},
    "STRING": {"1", *TEXTS.values()},
    "BYTES": {"YQ==", "true"},
    "JSON": {"1", "true"},
}
"""The JSON that a parameter without a type may have, where it is not the one text of ``TEXTS``."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", GOOGLESQL_TYPES)
def test_each_cell_of_the_table(blank: Database, source: str, form: str) -> None:
    accepted, expected = set(), set()
    for cell in list_cells(source, form):
        if becomes(source, cell.target, form, cell.place):
            expected.add((cell.place, cell.target))
        value = cell.text if source == "STRING" else VALUES.get(source, TEXTS.get(source, "1"))
        if answers(blank, cell.sql, source if form == "parameter" else None, value):
            accepted.add((cell.place, cell.target))
    assert accepted == expected


@pytest.mark.parametrize("target", GOOGLESQL_TYPES)
def test_a_parameter_without_a_type_is_of_the_type_of_its_place(
    blank: Database, target: str
) -> None:
    """Its JSON has to be a value of that type."""
    accepted = set()
    for value in (True, 1.5, "1", *TEXTS.values()):
        for place in PLACES:
            cell = Cell("STRING", target, "parameter", place)
            if answers(blank, cell.sql.replace("CAST(NULL AS STRING)", "1"), None, value):
                accepted.add(value)
    assert accepted == UNTYPED.get(target, {TEXTS.get(target, "1")})


@pytest.mark.parametrize(
    ("first", "second"),
    [("1", "1.5"), ("DATE '2020-01-01'", "TIMESTAMP '2020-01-01 00:00:00Z'"), ("'a'", "b'a'")],
)
def test_one_without_a_type_has_one_type(blank: Database, first: str, second: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="'p' is used assuming different types"):
        ask(blank, f"SELECT @p = {first} AND @p = {second}", {"p": "1"})


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("DATE_ADD(@p, INTERVAL 1 DAY)", "DATE"),
        ("UNIX_DATE(@p)", "INT64"),
        ("[@p, DATE '2020-01-01'][OFFSET(0)]", "DATE"),
        ("IF(TRUE, @p, DATE '2020-01-01')", "DATE"),
        ("DATE '2020-01-01' BETWEEN (@p) AND @p", "BOOL"),
        ("(@p, 1) = (DATE '2020-01-01', 1)", "BOOL"),
        ("CASE @p WHEN DATE '2020-01-01' THEN 1 END", "INT64"),
        ("GREATEST(@p, DATE '2020-01-01')", "DATE"),
        ("@p", "STRING"),
        ("@p || '1'", "STRING"),
    ],
)
def test_a_string_parameter_is_a_date_where_one_is_needed(
    blank: Database, expression: str, type_: str
) -> None:
    types = {"p": spanner_v1.Type(code=spanner_v1.TypeCode.STRING)}
    assert ask(blank, f"SELECT {expression}", {"p": "2020-01-01"}, types).types == [type_]


@pytest.mark.parametrize(
    "expression",
    [
        "DATE '2020-01-01' IN UNNEST([@p])",
        "x = DATE '2020-01-01' FROM UNNEST([@p]) AS x",
        "DATE '2020-01-01' = LOWER(@p)",
        "DATE '2020-01-01' IN (SELECT @p)",
    ],
)
def test_what_is_made_of_a_parameter_is_none(blank: Database, expression: str) -> None:
    types = {"p": spanner_v1.Type(code=spanner_v1.TypeCode.STRING)}
    with pytest.raises(exceptions.InvalidArgument):
        ask(blank, f"SELECT {expression}", {"p": "2020-01-01"}, types)


def test_a_text_that_is_no_date_is_refused(blank: Database) -> None:
    types = {"p": spanner_v1.Type(code=spanner_v1.TypeCode.STRING)}
    with pytest.raises(exceptions.OutOfRange, match="date"):
        ask(blank, "SELECT @p = DATE '2020-01-01'", {"p": "today"}, types)


def test_the_documentation_lists_the_table() -> None:
    text = (Path(__file__).parents[3] / "docs" / "emulator.md").read_text()
    listed = re.findall(r"^\| (GoogleSQL|PostgreSQL) \| (.*) \| (.*) \| (.*) \|$", text, re.M)
    names = {Dialect.GOOGLESQL: name_of, Dialect.POSTGRESQL: show_type}
    assert set(listed) == {
        (
            {"googlesql": "GoogleSQL", "postgresql": "PostgreSQL"}[dialect.value],
            names[dialect](Type(source)),
            ", ".join(names[dialect](Type(target)) for target in targets),
            reach.value,
        )
        for dialect, reaches in COERCIONS.items()
        for reach, cells in reaches.items()
        for source, targets in cells.items()
    }


def answers(database: Database, sql: str, source: str | None, value: object) -> bool:
    """Whether the server answers; anything but INVALID_ARGUMENT is an error."""
    types = {"p": spanner_v1.Type(code=getattr(spanner_v1.TypeCode, source))} if source else {}
    try:
        ask(database, sql, {"p": value}, types)
    except exceptions.InvalidArgument:
        return False
    return True
