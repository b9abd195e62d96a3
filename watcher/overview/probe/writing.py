"""Probes of the commit timestamp that a write puts into a row."""

from __future__ import annotations

from collections.abc import Callable

from google.api_core.exceptions import FailedPrecondition, InvalidArgument
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.transaction import Transaction

from spanner_schema.model.schema import Dialect
from watcher.overview.probe.context import Observation, ProbeContext
from watcher.overview.probe.tables import KEY, VALUE
from watcher.spanner.transactions import run_optimistically

Write = Callable[[ProbeContext, int], int]
"""Writes a row that is there; the commit timestamp."""


def compare_timestamp(write: Write) -> Callable[[ProbeContext], Observation]:
    """A probe: whether a row that is there has the commit timestamp of a write to it."""

    def probe(context: ProbeContext) -> Observation:
        key = context.take_key()
        before = context.insert(key)
        committed = write(context, key)
        stored = context.read_timestamp(key)
        if stored == committed:
            return Observation(True, "the row holds the commit timestamp of the write")
        kept = "its earlier commit timestamp" if stored == before else f"the timestamp {stored}"
        return Observation(False, f"the row holds {kept}, not {committed}, that of the write")

    return probe


def update_by_dml(context: ProbeContext, key: int) -> int:
    """UPDATE with another value."""
    return context.run_dml(update_text(context, "@value"), {"value": "second", "key": key})


def update_to_same_value(context: ProbeContext, key: int) -> int:
    """UPDATE that sets a column to what it is."""
    text = update_text(context, context.sql.quote_column(VALUE))
    return context.run_dml(text, {"key": key})


def update_text(context: ProbeContext, value: str) -> str:
    """An UPDATE of one row."""
    q = context.sql.quote_column
    return (
        f"UPDATE {context.sql.quote(context.rows.name)} SET {q(VALUE)} = {value}"  # noqa: S608 (quoted)
        f" WHERE {q(KEY)} = @key"
    )


def update_by_mutation(context: ProbeContext, key: int) -> int:
    """The mutation update."""
    return context.update(key, "second")


def upsert_by_mutation(context: ProbeContext, key: int) -> int:
    """The mutation insert-or-update."""
    rows = [(key, "second")]
    return context.write(lambda b: b.insert_or_update(context.rows.name, (KEY, VALUE), rows))


def upsert_by_dml(context: ProbeContext, key: int) -> int:
    """INSERT that becomes an update."""
    sql = context.sql
    k, v, table = sql.quote_column(KEY), sql.quote_column(VALUE), sql.quote(context.rows.name)
    if sql.dialect is Dialect.POSTGRESQL:
        text = (
            f"INSERT INTO {table} ({k}, {v}) VALUES (@key, @value)"  # noqa: S608 (quoted)
            f" ON CONFLICT ({k}) DO UPDATE SET {k} = excluded.{k}, {v} = excluded.{v}"
        )
    else:
        text = f"INSERT OR UPDATE INTO {table} ({k}, {v}) VALUES (@key, @value)"  # noqa: S608 (quoted)
    return context.run_dml(text, {"key": key, "value": "second"})


def replace_by_mutation(context: ProbeContext, key: int) -> int:
    """The mutation replace."""
    rows = [(key, "second")]
    return context.write(lambda batch: batch.replace(context.rows.name, (KEY, VALUE), rows))


def probe_upserts(context: ProbeContext) -> Observation:
    """Both kinds of upserts."""
    by_mutation = compare_timestamp(upsert_by_mutation)(context)
    return by_mutation if not by_mutation.holds else compare_timestamp(upsert_by_dml)(context)


def probe_key_only(context: ProbeContext) -> Observation:
    """Names a row that is there by its key alone, by mutation and by DML."""
    key, sql, table = context.take_key(), context.sql, context.rows.name
    context.insert(key)
    before = context.read_timestamp(key)  # whether it has one is another probe's question
    context.write(lambda batch: batch.insert_or_update(table, (KEY,), [(key,)]))
    by_mutation = context.read_timestamp(key)
    if by_mutation == before:
        k, name = sql.quote_column(KEY), sql.quote(table)
        text = (
            f"INSERT INTO {name} ({k}) VALUES (@key) ON CONFLICT ({k})"  # noqa: S608 (quoted)
            f" DO UPDATE SET {k} = excluded.{k}"
            if sql.dialect is Dialect.POSTGRESQL
            else f"INSERT OR UPDATE INTO {name} ({k}) VALUES (@key)"  # noqa: S608 (quoted)
        )
        context.run_dml(text, {"key": key})
    after = context.read_timestamp(key)
    return Observation(after == before, f"the row holds {after}; before the writes {before}")


def probe_partitioned(context: ProbeContext) -> Observation:
    """Partitioned DML says nothing of its commit timestamps: they are above that of the insert."""
    key = context.take_key()
    before = context.insert(key)
    text = update_text(context, "'second'")
    text, values, types = context.bind(text, {"key": key})
    context.database.execute_partitioned_dml(text, values, types)
    stored = context.read_timestamp(key)
    holds = stored is not None and stored > before
    return Observation(holds, f"the row holds {stored}; before the statement it held {before}")


def probe_inserts(context: ProbeContext) -> Observation:
    """Inserts a row by mutation and one by DML."""
    sql, (by_mutation, by_dml) = context.sql, (context.take_key(), context.take_key())
    k, v, table = sql.quote_column(KEY), sql.quote_column(VALUE), sql.quote(context.rows.name)
    text = f"INSERT INTO {table} ({k}, {v}) VALUES (@key, @value)"  # noqa: S608 (quoted)
    expected = {
        by_mutation: context.insert(by_mutation),
        by_dml: context.run_dml(text, {"key": by_dml, "value": "first"}),
    }
    stored = {key: context.read_timestamp(key) for key in expected}
    return Observation(
        stored == expected,
        f"the rows hold {list(stored.values())}, the transactions committed at"
        f" {list(expected.values())}",
    )


def probe_self_assignment(context: ProbeContext) -> Observation:
    """Writes a row as clearing by ``Processed`` does."""
    key, marked = context.take_key(), context.marked
    context.insert(key, table=marked.name)
    timestamp = context.sql.quote_column(marked.timestamp_column)
    before = context.read_timestamp(key, marked)
    context.run_dml(mark_text(context, f"TRUE, {timestamp} = {timestamp}"), {"key": key})
    after = context.read_timestamp(key, marked)
    return Observation(before == after, f"the row holds {after}; before the statement {before}")


def probe_null(context: ProbeContext) -> Observation:
    """Writes a row as clearing by NULL does."""
    key, sql = context.take_key(), context.sql
    context.insert(key)
    text = (
        f"UPDATE {sql.quote(context.rows.name)}"  # noqa: S608 (quoted)
        f" SET {sql.quote_column(context.rows.timestamp_column)} = NULL"
        f" WHERE {sql.quote_column(KEY)} = @key"
    )
    context.run_dml(text, {"key": key})
    stored = context.read_timestamp(key)
    return Observation(stored is None, f"the row holds {stored or 'NULL'}")


def mark_text(context: ProbeContext, value: str) -> str:
    """An UPDATE of ``Processed`` in one row."""
    sql, processed = context.sql, context.marked.processed_column or ""
    return (
        f"UPDATE {sql.quote(context.marked.name)} SET {sql.quote_column(processed)} = {value}"  # noqa: S608 (quoted)
        f" WHERE {sql.quote_column(KEY)} = @key"
    )


def probe_read_after_dml(context: ProbeContext) -> Observation:
    """Reads a table in the transaction that has written it by DML."""
    key, sql = context.take_key(), context.sql
    context.insert(key)
    update = context.bind(update_text(context, "'second'"), {"key": key})
    text = (
        f"SELECT {sql.quote_column(VALUE)} FROM {sql.quote(context.rows.name)}"  # noqa: S608 (quoted)
        f" WHERE {sql.quote_column(KEY)} = @key"
    )

    def work(transaction: Transaction) -> list[list[str]]:
        transaction.execute_update(*update)
        return list(transaction.execute_sql(*context.bind(text, {"key": key})))

    try:
        rows = context.database.run_in_transaction(work)
    except (InvalidArgument, FailedPrecondition) as error:
        return Observation(False, f"Spanner refused: {error.message}")
    return Observation(rows == [["second"]], f"the transaction reads {rows}")


def probe_optimistic(context: ProbeContext) -> Observation:
    """Changes a row that a transaction has read, before that one commits."""
    key = context.take_key()
    context.insert(key)
    attempts = 0

    def work(transaction: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        keys = KeySet(keys=[[key]])
        list(transaction.read(context.rows.name, (VALUE,), keys))
        if attempts == 1:
            context.update(key, "of the other one")
        transaction.update(context.rows.name, (KEY, VALUE), [(key, f"attempt {attempts}")])

    run_optimistically(context.database, work)
    return Observation(attempts > 1, f"the transaction committed at attempt {attempts}")
