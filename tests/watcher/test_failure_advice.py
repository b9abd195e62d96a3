"""What an error of Spanner's advises follows from its cause."""

from __future__ import annotations

import pytest
from google.api_core.exceptions import Forbidden, GoogleAPICallError, InvalidArgument, NotFound

from watcher.cli.failures import explain_answer
from watcher.model.errors import AccessDeniedError, DatabaseNotFoundError, SchemaChangedError
from watcher.spanner.failures import suggest_fix

PLACE = "projects/p1/instances/i1/databases/schema"
CASES: list[tuple[GoogleAPICallError, str, type[Exception]]] = [
    (NotFound(f"Database not found: {PLACE}"), "name of the database", DatabaseNotFoundError),
    (NotFound("Instance not found: projects/p"), "name of the database", DatabaseNotFoundError),
    (NotFound("Column not found in table A: N"), "table or a column", SchemaChangedError),
    (NotFound("Table not found: A"), "table or a column", SchemaChangedError),
    (InvalidArgument("Unrecognized name: N [at 1:8]"), "table or a column", SchemaChangedError),
    (InvalidArgument('[ERROR] relation "a" does not exist'), "table or a col", SchemaChangedError),
    (InvalidArgument('column "n" does not exist'), "table or a column", SchemaChangedError),
    (NotFound("Index not found on table A: I"), "create the index", DatabaseNotFoundError),
    (Forbidden("no"), "grant roles", AccessDeniedError),
]


@pytest.mark.parametrize(("error", "advice", "kind"), CASES)
def test_the_advice_follows_from_the_cause(
    error: GoogleAPICallError, advice: str, kind: type[Exception]
) -> None:
    assert advice in suggest_fix(error)
    explained = explain_answer(error)
    assert isinstance(explained, kind)
    assert advice in str(explained)


def test_what_is_unknown_is_not_guessed() -> None:
    assert suggest_fix(NotFound("Backup not found: b")) == ""
