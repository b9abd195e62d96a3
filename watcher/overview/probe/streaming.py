"""Probes of change streams."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from spanner_schema.model.schema import Dialect
from watcher.captures import statements
from watcher.captures.change_stream.lineage import Lineage
from watcher.captures.change_stream.listening import Listening
from watcher.captures.change_stream.record_values import (
    ChildPartition,
    DataRecord,
    Heartbeat,
    Record,
    StreamMod,
)
from watcher.captures.change_stream.records import decode_records
from watcher.overview.probe.context import CannotTryError, Observation, ProbeContext
from watcher.overview.probe.tables import HIDDEN, KEY, OTHER, VALUE
from watcher.overview.probe.writing import update_text

HEARTBEAT_MILLISECONDS = 1_000
QUIET_MICROS = 10_000_000
"""So long a probe waits for a heartbeat at most."""
OPEN_MICROS = 6_000_000
"""So long a probe keeps queries open."""
WRITERS = 4
"""So many transactions commit beside each other."""
SPREAD_KEYS = 24
"""So many keys are in several partitions, where there are several."""

Key = tuple[int, int]
"""A commit timestamp, and the key of a row."""


def query_stream(
    context: ProbeContext, token: str | None, start: int, end: int
) -> Iterator[Record]:
    """The records of a partition, or the partitions themselves; both ends are inside."""
    stream = context.queries.stream
    statement = statements.read_change_stream(
        context.names.stream, start, end, token, HEARTBEAT_MILLISECONDS, stream.sql, False
    )
    return decode_records(stream.query(statement, None, with_stats=False))


def read_stream(context: ProbeContext, start: int, end: int) -> Iterator[tuple[str, DataRecord]]:
    """Every record from a timestamp to another, with the token of its partition."""
    lineage = Lineage(end)
    for record in query_stream(context, None, start, end):
        if isinstance(record, ChildPartition):
            lineage.announce(record)
    while (child := lineage.take_next()) is not None:
        for record in query_stream(context, child.token, max(child.start, start), end):
            if isinstance(record, ChildPartition):
                lineage.announce(record)
            elif isinstance(record, DataRecord):
                yield child.token, record


def list_changes(context: ProbeContext, start: int, end: int) -> list[Key]:
    """The commit timestamp and the key of every change, as often as it is there."""
    return [
        (record.commit_timestamp, int(json.loads(mod.key)[KEY]))
        for _, record in read_stream(context, start, end)
        for mod in record.mods
    ]


def write_spread(context: ProbeContext, keys: list[int], value: str) -> int:
    """Writes many keys in one commit; its timestamp."""
    rows = [(key, value) for key in keys]
    return context.write(lambda b: b.insert_or_update(context.rows.name, (KEY, VALUE), rows))


def probe_partitions(context: ProbeContext) -> Observation:
    """Reads the stream from several starts in the past, by partitions that each start names."""
    keys = [context.take_key() for _ in range(SPREAD_KEYS)]
    commits = [write_spread(context, keys, f"version {number}") for number in range(5)]
    end = commits[-1]
    for number, start in enumerate(commits[:3]):
        expected = {(at, key) for at in commits[number + 1 : -1] for key in keys}
        missing = expected - set(list_changes(context, start, end))
        if missing:
            return Observation(
                False,
                f"read from {start}, {len(missing)} of {len(expected)} changes are in no partition"
                " that the query without a token names",
            )
    tokens = {token for token, _ in read_stream(context, commits[0], end)}
    return Observation(True, f"3 starts, {SPREAD_KEYS} keys in {len(tokens)} partitions")


def probe_heartbeats(context: ProbeContext) -> Observation:
    """Keeps the partition of a row open until a heartbeat, then writes the row."""
    key = context.take_key()
    began = context.insert(key)
    token = find_partition(context, began, context.update(key, "second"), key)
    beat: int | None = None
    committed = 0
    for record in query_stream(context, token, began, began + QUIET_MICROS):
        if isinstance(record, ChildPartition):
            raise CannotTryError("the partition ended while it was read")
        if isinstance(record, Heartbeat) and beat is None:
            beat = record.timestamp
            committed = context.update(key, "third")
        elif isinstance(record, DataRecord) and record.commit_timestamp == committed:
            break
    if beat is None:
        raise CannotTryError(f"no heartbeat came within {QUIET_MICROS // 1_000_000} s")
    return Observation(
        committed > beat, f"after a heartbeat of {beat} a record of {committed} followed"
    )


def find_partition(context: ProbeContext, start: int, end: int, key: int) -> str:
    """The partition in which the changes of a key are now."""
    for token, record in read_stream(context, start, end):
        if any(int(json.loads(mod.key)[KEY]) == key for mod in record.mods):
            return token
    raise CannotTryError("the change of a row is in no partition of the stream")


def probe_start(context: ProbeContext) -> Observation:
    """Reads from the timestamp of a commit on."""
    key = context.take_key()
    at, end = context.insert(key), context.update(key, "second")
    holds = (at, key) in list_changes(context, at, end)
    return Observation(
        holds, f"read from {at}, the change of {at} is {'' if holds else 'not '}there"
    )


def probe_end(context: ProbeContext) -> Observation:
    """Reads up to the timestamp of a commit."""
    key = context.take_key()
    start, at = context.insert(key), context.update(key, "second")
    holds = (at, key) in list_changes(context, start, at)
    return Observation(
        holds, f"read up to {at}, the change of {at} is {'' if holds else 'not '}there"
    )


def probe_open_queries(context: ProbeContext) -> Observation:
    """Commits while queries are open whose end is to come. Commits say what time it is: what strong
    reads say is another probe's question."""
    start = context.insert(context.take_key()) + 1
    end = start + OPEN_MICROS
    heard = threading.Event()

    def query(token: str | None, begin: int) -> Iterator[Record]:
        return query_stream(context, token, begin, end)

    listening = Listening(query, lambda _: True, start, heard.set)
    context.insert(context.take_key())
    heard.wait(2 * OPEN_MICROS / 1_000_000)
    now = context.insert(context.take_key())
    listening.close()
    if listening.futile:
        raise CannotTryError("the queries failed, or the stream has too many partitions")
    holds = heard.is_set() and now < end
    return Observation(
        holds, f"a query up to {end} returned a record {'before' if holds else 'not before'} {now}"
    )


def probe_order(context: ProbeContext) -> Observation:
    """Reads many commits of the same keys."""
    keys = [context.take_key() for _ in range(SPREAD_KEYS)]
    commits = [write_spread(context, keys, f"version {number}") for number in range(6)]
    newest: dict[str, int] = {}
    seen: list[Key] = []
    for token, record in read_stream(context, commits[0], commits[-1]):
        if record.commit_timestamp < newest.get(token, 0):
            return Observation(
                False,
                f"a record of {record.commit_timestamp} follows one of {newest[token]} in its"
                " partition",
            )
        newest[token] = record.commit_timestamp
        seen += [(record.commit_timestamp, int(json.loads(mod.key)[KEY])) for mod in record.mods]
    inside = [each for each in seen if commits[0] < each[0] < commits[-1]]
    repeated = len(inside) - len(set(inside))
    return Observation(not repeated, f"{len(inside)} changes in order, {repeated} of them repeated")


def probe_transaction_ids(context: ProbeContext) -> Observation:
    """Commits beside each other, each of rows of its own in several partitions."""
    keys = [[context.take_key() for _ in range(SPREAD_KEYS)] for _ in range(WRITERS)]
    start = context.insert(context.take_key())
    with ThreadPoolExecutor(WRITERS) as threads:
        commits = list(threads.map(lambda each: write_spread(context, each, "beside"), keys))
    end = context.insert(context.take_key())
    writers = {key: number for number, each in enumerate(keys) for key in each}
    ids: dict[int, set[str]] = {number: set() for number in range(WRITERS)}
    for _, record in read_stream(context, start, end):
        for mod in record.mods:
            if (writer := writers.get(int(json.loads(mod.key)[KEY]))) is not None:
                ids[writer].add(record.transaction_id)
    names = {name for each in ids.values() for name in each}
    holds = len(names) == WRITERS and all(len(each) == 1 for each in ids.values())
    return Observation(
        holds,
        f"{len(names)} ids of {WRITERS} transactions, which committed at"
        f" {len(set(commits))} timestamps",
    )


def probe_exclusion(context: ProbeContext) -> Observation:
    """Partitioned DML that no stream is to record."""
    key = context.take_key()
    start = context.insert(key)
    text, values, types = context.bind(update_text(context, "'excluded'"), {"key": key})
    context.database.execute_partitioned_dml(
        text, values, types, exclude_txn_from_change_streams=True
    )
    before_end = context.update(key, "recorded")
    end = context.update(key, "last")
    own = [at for at, changed in list_changes(context, start, end) if changed == key]
    extra = [at for at in own if at not in {start, before_end, end}]
    return Observation(
        not extra, f"{len(extra)} records of the excluded statement, {len(own)} in all"
    )


def find_mod(context: ProbeContext, start: int, end: int, key: int, at: int) -> StreamMod:
    """The change of a key at a timestamp. Raises CannotTryError where there is none."""
    for _, record in read_stream(context, start, end):
        for mod in record.mods if record.commit_timestamp == at else ():
            if int(json.loads(mod.key)[KEY]) == key:
                return mod
    raise CannotTryError("the change of a row is in no partition of the stream")


def change_once(context: ProbeContext) -> StreamMod:
    """The record of an update of one column of a row that has three."""
    key = context.take_key()
    rows, columns = [(key, "first", "other", "hidden")], (KEY, VALUE, OTHER, HIDDEN)
    start = context.write(lambda batch: batch.insert(context.rows.name, columns, rows))
    at = context.update(key, "second")
    return find_mod(context, start, context.update(key, "third"), key, at)


def probe_old_values(context: ProbeContext) -> Observation:
    """The old value of the column that an update wrote."""
    old = json.loads(change_once(context).old or "{}").get(VALUE)
    return Observation(old == "first", f"the old value of a record is {old!r}")


def probe_new_row(context: ProbeContext) -> Observation:
    """The value of a column that an update did not write."""
    new = json.loads(change_once(context).new or "{}").get(OTHER)
    return Observation(new == "other", f"the value of a column that was not written is {new!r}")


def probe_generated(context: ProbeContext) -> Observation:
    """The shard, a generated column, in the record of an update."""
    shard = context.rows.shard_column
    new = json.loads(change_once(context).new or "{}")
    return Observation(shard not in new, f"a record has values of {', '.join(new)}")


def probe_hidden(context: ProbeContext) -> Observation:
    """The value of a HIDDEN column in the record of an insert."""
    if context.sql.dialect is Dialect.POSTGRESQL:
        raise CannotTryError("the PostgreSQL dialect has no HIDDEN columns")
    key = context.take_key()
    rows, columns = [(key, "hidden")], (KEY, HIDDEN)
    start = context.insert(context.take_key())
    at = context.write(lambda batch: batch.insert(context.rows.name, columns, rows))
    mod = find_mod(context, start, context.update(key, "second"), key, at)
    new = json.loads(mod.new or "{}").get(HIDDEN)
    return Observation(new == "hidden", f"the value of a HIDDEN column is {new!r}")
