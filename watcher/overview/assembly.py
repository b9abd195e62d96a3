"""Stored states, positions and counts -> what an operator sees. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from watcher.captures.progress import BackfillProgress
from watcher.consumers.positions import Position
from watcher.consumers.states import ConsumerStatus, State
from watcher.model.window import BEGINNING
from watcher.overview.conditions import judge
from watcher.overview.measurements import Measurements
from watcher.overview.retention import seconds_left
from watcher.overview.stored import StoredState
from watcher.overview.values import (
    BackfillOverview,
    CaptureKind,
    ConsumerOverview,
    Overview,
    Sample,
    TableOverview,
)


def assemble(
    database: str,
    now: int,
    state: StoredState,
    measured: Measurements,
    history: Mapping[str, tuple[Sample, ...]],
) -> Overview:
    """Everything, the worst consumers first; ``now`` is Spanner's time, in microseconds since
    1970."""
    names = {*state.statuses, *(position.consumer for position in state.positions)}
    consumers = [describe_consumer(name, now, state, measured) for name in names]
    return Overview(
        database=database,
        read_at=now,
        counted_at=measured.at,
        version_retention_seconds=measured.version_retention_seconds,
        consumers=tuple(
            sorted(consumers, key=lambda each: (judge(each, database).rank, each.consumer))
        ),
        backfills=tuple(
            describe_backfill(consumer, table, progress, now, measured)
            for (consumer, table), progress in state.backfills.items()
        ),
        indexes=measured.indexes,
        history=history,
    )


def describe_consumer(
    name: str, now: int, state: StoredState, measured: Measurements
) -> ConsumerOverview:
    """One consumer with its tables."""
    status = state.statuses.get(name)
    ended = status is not None and status.ended
    progress = status.progress if status else None
    positions = [each for each in state.positions if each.consumer == name]
    capture = tell_capture(name, positions, state, measured)
    return ConsumerOverview(
        consumer=name,
        state=describe_state(status),
        alive=status.alive if status else False,
        capture=capture,
        command=status.command if status else None,
        ended_at=status.updated_at if status and ended else None,
        reason=status.reason if status and ended else None,
        seen_at=status.updated_at if status else None,
        windows=progress.windows if progress else None,
        delivered_rows=progress.rows if progress else None,
        rows_per_second=round(progress.rows_per_second, 3) if progress else None,
        dead_letters=progress.dead_letters if progress else None,
        last_error=measured.errors.get(name),
        tables=tuple(describe_table(each, now, ended, capture, measured) for each in positions),
    )


def describe_state(status: ConsumerStatus | None) -> str:
    """The state of a consumer. Releases before 0.2 stored NOT_STARTED when a run had ended."""
    if status is None:
        return str(State.NOT_STARTED)
    if status.ended and status.state is State.NOT_STARTED:
        return str(State.STOPPED)
    return str(status.state)


def tell_capture(
    name: str, positions: Sequence[Position], state: StoredState, measured: Measurements
) -> CaptureKind:
    """What the consumer has stored; earlier releases stored nothing for readers of change
    streams."""
    selection = state.selections.get(name)
    if selection is not None:
        return CaptureKind.CHANGE_STREAM if selection.streamed else CaptureKind.POLL
    streamed = any(measured.find_stream_retention(each.table) is not None for each in positions)
    return CaptureKind.CHANGE_STREAM if streamed else CaptureKind.POLL


def describe_table(
    position: Position, now: int, ended: bool, capture: CaptureKind, measured: Measurements
) -> TableOverview:
    """One table of a consumer. A position at the beginning has no age: nothing is lost before the
    first row that there is."""
    micros = position.micros
    began = micros != BEGINNING
    stream = measured.find_stream_retention(position.table)
    streamed = capture is CaptureKind.CHANGE_STREAM and stream is not None and began
    polled = capture is CaptureKind.POLL and began
    versions = measured.version_retention_seconds
    return TableOverview(
        table=position.table,
        position=micros,
        lag_seconds=round((now - micros) / 1_000_000, 3) if began and not ended else None,
        rows_behind=measured.behind.get((position.consumer, position.table)),
        lost_in_seconds=seconds_left(micros, stream, now) if streamed and stream else None,
        exact_for_seconds=seconds_left(micros, versions, now) if polled else None,
        note=measured.notes.get(position.table) if capture is CaptureKind.POLL else None,
    )


def describe_backfill(
    consumer: str, table: str, progress: BackfillProgress, now: int, measured: Measurements
) -> BackfillOverview:
    """One backfill."""
    return BackfillOverview(
        consumer=consumer,
        table=table,
        at=progress.at,
        after=progress.after,
        left=measured.left.get((consumer, table)),
        exact_for_seconds=seconds_left(progress.at, measured.version_retention_seconds, now),
    )
