"""How fast results become Arrow columns: beside google-cloud-spanner's own rows and native drivers.

The client's rows and our columns are decoded from the same recorded messages, from bytes: neither
server nor network is measured. Drivers read from an embedded server, and so do we beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from google.cloud.spanner_v1 import PartialResultSet
from google.cloud.spanner_v1.streamed import StreamedResultSet
from pydantic import BaseModel, ConfigDict, Field

from benchmarks.decoding.recorded import NARROW, WIDE, Columns, messages
from benchmarks.processes import RunError
from benchmarks.reads.served_table import (
    DRIVERS,
    is_installed,
    list_readers,
    measure_reads,
    serve_table,
)
from benchmarks.reads.shaped_rows import SHAPES as SERVED_SHAPES
from benchmarks.reads.shaped_rows import ShapeName
from benchmarks.scenario import Bench, Figure, Scenario, make_bar_chart
from watcher.spanner.results.columns import build_schema, decode_batches
from watcher.spanner.results.wire import parse_result_part

TableName = Literal["narrow", "wide"]
SHAPES: dict[TableName, Columns] = {"narrow": NARROW, "wide": WIDE}


class DecodeSettings(BaseModel):
    """``tables``: ``narrow`` is INT64 and STRING, ``wide`` has 30 columns of every type, arrays
    among them. ``values`` is how many values each result has; the best of ``runs`` counts.

    ``served_rows`` (7 columns; 0: none) are read from an embedded server, by us and by the ADBC
    drivers that are installed; the median of ``runs`` counts. ``served``: ``text`` (430 bytes, a
    long text), ``bytes`` (450 bytes, a BYTES(200) among them)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: tuple[TableName, ...] = ("narrow", "wide")
    values: Annotated[int, Field(ge=1_000)] = 600_000
    runs: Annotated[int, Field(ge=1)] = 3
    served_rows: Annotated[int, Field(ge=0)] = 300_000
    served: tuple[ShapeName, ...] = ("text", "bytes")


def run(settings: DecodeSettings, bench: Bench) -> None:
    """A row of the table for each shape."""
    for name in settings.tables:
        bench.add(measure_shape(name, settings.values, settings.runs))
    chart = make_bar_chart(
        "times as fast as the client's rows", "table", "times", bench.outcome.figures
    )
    bench.outcome.charts.append(chart)
    if settings.served_rows:
        for shape in settings.served:
            measure_served(settings, shape, bench)
        bench.outcome.skipped += [
            f"{name} is not installed: pip install {name}"
            for name in DRIVERS
            if not is_installed(name)
        ]


def measure_served(settings: DecodeSettings, shape: ShapeName, bench: Bench) -> None:
    """A row of the table for each of us and the drivers that read a table of an embedded server."""
    rows = settings.served_rows
    with serve_table(rows, shape):
        for name, read in list_readers(shape).items():
            cost = measure_reads(read, rows, settings.runs)
            bench.add(
                {
                    "table": f"served {shape}, {name}",
                    "columns": len(SERVED_SHAPES[shape].columns),
                    "rows": rows,
                    "columns_rows/s": round(cost.rows_per_second),
                    "cpu_s_100k": round(cost.cpu_seconds, 3),
                }
            )


def measure_shape(name: TableName, values: int, runs: int) -> Figure:
    """Measures one shape."""
    columns = SHAPES[name]
    rows = values // len(columns)
    recorded = messages(columns, rows)
    client = rows / measure_seconds(lambda: read_by_client(recorded), rows, runs)
    ours = rows / measure_seconds(lambda: read_by_columns(recorded, columns), rows, runs)
    return {
        "table": name,
        "columns": len(columns),
        "rows": rows,
        "client_rows/s": round(client),
        "columns_rows/s": round(ours),
        "times": round(ours / client, 1),
    }


def read_by_client(recorded: list[bytes]) -> int:
    """Rows, as the client's own iterator gives them."""
    parts: Iterator[PartialResultSet] = (PartialResultSet.deserialize(data) for data in recorded)
    return sum(1 for _ in StreamedResultSet(parts))


def read_by_columns(recorded: list[bytes], columns: Columns) -> int:
    """Rows, as Arrow columns."""
    schema = build_schema(columns)
    types = [type_ for _, type_ in columns]
    return sum(b.num_rows for b in decode_batches(map(parse_result_part, recorded), schema, types))


def measure_seconds(work: Callable[[], int], rows: int, runs: int) -> float:
    """The best of several runs. Raises RunError when rows are missing."""
    best = float("inf")
    for _ in range(runs):
        began = time.perf_counter()
        count = work()
        best = min(best, time.perf_counter() - began)
        if count != rows:
            raise RunError(f"decoded {count:,} of {rows:,} rows")
    return best


SCENARIO = Scenario(
    name="decode",
    summary="wire to Arrow columns, against the client's row iterator and native drivers",
    settings=DecodeSettings,
    keys=("table",),
    run=run,
    short=("values=300000", "served_rows=20000"),
)
