"""How fast batches take each form that Spark shows, by column and change by change.

Only the shaping is measured, in one process: neither server nor network nor Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from benchmarks.scenario import Bench, Figure, Scenario, make_bar_chart
from benchmarks.shaped_rows import (
    COLUMNS,
    DATABASE,
    TABLE,
    make_polled_rows,
    make_streamed_rows,
)
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed, StreamRows
from watcher.captures.changes import iterate_changes
from watcher.change import ValueCapture
from watcher.envelopes import make_envelope
from watcher.envelopes.by_column.messages import MESSAGE
from watcher.runners.spark.shapes import (
    ENVELOPE,
    ID_FIELD,
    STREAM_ENVELOPE,
    STREAM_FIELDS,
    shape_changes,
    shape_encoded,
    shape_envelope,
    shape_messages,
    shape_stored,
    shape_typed,
)
from watcher.spanner.results.columns import TIMESTAMP, build_schema
from watcher.spanner.results.supported_types import Nanoseconds

Work = Callable[[], pa.RecordBatch]
COUNTED_ROWS = 100_000
"""CPU time is given for so many rows."""


class FormsSettings(BaseModel):
    """``rows`` are shaped at once, as a capture hands them over: 7 columns of about 430 bytes. The
    best of ``runs`` counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Annotated[int, Field(ge=100)] = 10_000
    runs: Annotated[int, Field(ge=1)] = 5


def run(settings: FormsSettings, bench: Bench) -> None:
    """A row of the table for each form."""
    for form, (by_column, by_row) in list_forms(settings.rows).items():
        bench.add(measure_form(form, by_column, by_row, settings))
    bench.outcome.charts.append(
        make_bar_chart("rows/s of CPU time, by form", "form", "rows/s", bench.outcome.figures)
    )


def list_forms(rows: int) -> dict[str, tuple[Work, Work | None]]:
    """The work of each form, by column and, where that is still in the product, by row."""
    polled = make_polled_rows(rows)
    streamed = make_streamed_rows(rows, ValueCapture.NEW_ROW_AND_OLD_VALUES)
    stored = pa.schema([*build_schema(COLUMNS), (COMMIT_TIMESTAMP_COLUMN, TIMESTAMP), ID_FIELD])
    typed = pa.schema([*stored, *STREAM_FIELDS])
    return {
        "poll, columns": (lambda: shape_stored(polled, stored), None),
        "poll, several tables": envelope_works(polled, ENVELOPE),
        "poll, debezium": message_works(polled, "debezium"),
        "poll, datastream": message_works(polled, "datastream"),
        "change stream, columns": (partial(shape_own_columns, streamed, typed), None),
        "change stream, several tables": envelope_works(streamed, STREAM_ENVELOPE),
        "change stream, debezium": message_works(streamed, "debezium"),
        "change stream, datastream": message_works(streamed, "datastream"),
    }


def shape_own_columns(rows: StreamRows, shown: pa.Schema) -> pa.RecordBatch:
    """Changes in the columns of their table."""
    return shape_typed(rows, TABLE, shown, Nanoseconds.TRUNCATE)


def envelope_works(rows: Changed, shown: pa.Schema) -> tuple[Work, Work]:
    """One form for all tables, by column and by row."""
    return (
        lambda: shape_envelope(rows, DATABASE, shown),
        lambda: shape_changes(iterate_changes(rows, DATABASE), shown),
    )


def message_works(rows: Changed, name: str) -> tuple[Work, Work]:
    """The messages of an envelope, by column and by row."""
    chosen = make_envelope(name)
    return (
        lambda: shape_messages(rows, DATABASE, chosen, MESSAGE),
        lambda: shape_encoded(iterate_changes(rows, DATABASE), chosen, MESSAGE),
    )


def measure_form(
    form: str, by_column: Work, by_row: Work | None, settings: FormsSettings
) -> Figure:
    """Measures one form."""
    ours = measure_cpu_seconds(by_column, settings.runs) / settings.rows
    figure: Figure = {"form": form, "rows/s": round(1 / ours), "cpu_s_100k": ours * COUNTED_ROWS}
    if by_row is not None:
        before = measure_cpu_seconds(by_row, settings.runs) / settings.rows
        figure |= {"by_row_rows/s": round(1 / before), "by_row_cpu_s_100k": before * COUNTED_ROWS}
        figure["times"] = round(before / ours, 1)
    return figure


def measure_cpu_seconds(work: Work, runs: int) -> float:
    """The least CPU time of several runs: other processes disturb it less than the clock's."""
    best = float("inf")
    for _ in range(runs):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return max(best, 1e-9)


SCENARIO = Scenario(
    name="forms",
    summary="Arrow batches to what Spark shows: every form, by column and by row",
    settings=FormsSettings,
    keys=("form",),
    run=run,
    short=("rows=2000", "runs=2"),
)
