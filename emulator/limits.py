"""The limits of the server: Spanner's own where it publishes them, ours for the rest.

Those of a schema are in ``ddl.rules.limits``.
"""

from __future__ import annotations

MESSAGE_BYTES_MAX = 256 * 1024 * 1024
"""A gRPC message that is sent."""

RECEIVED_BYTES_MAX = 110 * 1024 * 1024
"""A gRPC message that is received, decompressed: above every limit, so that each is refused by
name."""
COMMIT_BYTES_MAX = 100 * 1024 * 1024
"""The request of a commit. Spanner counts what it writes, indexes and change streams included."""
REQUEST_BYTES_MAX = 10 * 1024 * 1024
"""The request of a read, a query or DML statement, a new database, a schema change."""
ADMIN_REQUEST_BYTES_MAX = 1024 * 1024
"""Any other request of the administrative API."""
REQUEST_BYTES = {
    "google.spanner.v1.CommitRequest": COMMIT_BYTES_MAX,
    "google.spanner.v1.ReadRequest": REQUEST_BYTES_MAX,
    "google.spanner.v1.ExecuteSqlRequest": REQUEST_BYTES_MAX,
    "google.spanner.admin.database.v1.CreateDatabaseRequest": REQUEST_BYTES_MAX,
    "google.spanner.admin.database.v1.UpdateDatabaseRequest": REQUEST_BYTES_MAX,
    "google.spanner.admin.database.v1.UpdateDatabaseDdlRequest": REQUEST_BYTES_MAX,
}
"""Of the requests whose size Spanner documents, by the message."""
MUTATIONS_MAX = 80_000
"""Of one commit and of one DML statement, as Spanner counts them."""
STRING_CHARACTERS_MAX = 2_621_440
CELL_BYTES_MAX = 10 * 1024 * 1024
VIEW_DEPTH_MAX = 10
"""Views that a view refers to, through each other."""

CHUNK_BYTES = 64 * 1024
"""A PartialResultSet is sent when its rows reach this size (larger ones slow the Python client)."""

PIECE_BYTES = 1024 * 1024
"""Longer rows are cut into messages of about this size, inside their values."""

ROWS_AT_ONCE_MIN = 16
ROWS_AT_ONCE_MAX = 1024
"""Rows encoded together: few at first, so that the first chunk comes soon."""

THREADS_MAX = 256
STREAMS_MAX = 192
"""Open streams hold a thread each; the rest is left for commits."""

PARTITION_READERS_MAX = 20
"""Concurrent readers of a partition of a change stream."""

SESSIONS_IN_BATCH_MAX = 100
SESSIONS_MAX = 20_000
"""Of the server; Spanner has 10,000 for each database and node."""

SESSION_IDLE_SECONDS_MAX = 3_600
"""Spanner deletes a session after an hour without use; here that makes room for new ones."""
TRANSACTIONS_KEPT_MAX = 20_000
"""Transactions that are remembered; the oldest are forgotten first."""

ERROR_BYTES_MAX = 2_400
"""An error's message, as gRPC encodes it: it travels in headers, of which clients take 8 KB."""

RESOURCE_BYTES_MAX = 600
"""The name of a missing resource, which an error's details repeat."""

ARRAY_DEPTH_MAX = 50
"""How deep declared types may nest."""

QUERY_CHARACTERS_MAX = 1_000_000
JOINS_MAX = 20
FUNCTION_CALLS_MAX = 1_000
UNIONS_MAX = 200
GROUPING_COLUMNS_MAX = 1_000
STRUCT_FIELDS_MAX = 1_000
STRUCT_DEPTH_MAX = 15
FUNCTION_DEPTH_MAX = 75
FRAMES_MAX = 3_000
"""Calls of Python in each other: a function in a statement takes up to 25, to be read."""
SUBQUERY_DEPTH_MAX = 25
"""Subqueries that are expressions, in each other."""
CHILD_SUBQUERIES_MAX = 50
"""Subqueries in the list of one SELECT, which Spanner calls the children of a subquery expression
(Google's emulator has the message, and takes 500)."""
SUBSELECT_DEPTH_MAX = 60
GROUP_DEPTH_MAX = 35
IN_ITEMS_MAX = 10_000
PARAMETERS_MAX = 950
STATEMENTS_IN_DDL_MAX = 1_000
PLACEMENTS_MAX = 50
INSTANCE_PARTITIONS_MAX = 10
SCHEDULES_MAX = 4
"""Backup schedules of a database."""

PAGE_SIZE_MAX = 1_000
PARKED_SECONDS = 30.0
PARKED_MAX = 32
"""How long a stream that a fault has cut waits for its client, and how many may wait."""

STOP_GRACE_SECONDS = 2.0

KEEPALIVE_SECONDS = 30
"""A client that was silent for so long is asked if it is there, and has as long to answer: what
one that is gone has under way ends."""

LIKE_WORK_MAX = 100_000_000
"""Characters of a value times those of a pattern with _: a second or two at worst."""

POSTGRES_CHAIN_MAX = 10_000
"""Words and signs that may stand in each other: PostgreSQL's parser recurses over them, and ends
the process where its stack does. A tree of a tenth of that depth is refused anyway."""

TEXT_FUNCTION_BYTES_MAX = 1 << 20
"""Bytes of the text that LPAD, RPAD, REPEAT, REPLACE and REGEXP_REPLACE give."""

JOINED_BYTES_MAX = 100 * 1024 * 1024
"""Of the text of an array with a delimiter between its elements; both may fill a request."""

REGULAR_EXPRESSION_WORK_MAX = 2_000_000_000
"""Bytes of a value times the instructions of a regular expression: ten seconds at worst."""

SERIES_MAX = 1_000_000
"""Rows that generate_series gives."""
