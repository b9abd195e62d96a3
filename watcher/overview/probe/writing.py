"""Probes of the commit timestamp that a write puts into a row."""

from __future__ import annotations

from collections.abc import Callable

from ddl.model.schema import Dialect
from watcher.overview.probe.context import Observation, ProbeContext
from watcher.overview.probe.tables import KEY, VALUE

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
            f" ON CONFLICT ({k}) DO UPDATE SET {v} = excluded.{v}"
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
