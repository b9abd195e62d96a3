"""Spanner's limits, as https://cloud.google.com/spanner/quotas lists them: each number is taken,
and one beyond it is refused. Those of the number of objects in a schema are in
``tests/conformance/test_limits.py``, those of a plan in ``tests/ddl/test_spanner_limits.py``."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from fixtures.queries import ask, fill
from google.api_core import exceptions
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from emulator import limits
from emulator.engine.refusals import too_many_mutations
from emulator.services.calls import check_bytes, find_bytes_max
from emulator.wire import messages as m
from emulator.wire.status import error_details

SCHEMA = (
    "CREATE TABLE T (Id INT64, S STRING(MAX), B BYTES(MAX), J JSON) PRIMARY KEY (Id)",
    "CREATE TABLE K (K STRING(MAX)) PRIMARY KEY (K)",
    "CREATE TABLE Wide (Id INT64, A INT64, B INT64, C INT64) PRIMARY KEY (Id)",
)


@dataclass(frozen=True, slots=True)
class Limit:
    """``run`` does something of a size; ``number`` is what the documentation says of it."""

    number: int
    run: Callable[[Database, int], object]
    message: str


def nest(opening: str, middle: str, closing: str) -> Callable[[Database, int], object]:
    """A query that nests so deep."""
    return lambda database, count: ask(
        database, "SELECT " + opening * count + middle + closing * count
    )


def write_key(database: Database, size: int) -> None:
    with database.batch() as batch:
        batch.insert("K", ("K",), [("k" * size,)])


def write_cell(column: str, make: Callable[[int], object]) -> Callable[[Database, int], object]:
    def run(database: Database, size: int) -> None:
        with database.batch() as batch:
            batch.insert_or_update("T", ("Id", column), [(1, make(size))])

    return run


def write_rows(database: Database, mutations: int) -> None:
    """Rows of four columns, and the last one of fewer."""
    whole, rest = divmod(mutations, 4)
    names = ("Id", "A", "B", "C")
    with database.batch() as batch:
        batch.insert("Wide", names, [(n, 1, 1, 1) for n in range(whole)])
        if rest:
            batch.insert("Wide", names[:rest], [(whole, *(1,) * (rest - 1))])


def update_rows(database: Database, mutations: int) -> None:
    """A statement that writes a column of each row, and each row's key."""
    ask_for = (mutations + 1) // 2
    fill(
        database,
        "INSERT INTO Wide (Id, A) SELECT a * 1000 + b, 0"
        " FROM UNNEST(GENERATE_ARRAY(0, 999)) AS a, UNNEST(GENERATE_ARRAY(0, 999)) AS b"
        f" WHERE a * 1000 + b < {ask_for}",
    )


def create_views(database: Database, depth: int) -> None:
    views = [f"CREATE VIEW V{depth}_0 SQL SECURITY INVOKER AS SELECT T.Id FROM T"]
    views += [
        f"CREATE VIEW V{depth}_{n} SQL SECURITY INVOKER AS SELECT v.Id FROM V{depth}_{n - 1} AS v"
        for n in range(1, depth + 1)
    ]
    database.update_ddl(views).result(60)


def bind(database: Database, count: int) -> None:
    names = [f"p{n}" for n in range(count)]
    with database.snapshot() as snapshot:
        list(
            snapshot.execute_sql(
                "SELECT " + ", ".join(f"@{name} AS {name}" for name in names),
                params=dict.fromkeys(names, 1),
                param_types=dict.fromkeys(names, param_types.INT64),
            )
        )


def join(database: Database, count: int) -> object:
    joins = "".join(f" JOIN K AS k{n} ON k{n}.K = k.K" for n in range(count))
    return ask(database, f"SELECT k.K FROM K AS k{joins}")


def nest_subselects(database: Database, count: int) -> object:
    return ask(database, "SELECT a FROM (" * (count - 1) + "SELECT 1 AS a" + ")" * (count - 1))


def nest_groups(database: Database, count: int) -> object:
    opening = "SELECT Id FROM (" * (count - 1)
    middle = "SELECT Id FROM Wide GROUP BY Id"
    return ask(database, opening + middle + ") GROUP BY Id" * (count - 1))


def send_text(database: Database, size: int) -> None:
    """A query whose parameter fills its request up to this size, but for some bytes."""
    room = size - 500 if size == limits.REQUEST_BYTES_MAX else size
    with database.snapshot() as snapshot:
        list(
            snapshot.execute_sql(
                "SELECT BYTE_LENGTH(@p)",
                params={"p": base64.b64encode(b"b" * (room * 3 // 4))},
                param_types={"p": param_types.BYTES},
            )
        )


def test_too_many_mutations_have_the_link_by_which_clients_know_them() -> None:
    (help_,) = error_details(too_many_mutations())
    (link,) = help_.links
    assert link.description == "Cloud Spanner limits documentation."
    assert link.url == "https://cloud.google.com/spanner/docs/limits"


LIMITS = {
    "size of a key": Limit(8 * 1024, write_key, "exceeds the maximum of 8192 bytes"),
    "characters of a STRING cell": Limit(
        2_621_440, write_cell("S", lambda size: "é" * size), "exceeds the maximum size limit"
    ),
    "bytes of a cell": Limit(
        10 * 1024 * 1024,
        write_cell("B", lambda size: base64.b64encode(b"b" * size)),
        "exceeds the maximum size limit",
    ),
    "mutations in a commit": Limit(80_000, write_rows, "too many mutations"),
    "mutations in a DML statement": Limit(80_000, update_rows, "too many mutations"),
    "depth of views": Limit(10, create_views, "more than 10 deep"),
    "parameters": Limit(950, bind, "Number of parameters in query exceeds"),
    "joins": Limit(20, join, "Number of joins exceeds"),
    "nested function calls": Limit(75, nest("ABS(", "1", ")"), "nested boolean predicates exceeds"),
    "nested subquery expressions": Limit(
        25, nest("(SELECT ", "1", ")"), "Number of nested subqueries exceeds"
    ),
    "children of a subquery expression": Limit(
        50,
        lambda database, count: ask(database, f"SELECT {', '.join(['(SELECT 1)'] * count)}"),
        "Number of child subqueries exceeds",
    ),
    "nested subselects": Limit(60, nest_subselects, "Number of nested subselects exceeds"),
    "nested GROUP BY": Limit(35, nest_groups, "Number of nested aggregations exceeds"),
    "values in IN": Limit(
        10_000,
        lambda database, count: ask(
            database, f"SELECT 1 IN ({', '.join(str(n) for n in range(count))})"
        ),
        "An IN list exceeds",
    ),
    "function calls": Limit(
        1_000,
        lambda database, count: ask(  # the array is a call, too
            database, f"SELECT [{', '.join(['ABS(1)'] * (count - 1))}]"
        ),
        "Number of functions exceeds",
    ),
    "fields of a STRUCT": Limit(
        1_000,
        lambda database, count: ask(
            database, f"SELECT STRUCT({', '.join(f'1 AS f{n}' for n in range(count))}).f0"
        ),
        "Number of struct fields exceeds",
    ),
    "queries in a UNION": Limit(
        200,
        lambda database, count: ask(database, " UNION ALL ".join(["SELECT 1"] * count)),
        "Number of UNION operations exceeds",
    ),
    "characters of a statement": Limit(
        1_000_000,
        lambda database, count: ask(database, "SELECT 1 -- ".ljust(count, "x")),
        "1000000",
    ),
    "bytes of a request": Limit(
        10 * 1024 * 1024,
        send_text,
        "more than the maximum of 10485760 bytes",
    ),
}
"""By what the documentation calls them."""


@pytest.mark.parametrize("what", LIMITS)
@pytest.mark.ddl(*SCHEMA)
def test_a_limit_is_held_and_one_more_is_refused(database: Database, what: str) -> None:
    limit = LIMITS[what]
    beyond = limit.number + (2 if what == "mutations in a DML statement" else 1)
    with pytest.raises(exceptions.GoogleAPICallError, match=limit.message):
        limit.run(database, beyond)
    limit.run(database, limit.number)


@pytest.mark.parametrize(
    ("request_class", "bytes_max"),
    [
        (m.CommitRequest, 100 * 1024 * 1024),
        (m.ReadRequest, 10 * 1024 * 1024),
        (m.ExecuteSqlRequest, 10 * 1024 * 1024),
        (m.UpdateDatabaseDdlRequest, 10 * 1024 * 1024),
        (m.CreateDatabaseRequest, 10 * 1024 * 1024),
        (m.CreateInstanceRequest, 1024 * 1024),
    ],
)
def test_a_request_has_the_size_of_its_kind(request_class: type, bytes_max: int) -> None:
    descriptor = request_class.DESCRIPTOR  # type: ignore[attr-defined]
    assert find_bytes_max(descriptor.full_name) == bytes_max
    field = next(f.name for f in descriptor.fields if f.type == f.TYPE_STRING and not f.is_repeated)
    head = request_class(**{field: "x" * bytes_max}).ByteSize() - bytes_max
    check_bytes(request_class(**{field: "x" * (bytes_max - head)}), bytes_max)
    with pytest.raises(Exception, match=f"more than the maximum of {bytes_max} bytes"):
        check_bytes(request_class(**{field: "x" * (bytes_max - head + 1)}), bytes_max)
