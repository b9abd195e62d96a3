"""Parameters of every type, of arrays and structs, and without a declared type."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from fixtures.queries import ask
from google.api_core import exceptions
from google.cloud.spanner_v1 import JsonObject, Type, TypeCode, param_types
from google.cloud.spanner_v1.database import Database

NAME = param_types.Struct(
    [
        param_types.StructField("First", param_types.STRING),
        param_types.StructField("Last", param_types.STRING),
    ]
)
PERSON = param_types.Struct(
    [
        param_types.StructField("Id", param_types.INT64),
        param_types.StructField("Name", NAME),
        param_types.StructField(
            "Tags", Type(code=TypeCode.ARRAY, array_element_type=param_types.STRING)
        ),
    ]
)


def array(element: Type) -> Type:
    return Type(code=TypeCode.ARRAY, array_element_type=element)


VALUES: list[tuple[Type, object]] = [
    (param_types.BOOL, True),
    (param_types.INT64, -(2**63)),
    (param_types.FLOAT64, 1.5),
    (param_types.NUMERIC, Decimal("-2353250901550135.12453024")),
    (param_types.STRING, "stré\0"),
    (param_types.BYTES, b"Ynl0ZXM="),
    (param_types.DATE, datetime.date(1970, 1, 11)),
    (param_types.TIMESTAMP, datetime.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=datetime.UTC)),
    (param_types.JSON, JsonObject({"key": 123})),
    (array(param_types.BOOL), [True, None, False]),
    (array(param_types.INT64), []),
    (array(param_types.STRING), ["a", None]),
    (array(param_types.BYTES), [b"YQ==", None]),
    (array(param_types.FLOAT64), [1.5, float("inf")]),
    (array(param_types.NUMERIC), [Decimal("1.5")]),
    (array(param_types.DATE), [datetime.date(2024, 2, 29)]),
]


@pytest.mark.parametrize(("type_", "value"), VALUES, ids=[repr(v) for _, v in VALUES])
@pytest.mark.parametrize("null", [False, True])
def test_a_declared_parameter_comes_back(
    blank: Database, type_: Type, value: object, null: bool
) -> None:
    bound = None if null else value
    answer = ask(blank, "SELECT @P AS p, @p IS NULL", {"p": bound}, {"p": type_})
    assert answer.rows == [(bound, null)]


# The parameter as JSON has it, a query, the type that its place asks for, the value.
UNDECLARED: list[tuple[object, str, str, object]] = [
    ("str", "@p", "STRING", "str"),
    ("str", "@p = 'str'", "BOOL", True),
    ("-1", "@p + 1", "INT64", 0),
    ("-1", "ABS(@p)", "INT64", 1),
    ("YQ==", "@p = b'a'", "BOOL", True),
    ("2024-02-29", "@p > DATE '2024-01-01'", "BOOL", True),
    ("2024-02-29", "DATE_ADD(@p, INTERVAL 1 DAY)", "DATE", datetime.date(2024, 3, 1)),
    ("1.5", "NUMERIC '1' + @p", "NUMERIC", Decimal("2.5")),
    ("3", "[1, 2, 3][OFFSET(0)] < @p", "BOOL", True),
    ("2", "2 IN (@p, 3)", "BOOL", True),
    ("x", "CASE WHEN TRUE THEN @p ELSE 'y' END", "STRING", "x"),
    ("x", "COALESCE(@p, 'y')", "STRING", "x"),
    ("12", "CAST(@p AS INT64)", "INT64", 12),
    ("2", "(SELECT COUNT(*) FROM UNNEST([1, 2, 3]) AS x WHERE x < @p)", "INT64", 1),
    ("2", "ARRAY_LENGTH(ARRAY(SELECT 1 FROM UNNEST([1, 2, 3]) LIMIT @p))", "INT64", 2),
]


@pytest.mark.parametrize(
    ("bound", "expression", "type_", "value"), UNDECLARED, ids=[u[1] for u in UNDECLARED]
)
def test_an_undeclared_parameter_has_the_type_of_its_place(
    blank: Database, bound: object, expression: str, type_: str, value: object
) -> None:
    answer = ask(blank, f"SELECT {expression}", {"p": bound}, {})
    assert (answer.types, answer.value) == ([type_], value)


def test_parameters_are_found_without_regard_to_case_and_may_be_unused(blank: Database) -> None:
    answer = ask(
        blank,
        "SELECT @ONE + @one",
        {"One": 2, "unused": "x"},
        {"One": param_types.INT64, "unused": param_types.STRING},
    )
    assert answer.value == 4


def test_a_parameter_that_is_not_given_is_refused(blank: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        ask(blank, "SELECT @any > 1")


def test_the_fields_of_a_struct_are_used_but_it_is_no_result(blank: Database) -> None:
    params = {"p": (1, ("Test", None), ["a", "b"])}
    types = {"p": PERSON}
    sql = "SELECT @p.Id, @p.Name.First, @p.name.last, @p.Tags[OFFSET(1)], ARRAY_LENGTH(@p.Tags)"
    assert ask(blank, sql, params, types).rows == [(1, "Test", None, "b", 2)]
    assert ask(blank, "SELECT t FROM UNNEST(@p.Tags) AS t", params, types).rows == [("a",), ("b",)]
    equal = "SELECT @p.Name = STRUCT('Test', 'x'), ('Test', 'x') IN UNNEST([@p.Name])"
    assert ask(blank, equal, params, types).rows == [(None, None)]
    with pytest.raises(exceptions.MethodNotImplemented):
        ask(blank, "SELECT @p", params, types)
    with pytest.raises(exceptions.InvalidArgument):
        ask(blank, "SELECT @p.Nope", params, types)


def test_an_array_of_structs_is_a_table_and_no_result(blank: Database) -> None:
    params: dict[str, object] = {"people": [(1, ("A", "B"), []), None, (2, None, None)]}
    types = {"people": array(PERSON)}
    sql = (
        "SELECT o, p.Id, p.Name.First, ARRAY_LENGTH(Tags) FROM UNNEST(@people) AS p"
        " WITH OFFSET AS o ORDER BY o"
    )
    assert ask(blank, sql, params, types).rows == [
        (0, 1, "A", 0),
        (1, None, None, None),
        (2, 2, None, None),
    ]
    for refused in ("SELECT @people", "SELECT (@people) AS p"):
        with pytest.raises(exceptions.MethodNotImplemented, match="null-valued array of struct"):
            ask(blank, refused, params, types)
    answer = ask(blank, "SELECT ARRAY(SELECT p FROM UNNEST(@people) AS p)", params, types)
    assert answer.types == [
        "ARRAY<STRUCT<Id INT64, Name STRUCT<First STRING, Last STRING>, Tags ARRAY<STRING>>>"
    ]
    assert answer.value == [[1, ["A", "B"], []], None, [2, None, None]]


def test_rows_are_looked_up_by_an_array_of_struct_keys(blank: Database) -> None:
    pair = param_types.Struct(
        [
            param_types.StructField("a", param_types.INT64),
            param_types.StructField("b", param_types.STRING),
        ]
    )
    sql = (
        "SELECT x FROM UNNEST([1, 2, 3]) AS x WHERE STRUCT<a INT64, b STRING>(x, 'k')"
        " IN UNNEST(@keys) ORDER BY x"
    )
    keys = [(1, "k"), (2, "other"), (3, "k")]
    assert ask(blank, sql, {"keys": keys}, {"keys": array(pair)}).rows == [(1,), (3,)]
