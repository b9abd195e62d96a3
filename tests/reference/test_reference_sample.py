"""A fixed sample of random statements; ``make reference`` runs any number of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fixtures.coercion_cells import FORMS, GOOGLESQL_TYPES, becomes, list_cells
from fixtures.server import connect

from emulator.process import ServerProcess
from reference import tables
from reference.answers import Answer, Comparison
from reference.judge import Reference, is_installed
from reference.run import Sides, make_expressions, make_queries, run

pytestmark = [
    pytest.mark.skipif(not is_installed(), reason="GoogleSQL's reference is not installed"),
]
EXPRESSIONS, QUERIES = 200, 100


@pytest.fixture(scope="module")
def sides(server: ServerProcess) -> Iterator[Sides]:
    database = connect(server.address).database("reference", ddl_statements=tables.schema())
    database.create().result(60)
    tables.fill(database)
    with Reference() as reference:
        yield Sides(database, reference)
    database.drop()


def test_a_sample_of_expressions_and_queries_agrees(sides: Sides) -> None:
    expressions = run(sides, "expressions", make_expressions(7, EXPRESSIONS), shown=True)
    queries = run(sides, "queries", make_queries(7, QUERIES), shown=True)
    assert expressions.differences + queries.differences == []
    assert expressions.counts["the same"] > EXPRESSIONS * 0.8
    assert queries.counts["the same"] > QUERIES * 0.7


def test_the_cells_of_the_table_of_coercions_are_the_references(sides: Sides) -> None:
    wrong = []
    for cell in (
        c for form in FORMS for source in GOOGLESQL_TYPES for c in list_cells(source, form)
    ):
        parameter = cell.source if cell.form == "parameter" else ""
        answer = sides.reference.ask(cell.sql, parameter)
        if (answer.refusal is None) != becomes(cell.source, cell.target, cell.form, cell.place):
            wrong.append((cell, answer.refusal))
    assert wrong == []


@pytest.mark.parametrize(
    ("reference", "server", "difference"),
    [
        (Answer((("x", "INT64"),), [["1"]]), Answer((("x", "INT64"),), [["2"]]), "another result"),
        (Answer((("x", "INT64"),), [["1"]]), Answer((("y", "INT64"),), [["1"]]), "other columns"),
        (
            Answer((("x", "INT64"),), [["1"]]),
            Answer(refusal="INVALID_ARGUMENT: no"),
            "refused, the reference accepts it",
        ),
        (
            Answer(refusal="no"),
            Answer((("x", "INT64"),), [["1"]]),
            "accepted, the reference refuses it",
        ),
        (Answer(refusal="no"), Answer(refusal="INTERNAL: oh"), "INTERNAL"),
        (Answer(refusal="no"), Answer(refusal="OUT_OF_RANGE: no"), None),
        (
            Answer((("x", "FLOAT64"),), [[0.1], [2.0]]),
            Answer((("x", "FLOAT64"),), [[2.0], [0.1 + 1e-17]]),
            None,
        ),
    ],
)
def test_answers_are_compared(reference: Answer, server: Answer, difference: str | None) -> None:
    assert Comparison("SELECT", reference, server).difference == difference


def test_ordered_rows_are_compared_in_their_order() -> None:
    columns = (("x", "INT64"),)
    first, second = Answer(columns, [["1"], ["2"]]), Answer(columns, [["2"], ["1"]])
    assert Comparison("SELECT", first, second).difference is None
    assert Comparison("SELECT", first, second, is_ordered=True).difference == "another result"
