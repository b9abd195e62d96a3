"""What an operator sees, as JSON: names and units of ``status --json`` where both have them."""

from __future__ import annotations

from collections.abc import Iterable

from watcher.consumers.clearing.by_index import ROWS_PER_TRANSACTION
from watcher.consumers.states import StoredError
from watcher.overview.conditions import Health, judge
from watcher.overview.lag_history import Lag
from watcher.overview.observer import ExactCounts
from watcher.overview.values import (
    BackfillOverview,
    ConsumerOverview,
    Count,
    IndexOverview,
    Overview,
    ProofOverview,
    Sample,
    TableOverview,
)
from watcher.spanner.timestamps import format_timestamp

Json = dict[str, object]


def describe_overview(overview: Overview) -> Json:
    """Everything; times are RFC 3339, lengths of time are seconds."""
    return {
        "database": overview.database,
        "read_at": format_timestamp(overview.read_at),
        "counted_at": describe_time(overview.counted_at),
        "version_retention_seconds": overview.version_retention_seconds,
        "consumers": [
            describe_consumer(each, judge(each, overview.database)) for each in overview.consumers
        ],
        "backfills": [describe_backfill(each) for each in overview.backfills],
        "indexes": [describe_index(each) for each in overview.indexes],
    }


def describe_consumer(consumer: ConsumerOverview, health: Health) -> Json:
    """One consumer, its tables inside."""
    return {
        "consumer": consumer.consumer,
        **describe_health(health),
        "state": consumer.state,
        "alive": consumer.alive,
        "capture": str(consumer.capture),
        "command": str(consumer.command) if consumer.command else None,
        "ended_at": describe_time(consumer.ended_at),
        "reason": consumer.reason,
        "windows": consumer.windows,
        "delivered_rows": consumer.delivered_rows,
        "rows_per_second": consumer.rows_per_second,
        "dead_letters": consumer.dead_letters,
        "lag_seconds": consumer.lag_seconds,
        "lag_rows": describe_count(consumer.rows_behind),
        "lost_in_seconds": consumer.lost_in_seconds,
        "exact_for_seconds": consumer.exact_for_seconds,
        "last_error": describe_error(consumer.last_error),
        "tables": [describe_table(each) for each in consumer.tables],
    }


def describe_health(health: Health) -> Json:
    """What is the matter with a consumer: the worst, and everything."""
    return {
        "condition": str(health.worst.condition),
        "level": str(health.worst.level),
        "findings": [
            {
                "condition": str(each.condition),
                "level": str(each.level),
                "since": describe_time(each.since),
                "text": each.text,
                "advice": each.advice,
                "command": each.command,
            }
            for each in health.findings
        ],
    }


def describe_table(table: TableOverview) -> Json:
    """One table of a consumer."""
    return {
        "table": table.table,
        "position": format_timestamp(table.position),
        "lag_seconds": table.lag_seconds,
        "lag_rows": describe_count(table.rows_behind),
        "lost_in_seconds": table.lost_in_seconds,
        "exact_for_seconds": table.exact_for_seconds,
        "note": table.note,
        "proof": describe_proof(table.proof),
    }


def describe_proof(proof: ProofOverview | None) -> Json | None:
    """What is proved of a table's copy."""
    if proof is None:
        return None
    return {"at": describe_time(proof.at), "share": proof.share, "text": proof.text}


def describe_backfill(backfill: BackfillOverview) -> Json:
    """One backfill."""
    return {
        "consumer": backfill.consumer,
        "table": backfill.table,
        "snapshot_at": format_timestamp(backfill.at),
        "after": backfill.after,
        "rows_left": describe_count(backfill.left),
        "exact_for_seconds": backfill.exact_for_seconds,
    }


def describe_index(index: IndexOverview) -> Json:
    """One index."""
    clearable = index.clearable
    return {
        "table": index.table,
        "index": index.index,
        "counted_at": format_timestamp(index.counted_at),
        "rows": describe_count(index.rows),
        "shards": [
            {"shard": each.shard} | {"rows": describe_count(each.count)} for each in index.shards
        ],
        "clears": index.clears,
        "clearable": describe_count(clearable),
        "clearable_transactions": count_transactions(clearable),
        "slowest_consumer": index.slowest_consumer,
    }


def describe_samples(samples: Iterable[Sample]) -> list[Json]:
    """The rows of each shard at times before, the oldest first."""
    return [{"at": format_timestamp(each.at), "rows": each.rows} for each in samples]


def describe_lags(lags: Iterable[Lag]) -> list[Json]:
    """The lag of a consumer at times before, the oldest first."""
    return [{"at": format_timestamp(each.at), "seconds": each.seconds} for each in lags]


def describe_exact(counts: ExactCounts) -> Json:
    """A table that was counted whole."""
    return {
        "table": counts.table,
        "at": format_timestamp(counts.at),
        "rows": counts.rows,
        "clearable": counts.clearable,
        "backfills": [
            {"consumer": consumer, "rows_left": left, "rows": rows}
            for consumer, (left, rows) in counts.backfills.items()
        ],
    }


def count_transactions(clearable: Count | None) -> int | None:
    """How many transactions clear so many rows with the method 'index', at least."""
    return None if clearable is None else -(-clearable.rows // ROWS_PER_TRANSACTION)


def describe_count(count: Count | None) -> Json | None:
    """A count; with ``at_least`` there may be more."""
    return None if count is None else {"rows": count.rows, "at_least": count.at_least}


def describe_error(error: StoredError | None) -> Json | None:
    """A stored error."""
    if error is None:
        return None
    return {
        "at": format_timestamp(error.occurred_at),
        "kind": error.kind,
        "message": error.message,
    }


def describe_time(micros: int | None) -> str | None:
    """A time, if there is one."""
    return None if micros is None else format_timestamp(micros)
