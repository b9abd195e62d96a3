"""Models of machine learning are kept, checked and shown; predictions are UNIMPLEMENTED."""

from __future__ import annotations

import pytest
from fixtures.queries import ask, change
from google.api_core.exceptions import GoogleAPICallError, MethodNotImplemented
from google.cloud.spanner_v1.database import Database

ENDPOINT = "'//aiplatform.googleapis.com/projects/p/locations/l/endpoints/e'"
COLUMNS = (
    "INPUT (F INT64, G ARRAY<FLOAT64> OPTIONS (required = false)) OUTPUT (L STRING(MAX), B BOOL)"
)
MODEL = f"CREATE MODEL M {COLUMNS} REMOTE OPTIONS (endpoint = {ENDPOINT})"
OTHER = MODEL.replace("M ", "N ")
TOLD = (
    "INPUT( F INT64, G ARRAY<FLOAT64> OPTIONS ( required = false ), )"
    " OUTPUT( L STRING(MAX), B BOOL, )"
)
pytestmark = pytest.mark.ddl(MODEL)


def flatten(statements: list[str]) -> list[str]:
    return [" ".join(each.split()) for each in statements]


def test_a_model_is_told_altered_replaced_and_dropped(database: Database) -> None:
    told = change(
        database,
        "CREATE MODEL IF NOT EXISTS m INPUT (X INT64) OUTPUT (Y INT64) REMOTE"
        f" OPTIONS (endpoint = {ENDPOINT})",
        f"ALTER MODEL M SET OPTIONS (endpoint = NULL, endpoints = [{ENDPOINT}, {ENDPOINT}],"
        " default_batch_size = 2)",
        "ALTER MODEL IF EXISTS Missing SET OPTIONS (default_batch_size = 1)",
    )
    assert flatten(told) == [
        f"CREATE MODEL M {TOLD} REMOTE OPTIONS ( endpoints = [{ENDPOINT}, {ENDPOINT}],"
        " default_batch_size = 2 )"
    ]
    told = change(database, MODEL.replace("CREATE", "CREATE OR REPLACE").replace("F INT64, ", ""))
    assert "G ARRAY<FLOAT64> OPTIONS ( required = false )" in told[0]
    assert "INT64" not in told[0]
    assert change(database, "DROP MODEL M", "DROP MODEL IF EXISTS M") == []
    told = change(database, MODEL)
    assert flatten(told) == [f"CREATE MODEL M {TOLD} REMOTE OPTIONS ( endpoint = {ENDPOINT} )"]
    change(database, "DROP MODEL M")
    assert change(database, *told) == told


def test_the_catalog_shows_models(database: Database) -> None:
    assert ask(database, "SELECT * FROM INFORMATION_SCHEMA.MODELS").rows == [("", "", "M", True)]
    assert ask(database, "SELECT * FROM INFORMATION_SCHEMA.MODEL_OPTIONS").rows == [
        ("", "", "M", "endpoint", "STRING", ENDPOINT.strip("'"))
    ]
    columns = ask(
        database,
        "SELECT COLUMN_KIND, COLUMN_NAME, ORDINAL_POSITION, DATA_TYPE, IS_EXPLICIT"
        " FROM INFORMATION_SCHEMA.MODEL_COLUMNS ORDER BY COLUMN_KIND, ORDINAL_POSITION",
    )
    assert columns.rows == [
        ("INPUT", "F", 1, "INT64", True),
        ("INPUT", "G", 2, "ARRAY<FLOAT64>", True),
        ("OUTPUT", "L", 1, "STRING(MAX)", True),
        ("OUTPUT", "B", 2, "BOOL", True),
    ]
    assert ask(database, "SELECT * FROM INFORMATION_SCHEMA.MODEL_COLUMN_OPTIONS").rows == [
        ("", "", "M", "INPUT", "G", "required", "BOOL", "FALSE")
    ]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (MODEL, "Duplicate name"),
        ("CREATE TABLE m (K INT64) PRIMARY KEY (K)", "Duplicate name"),
        (OTHER.replace(" REMOTE", ""), "Model N must specify REMOTE"),
        (OTHER.replace(COLUMNS, ""), "Please use explicit INPUT clause"),
        (OTHER.partition(" OPTIONS (endpoint")[0], "Option is required"),
        (OTHER.replace("endpoint", "x", 1), "Option: x is unknown"),
        (OTHER.replace(ENDPOINT, "1"), "Unexpected value for option: endpoint"),
        (OTHER.replace("required", "needed"), "Option: needed is unknown"),
        (OTHER.replace("= false", "= 1"), "Unexpected value for option: requ"),
        (
            OTHER.replace("F INT64", "F NUMERIC"),
            "Type NUMERIC is not supported",
        ),
        (OTHER.replace("(MAX)", "(9)"), "Length is not supported in model"),
        (OTHER.replace("B BOOL", "l BOOL"), "differ only in case: l, L"),
        (OTHER.replace("B BOOL", "L BOOL"), "Duplicate name in schema: N.L"),
        (
            OTHER.replace("B BOOL", "B BOOL NOT NULL"),
            "NOT NULL constraint is n",
        ),
        (
            OTHER.replace("B BOOL", "B BOOL DEFAULT (TRUE)"),
            "Default values are",
        ),
        ("ALTER MODEL M SET OPTIONS (default_batch_size = 11)", "Must be between 1 and 10"),
        (f"ALTER MODEL M SET OPTIONS (endpoints = [{ENDPOINT}])", "cannot be specified together"),
        (OTHER.replace("B BOOL", "F BOOL"), "Duplicate name in schema: N.F"),
        (OTHER.replace("B BOOL", "B ARRAY<ARRAY<BOOL>>"), "Array of arrays type is not supported"),
        ("ALTER MODEL N SET OPTIONS (default_batch_size = 1)", "Model not found: N"),
        ("DROP MODEL N", "not found: N"),
    ],
)
def test_what_no_model_may_be_is_refused(database: Database, statement: str, message: str) -> None:
    with pytest.raises(GoogleAPICallError, match=message):
        change(database, statement)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM ML.PREDICT(MODEL M, (SELECT 1 AS F))",
        "SELECT * FROM SAFE.ML.PREDICT(MODEL M, (SELECT 1 AS F))",
    ],
)
def test_predictions_are_named(database: Database, query: str) -> None:
    with pytest.raises(MethodNotImplemented, match=r"ML\.PREDICT"):
        ask(database, query)
