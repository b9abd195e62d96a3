"""Short names for what the conformance tests do with a database, through the official client.

``Transaction`` speaks to the API itself where the client's classes would not let a test do what the
server must refuse.
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Sequence
from typing import Any

from google.cloud.spanner_v1 import (
    CommitRequest,
    ExecuteBatchDmlRequest,
    ExecuteBatchDmlResponse,
    ExecuteSqlRequest,
    KeySet,
    ReadRequest,
    TransactionOptions,
    TransactionSelector,
)
from google.cloud.spanner_v1 import types as messages
from google.cloud.spanner_v1.database import Database

Rows = list[list[Any]]
Change = Callable[[Any], None]
SENTINEL = "spanner.commit_timestamp()"
ALL = KeySet(all_=True)


def ddl(database: Database, *statements: str) -> None:
    """Changes the schema."""
    database.update_ddl(statements).result(60)


def rows(database: Database, sql: str, **bound: Any) -> Rows:
    """A strong query, or one at a bound such as ``read_timestamp``."""
    with database.snapshot(**bound) as snapshot:
        return [list(row) for row in snapshot.execute_sql(sql)]


def read(
    database: Database, table: str, columns: str, keys: KeySet = ALL, index: str = "", **bound: Any
) -> Rows:
    """A strong read by key, or one at a bound."""
    with database.snapshot(**bound) as snapshot:
        result = snapshot.read(table, columns.split(), keys, index=index)
        return [list(row) for row in result]


def change(method: str, table: str, columns: str, *values: Sequence[Any]) -> Change:
    """A mutation: insert, update, insert_or_update or replace."""
    return lambda batch: getattr(batch, method)(table, columns.split(), values)


def insert(table: str, columns: str, *values: Sequence[Any]) -> Change:
    """The most frequent mutation."""
    return change("insert", table, columns, *values)


def delete(table: str, keys: KeySet | Sequence[Any]) -> Change:
    """Deletes the rows of a key set, or of one key."""
    chosen = keys if isinstance(keys, KeySet) else KeySet(keys=[list(keys)])
    return lambda batch: batch.delete(table, chosen)


def commit(database: Database, *changes: Change) -> datetime.datetime:
    """Mutations in one transaction; its commit timestamp."""
    with database.batch() as batch:
        for each in changes:
            each(batch)
    committed: datetime.datetime = batch.committed
    return committed


def dml(database: Database, *statements: str) -> Rows:
    """Statements in one transaction; the rows that the last one returns."""

    def work(transaction: Any) -> Rows:
        returned: Rows = []
        for sql in statements:
            returned = [list(row) for row in transaction.execute_sql(sql)]
        return returned

    last: Rows = database.run_in_transaction(work)
    return last


def wire_value(value: Any) -> Any:
    """A value as the API has it in a list of values: INT64 as text, bytes in Base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return [wire_value(item) for item in value] if isinstance(value, list | tuple) else value


def wire_rows(values: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows or keys as the API has them."""
    return [[wire_value(value) for value in row] for row in values]


def key_set_message(keys: KeySet) -> messages.KeySet:
    """A key set without ranges, as the API has it."""
    assert not keys.ranges, "a transaction of these tests takes keys, or all"
    return messages.KeySet(keys=wire_rows(keys.keys), all_=keys.all_)


READ_WRITE = TransactionOptions(read_write=TransactionOptions.ReadWrite())
READ_ONLY = TransactionOptions(
    read_only=TransactionOptions.ReadOnly(strong=True, return_read_timestamp=True)
)
PARTITIONED = TransactionOptions(partitioned_dml=TransactionOptions.PartitionedDml())


class Transaction:
    """A transaction that can be used after an error, if the server allows it."""

    def __init__(self, database: Database, options: TransactionOptions = READ_WRITE) -> None:
        self._api = database.spanner_api
        self._session = self._api.create_session(database=database.name).name
        begun = self._api.begin_transaction(session=self._session, options=options)
        self.read_timestamp = begun.read_timestamp
        self._take(begun.id)
        self._seqno = 0

    @classmethod
    def begin_with(cls, database: Database, sql: str, way: str) -> Transaction:
        """A transaction that its first statement begins, numbered 1; ``way`` is sql or batch."""
        transaction = cls.__new__(cls)
        transaction._api = database.spanner_api
        transaction._session = transaction._api.create_session(database=database.name).name
        transaction._selector = TransactionSelector(begin=READ_WRITE)
        transaction._seqno = 1
        if way == "sql":
            request = ExecuteSqlRequest(
                session=transaction._session, transaction=transaction._selector, sql=sql, seqno=1
            )
            answer = transaction._api.execute_sql(request=request)
        else:
            answer = transaction.execute_numbered_batch([sql], 1).result_sets[0]
        transaction._take(answer.metadata.transaction.id)
        return transaction

    def _take(self, identity: bytes) -> None:
        self._selector = TransactionSelector(id=identity)
        self._id = identity

    def sql(self, text: str) -> Rows:
        """A query or DML statement; the values as the wire has them."""
        self._seqno += 1
        request = ExecuteSqlRequest(
            session=self._session, transaction=self._selector, sql=text, seqno=self._seqno
        )
        return [list(row) for row in self._api.execute_sql(request=request).rows]

    def execute_numbered(self, text: str, seqno: int, *, streaming: bool = False) -> int:
        """DML under a number of the caller's; how many rows it wrote."""
        request = ExecuteSqlRequest(
            session=self._session, transaction=self._selector, sql=text, seqno=seqno
        )
        if streaming:
            *_, last = self._api.execute_streaming_sql(request=request)
            return int(last.stats.row_count_exact)
        return int(self._api.execute_sql(request=request).stats.row_count_exact)

    def batch_dml(self, *statements: str) -> int:
        """Several statements at once; the code of the status."""
        self._seqno += 1
        return int(self.execute_numbered_batch(statements, self._seqno).status.code)

    def execute_numbered_batch(
        self, statements: Sequence[str], seqno: int
    ) -> ExecuteBatchDmlResponse:
        """Several statements under a number of the caller's; the whole answer."""
        request = ExecuteBatchDmlRequest(
            session=self._session,
            transaction=self._selector,
            statements=[ExecuteBatchDmlRequest.Statement(sql=sql) for sql in statements],
            seqno=seqno,
        )
        answer: ExecuteBatchDmlResponse = self._api.execute_batch_dml(request=request)
        return answer

    def read(self, table: str, columns: str, *key: Any, index: str = "") -> Rows:
        """The row of a key, or every row."""
        keys = KeySet(keys=[list(key)]) if key else ALL
        request = ReadRequest(
            session=self._session,
            transaction=self._selector,
            table=table,
            index=index,
            columns=columns.split(),
            key_set=key_set_message(keys),
        )
        return [list(row) for row in self._api.read(request=request).rows]

    def commit(self, *changes: Change) -> datetime.datetime:
        """Ends the transaction with mutations."""
        mutations = Mutations()
        for each in changes:
            each(mutations)
        request = CommitRequest(
            session=self._session, transaction_id=self._id, mutations=mutations.messages
        )
        committed: datetime.datetime = self._api.commit(request=request).commit_timestamp
        return committed

    def rollback(self) -> None:
        """Rolls the transaction back."""
        self._api.rollback(session=self._session, transaction_id=self._id)


class Mutations:
    """Collects changes, as a batch of the client does."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def insert(self, table: str, columns: Sequence[str], values: Sequence[Any]) -> None:
        """A mutation that inserts."""
        write = {"table": table, "columns": columns, "values": wire_rows(values)}
        self.messages.append({"insert": write})

    def update(self, table: str, columns: Sequence[str], values: Sequence[Any]) -> None:
        """A mutation that updates."""
        write = {"table": table, "columns": columns, "values": wire_rows(values)}
        self.messages.append({"update": write})

    def insert_or_update(self, table: str, columns: Sequence[str], values: Sequence[Any]) -> None:
        """A mutation that inserts or updates."""
        write = {"table": table, "columns": columns, "values": wire_rows(values)}
        self.messages.append({"insert_or_update": write})

    def delete(self, table: str, keys: KeySet) -> None:
        """A mutation that deletes."""
        self.messages.append({"delete": {"table": table, "key_set": key_set_message(keys)}})
