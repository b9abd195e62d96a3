"""For applications: writes the change-set id in every kind of transaction.

Tables without a commit timestamp are watched through a table of change sets: each transaction adds
one row to it, with the commit timestamp, and puts the row's id into every row that it touches. A
change set has its commit timestamp only once the rows carry its id.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.model.errors import WatcherError
from watcher.sinks.callbacks import call, refuse_deferred
from watcher.spanner.dialects import GOOGLESQL, Bound, SqlDialect, find_dialect

TABLE = "CHANGE_SETS"
COLUMN = "ChangeSetId"
TIMESTAMP = "CommitTimestamp"
PARAMETER = "change_set_id"
PUBLISHED_AT_ONCE = 1_000

Result = TypeVar("Result")
Row = Sequence[Any]


class MutationTarget(Protocol):
    """What the client's batches and transactions have in common."""

    def insert(self, table: str, columns: Sequence[str], values: Sequence[Row]) -> None:
        """Adds rows."""
        ...

    def update(self, table: str, columns: Sequence[str], values: Sequence[Row]) -> None:
        """Changes rows."""
        ...

    def insert_or_update(self, table: str, columns: Sequence[str], values: Sequence[Row]) -> None:
        """Adds or changes rows."""
        ...

    def replace(self, table: str, columns: Sequence[str], values: Sequence[Row]) -> None:
        """Adds rows, or puts them in the place of others."""
        ...

    def delete(self, table: str, keyset: KeySet) -> None:
        """Removes rows."""
        ...


class ChangeSetMutations:
    """Mutations of one transaction; those of watched tables get the change-set id."""

    def __init__(
        self, target: MutationTarget, tables: frozenset[str], column: str, number: str
    ) -> None:
        self._target = target
        self._tables = tables
        self._column = column
        self.change_set_id = number

    def insert(self, table: str, columns: Sequence[str], values: Sequence[Row]) -> None:
        """As the client's ``insert``."""
        self._target.insert(table, *self._stamp(table, columns, values))

    def update(self, table: str, columns: Sequence[str], values: Sequence[Row]) -> None:
        """As the client's ``update``."""
        self._target.update(table, *self._stamp(table, columns, values))

    def insert_or_update(self, table: str, columns: Sequence[str], values: Sequence[Row]) -> None:
        """As the client's ``insert_or_update``."""
        self._target.insert_or_update(table, *self._stamp(table, columns, values))

    def replace(self, table: str, columns: Sequence[str], values: Sequence[Row]) -> None:
        """As the client's ``replace``."""
        self._target.replace(table, *self._stamp(table, columns, values))

    def delete(self, table: str, keyset: KeySet) -> None:
        """As the client's ``delete``; polling does not see rows that are deleted."""
        self._target.delete(table, keyset)

    def _stamp(
        self, table: str, columns: Sequence[str], values: Sequence[Row]
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        if table not in self._tables or self._column in columns:
            return tuple(columns), [tuple(row) for row in values]
        rows = [(*row, self.change_set_id) for row in values]
        return (*columns, self._column), rows


class ChangeSetTransaction(ChangeSetMutations):
    """A read-write transaction. In DML, write ``ChangeSetId = @change_set_id``: the parameter is
    bound automatically."""

    def __init__(
        self,
        transaction: Transaction,
        tables: frozenset[str],
        column: str,
        number: str,
        sql: SqlDialect,
    ) -> None:
        super().__init__(transaction, tables, column, number)
        self._transaction = transaction
        self._sql = sql

    def execute_sql(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        types: Mapping[str, Any] | None = None,
    ) -> Iterator[list[Any]]:
        """As the client's ``execute_sql``."""
        bound = add_change_set(self._sql, sql, params, types, self.change_set_id)
        rows: Iterator[list[Any]] = self._transaction.execute_sql(*bound)
        return rows

    def execute_update(
        self,
        dml: str,
        params: Mapping[str, Any] | None = None,
        types: Mapping[str, Any] | None = None,
    ) -> int:
        """As the client's ``execute_update``."""
        bound = add_change_set(self._sql, dml, params, types, self.change_set_id)
        return int(self._transaction.execute_update(*bound))


def add_change_set(
    sql: SqlDialect,
    text: str,
    params: Mapping[str, Any] | None,
    types: Mapping[str, Any] | None,
    number: str,
) -> Bound:
    """A statement of an application's, with ``@change_set_id`` bound; in the PostgreSQL dialect it
    becomes the parameter after the last one."""
    bound, bound_types = dict(params or {}), dict(types or {})
    if PARAMETER in sql.place_parameters(text)[1]:
        text, name = sql.add_parameter(text, PARAMETER)
        bound[name], bound_types[name] = number, param_types.STRING
    return text, bound or None, bound_types or None


class ChangeSets:
    """Writes to a database in change sets. ``tables`` are those that carry a change-set id."""

    def __init__(
        self,
        database: Database,
        tables: Sequence[str],
        table: str = TABLE,
        column: str = COLUMN,
        timestamp: str = TIMESTAMP,
    ) -> None:
        self._database = database
        self._tables = frozenset(tables)
        self._table = table
        self._column = column
        self._timestamp = timestamp

    @contextmanager
    def batch(self) -> Iterator[ChangeSetMutations]:
        """A transaction of mutations alone, as the client's ``batch``."""
        number = str(uuid.uuid4())
        with self._database.batch() as batch:
            yield ChangeSetMutations(batch, self._tables, self._column, number)
            self._add(batch, number)

    def run_in_transaction(self, work: Callable[[ChangeSetTransaction], Result]) -> Result:
        """A read-write transaction, as the client's; ``work`` may run more than once. Raises
        ConfigurationError and WatcherError for an async function, of which nothing would be
        committed."""
        refuse_deferred(work)
        sql = find_dialect(self._database)

        def add_and_work(transaction: Transaction) -> Result:
            number = str(uuid.uuid4())
            wrapped = ChangeSetTransaction(transaction, self._tables, self._column, number, sql)
            result = call(work, wrapped, WatcherError)
            self._add(transaction, number)
            return result

        result: Result = self._database.run_in_transaction(add_and_work)
        return result

    def execute_partitioned_dml(
        self,
        dml: str,
        params: Mapping[str, Any] | None = None,
        types: Mapping[str, Any] | None = None,
    ) -> int:
        """Partitioned DML with ``@change_set_id``. Its change set gets its commit timestamp when
        every partition is done: its rows are delivered then, whole, and not before.

        Until then it is pending: without a timestamp nobody polls it and no clearing deletes it.
        When the statement fails, or the process dies, it stays so: see ``publish_pending``.
        """
        number = str(uuid.uuid4())
        with self._database.batch() as batch:
            self._put(batch, number, None)
        sql = find_dialect(self._database)
        text, bound, bound_types = add_change_set(sql, dml, params, types, number)
        count = self._database.execute_partitioned_dml(text, params=bound, param_types=bound_types)
        self._publish([number])
        return int(count)

    def publish_pending(self) -> int:
        """Makes visible what partitioned DML has written that did not come to its end, and says how
        many change sets that were. Spanner: partitions that are done stay done.

        Call it after such a statement has failed, and when a process that runs such statements
        starts again. A statement that is still under way publishes its change set again at its end:
        what is delivered early comes once more then.
        """
        sql = find_dialect(self._database)
        query = select_pending_change_sets(self._table, self._column, self._timestamp, sql)
        with self._database.snapshot() as snapshot:
            pending = [str(row[0]) for row in snapshot.execute_sql(query)]
        self._publish(pending)
        return len(pending)

    def _publish(self, numbers: Sequence[str]) -> None:
        """Gives change sets a commit timestamp; one that was cleared meanwhile is there again."""
        for first in range(0, len(numbers), PUBLISHED_AT_ONCE):
            with self._database.batch() as batch:
                for number in numbers[first : first + PUBLISHED_AT_ONCE]:
                    self._put(batch, number, COMMIT_TIMESTAMP)

    def _put(self, target: MutationTarget, number: str, timestamp: str | None) -> None:
        columns = (self._column, self._timestamp)
        target.insert_or_update(self._table, columns, [(number, timestamp)])

    def _add(self, target: MutationTarget, number: str) -> None:
        target.insert(self._table, (self._column, self._timestamp), [(number, COMMIT_TIMESTAMP)])


def select_pending_change_sets(
    table: str, id_column: str, timestamp_column: str, sql: SqlDialect = GOOGLESQL
) -> str:
    """The ids of change sets whose rows are being written."""
    source = sql.render_table(table, (id_column, timestamp_column))
    return (
        f"SELECT {sql.quote_column(id_column)} FROM {source}"  # noqa: S608
        f" WHERE {sql.quote_column(timestamp_column)} IS NULL"
    )
