"""A copy in Delta without Spark, while rows change at a rate: from a commit to the cut in which it
can be read; what compaction does meanwhile; and whether the copy is equal at the end."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.experiment import restore_environment
from benchmarks.load.latency import latency
from benchmarks.replica_speed import ReplicaBench, start_server
from benchmarks.scenario import Bench, Scenario
from emulator.process import ServerProcess
from watcher.spanner.address import EMULATOR_HOST


class ReplicaSettings(BaseModel):
    """A table of ``rows`` is loaded. Then ``keys`` of it (``random``, ``skewed`` or ``contiguous``)
    change at a ``rate`` of mutations a second for some ``seconds``, in 20 commits a second, while a
    replicator starts a window each ``interval`` seconds. ``merge`` and ``compaction`` as for the
    command."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: Annotated[int, Field(ge=100)] = 200_000
    rate: Annotated[int, Field(ge=1)] = 1_000
    seconds: Annotated[float, Field(gt=0)] = 60.0
    interval: Annotated[float, Field(gt=0)] = 1.0
    keys: Literal["random", "skewed", "contiguous"] = "random"
    merge: Literal["merge-on-read", "copy-on-write"] = "merge-on-read"
    compaction: Literal["on", "off"] = "on"


def run(settings: ReplicaSettings, bench: Bench) -> None:
    """A row of the table: latencies in seconds, as of every change."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(start_server(folder))
        stack.callback(restore_environment, os.environ.get(EMULATOR_HOST))
        os.environ[EMULATOR_HOST] = server.address
        measure(settings, bench, folder, server)


def measure(settings: ReplicaSettings, bench: Bench, folder: Path, server: ServerProcess) -> None:
    """The same on a server."""
    replica = ReplicaBench(server, folder, "delta", "delta-rs", settings.merge)
    replica.load(settings.rows)
    flags = ("--interval", f"{settings.interval}s", "--compaction", settings.compaction)
    measured = replica.measure_latency(settings.rate, settings.seconds, settings.keys, flags)
    replica.verify(settings.rows)
    late = latency(measured.micros)
    bench.add(
        {
            "rows": settings.rows,
            "rate": settings.rate,
            "keys": settings.keys,
            "changes": len(measured.micros),
            "changes/s": round(len(measured.micros) / measured.seconds, 1),
            "cuts": measured.cuts,
            "p50_s": round(late.p50, 3),
            "p90_s": round(late.p90, 3),
            "p99_s": round(late.p99, 3),
            "max_s": round(late.maximum, 3),
            "compactions": replica.count_compactions(),
            "copy_bytes": replica.count_bytes(),
        }
    )
    if measured.unread:
        bench.outcome.problems.append(f"{measured.unread} changes are in no exact cut")


SCENARIO = Scenario(
    name="replica",
    summary="a copy in Delta without Spark: commit to a cut that can be read, compaction, verified",
    settings=ReplicaSettings,
    keys=("rows", "rate", "keys"),
    run=run,
    short=("rows=2000", "rate=100", "seconds=3"),
    own_server=True,
)
