"""The tables of the random statements: stored at the server, a WITH clause for the reference."""

from __future__ import annotations

import re

from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from reference.rarer_templates import items

COLUMNS = {
    "K": "INT64",
    "I": "INT64",
    "F": "FLOAT64",
    "G": "FLOAT32",
    "N": "NUMERIC",
    "S": "STRING",
    "S2": "STRING",
    "Y": "BYTES",
    "B": "BOOL",
    "D": "DATE",
    "T": "TIMESTAMP",
    "J": "JSON",
    "U": "UUID",
    "L": "ARRAY<INT64>",
    "W": "ARRAY<STRING>",
}
A = r"""
1, 5, 1.5, 0.5, 2.25, 'abc', 'b', b'abc', TRUE, '2024-02-29', '2024-02-29 10:00:00.5+00',
JSON '{"a": 1, "b": [true, {"c": "d"}]}', CAST('aaaaaaaa-0000-4000-8000-000000000000' AS UUID),
[1, 2], ['a', 'b'];

2, -3, -0.25, 0.1, -1.5, 'a,b', 'B', b'', FALSE, '1999-12-31', '1999-12-31 23:59:59.999999+00',
JSON '[1, "a", null]', CAST('11111111-0000-4000-8000-000000000000' AS UUID), [], ['b', NULL];

3, 5, 100.0, -7, 12345.678, '', 'é', b'\xff\x00', NULL, '2020-01-01', '1970-01-01 00:00:00+00',
JSON '"x"', NULL, [3, NULL, 3], [];

4, NULL, NULL, NULL, NULL, NULL, 'b', NULL, TRUE, NULL, NULL, NULL, NULL, NULL, NULL;

5, 0, CAST('nan' AS FLOAT64), 3.5, 0, 'ABC abc', NULL, b'a,b', FALSE, '2021-11-07',
'2021-11-07 05:30:00+00', JSON '2.50', CAST('aaaaaaaa-0000-4000-8000-000000000000' AS UUID), [7],
['abc'];

6, 12, -2.0, 1e10, 0.000000001, 'b', 'a', b'b', TRUE, '2024-12-30', '2024-03-10 10:00:00+00',
JSON 'null', CAST('ffffffff-0000-4000-8000-000000000000' AS UUID), [-1, 0, 1], ['a', 'a', '']
"""
B = r"""
1, 5, 2.5, 1, 1, 'abc', 'x', b'x', TRUE, '2024-02-29', '2024-02-29 10:00:00.5+00', JSON '{}', NULL,
[1], ['x'];

2, NULL, 1.5, 2, 2.25, 'b', NULL, b'abc', NULL, '2020-01-01', NULL, JSON '[]', NULL, [], NULL;

5, -3, 0.0, 3, NULL, NULL, 'b', NULL, FALSE, NULL, '1970-01-01 00:00:00+00', JSON '1',
CAST('aaaaaaaa-0000-4000-8000-000000000000' AS UUID), NULL, ['a', 'b'];

7, 12, -2.0, 4, -1.5, 'ABC abc', 'a', b'', TRUE, '1999-12-31', '2024-03-10 10:00:00+00', NULL,
CAST('ffffffff-0000-4000-8000-000000000000' AS UUID), [2, 1], []
"""
ROWS = {"A": items(A), "B": items(B)}
LENGTHS = {"STRING": "STRING(MAX)", "BYTES": "BYTES(MAX)", "ARRAY<STRING>": "ARRAY<STRING(MAX)>"}


def schema() -> list[str]:
    """The tables as DDL, one with an index."""
    columns = ", ".join(f"{name} {LENGTHS.get(kind, kind)}" for name, kind in COLUMNS.items())
    tables = [f"CREATE TABLE {table} ({columns}) PRIMARY KEY (K)" for table in ROWS]
    return [*tables, "CREATE INDEX AByI ON A (I)", "CREATE INDEX BByS ON B (S) STORING (F)"]


def fill(database: Database) -> None:
    """Writes the rows."""

    def write(transaction: Transaction) -> None:
        names = ", ".join(COLUMNS)
        for table, rows in ROWS.items():
            values = ", ".join(f"({row})" for row in rows)
            transaction.execute_update(f"INSERT INTO {table} ({names}) VALUES {values}")

    database.run_in_transaction(write)


def with_clause(sql: str) -> str:
    """The tables that ``sql`` may name, for the reference; "" where it names none.

    A statement's own WITH begins after it with a comma.
    """
    fields = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    tables = []
    for table, rows in ROWS.items():
        if not re.search(rf"\b{table}\b", sql):
            continue
        structs = ", ".join(f"({row})" for row in rows)
        tables.append(f"{table} AS (SELECT * FROM UNNEST(ARRAY<STRUCT<{fields}>>[{structs}]))")
    return f"WITH {', '.join(tables)}" if tables else ""
