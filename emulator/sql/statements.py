"""What a compiled statement is: SQLite text and everything the engine must know to run it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from emulator.values.requests import ResultColumn
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Index, Table


class TableSource(Protocol):
    """How a table is read in a FROM clause; given by the engine (now, or as of a timestamp)."""

    def __call__(self, table: Table, index: Index | None, alias: str) -> str:
        """SQLite text such as ``"Singers" AS "s" INDEXED BY "..."``; columns keep their names."""
        ...


@dataclass(frozen=True, slots=True)
class Bindings:
    """The parameters of the SQLite text, all named.

    User parameters appear as ``:p_<name in lower case>`` and stand in ``user`` with their types
    (declared, or inferred when the client sent none). ``now`` and ``commit`` say whether the engine
    must bind ``:now_`` (CURRENT_TIMESTAMP) and ``:commit_`` (PENDING_COMMIT_TIMESTAMP), both text.
    """

    user: tuple[ResultColumn, ...] = ()
    now: bool = False
    commit: bool = False


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A SELECT. ``tables`` are the user tables read; ``catalog`` the INFORMATION_SCHEMA views.

    A query reads either user tables or the catalog, never both (as in Spanner). ``draws`` says
    that it takes values of sequences; ``views`` are those that it reads, directly or not, and
    ``functions`` the user's functions that it calls.
    """

    sql: str
    columns: tuple[ResultColumn, ...]
    bindings: Bindings
    tables: tuple[str, ...] = ()
    catalog: tuple[str, ...] = ()
    draws: bool = False
    views: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Returning:
    """THEN RETURN: result columns and their SQLite expressions over the changed row.

    With ``action`` the last column says INSERT, UPDATE or DELETE, and has no expression.
    """

    columns: tuple[ResultColumn, ...]
    expressions: tuple[str, ...]
    action: bool = False


@dataclass(frozen=True, slots=True)
class OnConflict:
    """ON CONFLICT: what is done with a row that is there already.

    ``keys`` are the columns of the primary key or of a unique index; none: every one of them
    counts. Without ``assignments`` nothing is done. Those, and ``where_sql``, refer to the row that
    is there by the table's name, and to the new row by ``:excluded_<place of the column>``.
    """

    keys: tuple[tuple[str, ...], ...]
    assignments: tuple[tuple[str, str], ...] | None = None
    where_sql: str = "TRUE"


@dataclass(frozen=True, slots=True)
class Insert:
    """``mode`` is "insert", "update" (OR UPDATE) or "ignore" (OR IGNORE).

    ``rows_sql`` is a SQLite SELECT or VALUES that gives ``columns`` in order; DEFAULT in VALUES is
    already replaced by the column's expression. ``asserted_rows``: the statement fails unless it
    modifies so many.
    """

    table: str
    columns: tuple[str, ...]
    rows_sql: str
    mode: str
    bindings: Bindings
    tables: tuple[str, ...] = ()
    returning: Returning | None = None
    on_conflict: OnConflict | None = None
    asserted_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """``assignments`` pair a column with a SQLite expression over the old row.

    ``where_sql`` and the expressions refer to the target by ``alias``. ``index`` is a forced one.
    """

    table: str
    alias: str
    assignments: tuple[tuple[str, str], ...]
    where_sql: str
    bindings: Bindings
    tables: tuple[str, ...] = ()
    index: str | None = None
    returning: Returning | None = None
    asserted_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """As ``Update``, without assignments."""

    table: str
    alias: str
    where_sql: str
    bindings: Bindings
    tables: tuple[str, ...] = ()
    index: str | None = None
    returning: Returning | None = None
    asserted_rows: int | None = None


Statement = CompiledQuery | Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar expression over one table's columns (generated column, default, check)."""

    sql: str
    type: Type
    columns: tuple[str, ...]
    bindings: Bindings
    draws: bool = False


BEGINS_DML = re.compile(
    r"(?:\s|--[^\n]*|\#[^\n]*|(?>/\*.*?\*/)|@\{[^}]*\})*+(?:INSERT|UPDATE|DELETE)\b", re.I | re.S
)


def begins_dml(text: str) -> bool:
    """Whether a statement is DML by its first word: behind blanks, comments and hints."""
    return BEGINS_DML.match(text) is not None
