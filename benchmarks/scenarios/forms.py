"""How fast changes take each form that Spark shows, in one process without Spark.

First from an embedded server to the batches that Spark gets, and the same from recorded results,
which measures the client alone; then only the shaping of batches: by column, and of messages change
by change.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from benchmarks.decoding.replayed import record_slice
from benchmarks.experiment import restore_environment
from benchmarks.processes import RunError
from benchmarks.reads.form_tables import COUNTED_ROWS, FORMS, FormReader, fill_tables, plan_form
from benchmarks.reads.shaped_rows import (
    COLUMNS,
    DATABASE,
    TABLE,
    make_polled_rows,
    make_streamed_rows,
)
from benchmarks.scenario import Bench, Figure, Scenario, make_bar_chart
from emulator.process import spawn
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed, StreamRows
from watcher.captures.changes import iterate_changes
from watcher.envelopes import make_envelope
from watcher.envelopes.batches import MESSAGE, encode_by_change
from watcher.model.change import ValueCapture
from watcher.runners.spark.shapes import (
    ENVELOPE,
    ID_FIELD,
    STREAM_ENVELOPE,
    STREAM_FIELDS,
    shape_messages,
    shape_stored,
    shape_typed,
)
from watcher.runners.spark.slices import read_slice
from watcher.runners.spark.uniform import render_uniform
from watcher.spanner.address import EMULATOR_HOST
from watcher.spanner.results.columns import TIMESTAMP, build_schema
from watcher.spanner.results.supported_types import Nanoseconds

Work = Callable[[], pa.RecordBatch]


class FormsSettings(BaseModel):
    """Rows have 7 columns of about 430 bytes. ``read_rows`` are read from an embedded server, and
    again from what it sent (0: none are); transactions of the change stream change
    ``transaction_rows`` each. ``rows`` are shaped at once, as a capture hands them over. The best
    of ``runs`` counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    read_rows: Annotated[int, Field(ge=0)] = 60_000
    transaction_rows: Annotated[int, Field(ge=1)] = 10
    rows: Annotated[int, Field(ge=100)] = 10_000
    runs: Annotated[int, Field(ge=1)] = 5


def run(settings: FormsSettings, bench: Bench) -> None:
    """A row of the table for each form."""
    read = read_forms(settings) if settings.read_rows else {}
    for form, (by_column, by_row) in list_forms(settings.rows).items():
        bench.add({"form": form, **read.get(form, {})})
        bench.outcome.figures[-1] |= measure_form(by_column, by_row, settings)
    bench.outcome.charts.append(
        make_bar_chart(
            "rows/s of CPU time, shaping alone, by form",
            "form",
            "shaped_rows/s",
            bench.outcome.figures,
        )
    )


def read_forms(settings: FormsSettings) -> dict[str, Figure]:
    """What reading costs the client in each form."""
    with contextlib.ExitStack() as stack:
        stack.callback(restore_environment, os.environ.get(EMULATOR_HOST))
        server = stack.enter_context(spawn())
        window = fill_tables(server.address, settings.read_rows, settings.transaction_rows)
        return {form: measure_reading(plan_form(form, window), settings.runs) for form in FORMS}


def measure_reading(reader: FormReader, runs: int) -> Figure:
    """Measures one form, from the server and from what it sent."""
    live = [measure_read(reader) for _ in range(runs)]
    recorded = FormReader(reader.scan, tuple(map(record_slice, reader.slices)))
    measure_read(recorded)
    replayed = [measure_read(recorded) for _ in range(runs)]
    cpu = min(each.cpu_seconds for each in live)
    return {
        "read_cpu_s_100k": round(cpu, 3),
        "read_rows/s": round(COUNTED_ROWS / cpu),
        "wall_rows/s": round(max(each.rows_per_second for each in live)),
        "replayed_cpu_s_100k": round(min(each.cpu_seconds for each in replayed), 3),
    }


@dataclass(frozen=True, slots=True)
class Reading:
    """What it took to read everything: CPU time of this process for 100,000 rows; rows/s."""

    cpu_seconds: float
    rows_per_second: float


def measure_read(reader: FormReader) -> Reading:
    """Reads all slices as an executor does. Raises RunError where there was nothing."""
    began, used = time.perf_counter(), time.process_time()
    rows = sum(batch.num_rows for part in reader.slices for batch in read_slice(reader.scan, part))
    used, seconds = time.process_time() - used, time.perf_counter() - began
    if not rows:
        raise RunError("no row was read")
    return Reading(used * COUNTED_ROWS / rows, rows / seconds)


def list_forms(rows: int) -> dict[str, tuple[Work, Work | None]]:
    """The work of each form, by column, and of messages change by change."""
    polled = make_polled_rows(rows)
    streamed = make_streamed_rows(rows, ValueCapture.NEW_ROW_AND_OLD_VALUES)
    stored = pa.schema([*build_schema(COLUMNS), (COMMIT_TIMESTAMP_COLUMN, TIMESTAMP), ID_FIELD])
    typed = pa.schema([*stored, *STREAM_FIELDS])
    works: dict[str, tuple[Work, Work | None]] = {
        "poll, columns": (lambda: shape_stored(polled, stored), None),
        "poll, several tables": (lambda: render_uniform(polled, ENVELOPE), None),
        "change stream, columns": (partial(shape_own_columns, streamed, typed), None),
        "change stream, several tables": (lambda: render_uniform(streamed, STREAM_ENVELOPE), None),
    }
    works |= {
        form: message_works(polled if form.startswith("poll") else streamed, options["envelope"])
        for form, options in FORMS.items()
        if "envelope" in options
    }
    return {form: works[form] for form in FORMS}


def shape_own_columns(rows: StreamRows, shown: pa.Schema) -> pa.RecordBatch:
    """Changes in the columns of their table."""
    return shape_typed(rows, TABLE, shown, Nanoseconds.TRUNCATE)


def message_works(rows: Changed, name: str) -> tuple[Work, Work]:
    """The messages of an envelope, by column and by row."""
    chosen = make_envelope(name)
    return (
        lambda: shape_messages(rows, DATABASE, chosen, MESSAGE),
        lambda: encode_by_change(iterate_changes(rows, DATABASE), chosen),
    )


def measure_form(by_column: Work, by_row: Work | None, settings: FormsSettings) -> Figure:
    """Measures the shaping of one form."""
    ours = measure_cpu_seconds(by_column, settings.runs) / settings.rows
    figure: Figure = {
        "shaped_rows/s": round(1 / ours),
        "shaping_cpu_s_100k": round(ours * COUNTED_ROWS, 3),
    }
    if by_row is not None:
        before = measure_cpu_seconds(by_row, settings.runs) / settings.rows
        figure["by_row_rows/s"] = round(1 / before)
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
    summary="from the server to what Spark shows, in every form; shaping by column and by row",
    settings=FormsSettings,
    keys=("form",),
    run=run,
    short=("read_rows=2000", "rows=2000", "runs=2"),
    own_server=True,
)
