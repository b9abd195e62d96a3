"""One run from an empty database to its figures: server, tables, system, writers, verdict."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from google.cloud.spanner_v1.database import Database

from benchmarks import systems
from benchmarks.distant_network import DistantNetwork
from benchmarks.files import write_atomically
from benchmarks.index import IndexMeter, NoIndex, ScanTotals
from benchmarks.load import tables
from benchmarks.load.client_times import read_client_times
from benchmarks.load.measure import Logs, measure
from benchmarks.load.records import DELIVERED, WRITTEN, count
from benchmarks.processes import (
    BenchProcess,
    RunError,
    Usage,
    UsageMeter,
    read_cpu_seconds,
    start_module,
)
from benchmarks.query_costs import query_costs
from benchmarks.result import IdleCosts, RunResult, StartCosts
from benchmarks.run_settings import Run, RunPlan
from emulator.process import ServerProcess, spawn

EMBEDDED = "projects/benchmark/instances/benchmark/databases/benchmark"
LOOK_EVERY_SECONDS = 0.1
START_SECONDS_MAX = 300.0
LATE_SECONDS_MAX = 120.0
DRAIN_SECONDS_MAX = 300.0
HEAD_START_MICROS = 300_000


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How a run stands; for the screen."""

    name: str
    phase: str
    seconds: float
    written: int
    delivered: int


Show = Callable[[RunProgress], None]
Found = TypeVar("Found")


def ignore_progress(_: RunProgress) -> None:
    """For those who do not look."""


def run_plan(
    name: str, plan: RunPlan, database: str | None = None, show: Show = ignore_progress
) -> RunResult:
    """Does a plan on a fresh embedded server, or on a database that is there already.

    Raises RunError when a process fails or does not end in time.
    """
    with contextlib.ExitStack() as stack:
        prefix = "spanner-watcher-bench-"
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
        data_dir = Path(folder, "spanner") if plan.storage == "disk" else None
        server = (
            stack.enter_context(spawn(data_dir, count_scans=plan.count_scans))
            if database is None
            else None
        )
        emulator = server.address if server else os.environ.get("SPANNER_EMULATOR_HOST")
        placed = Run(
            **dict(plan),
            database=database or EMBEDDED,
            emulator=emulator,
            distant=stack.enter_context(reach_far(emulator, plan.disturbance.round_trip)),
            folder=Path(folder),
        )
        stack.callback(restore_environment, os.environ.get("SPANNER_EMULATOR_HOST"))
        placed.enter()
        return Experiment(name, placed, server, show).run()


@contextlib.contextmanager
def reach_far(emulator: str | None, round_trip: float) -> Iterator[str | None]:
    """An address at which an emulator is so many seconds away; None where it is near. Raises
    RunError for a database that is no emulator's."""
    if not round_trip:
        yield None
        return
    if emulator is None:
        raise RunError("a round trip can be added to an emulator alone: set round_trip to 0")
    network = DistantNetwork(emulator, round_trip)
    try:
        yield network.address
    finally:
        network.close()


def restore_environment(address: str | None) -> None:
    """The clients of this process go where they went before."""
    os.environ.pop("SPANNER_EMULATOR_HOST", None)
    if address is not None:
        os.environ["SPANNER_EMULATOR_HOST"] = address


@contextlib.contextmanager
def run_meter(start: Callable[[], None], stop: Callable[[], Found]) -> Iterator[list[Found]]:
    """Starts a meter, and stops it in any case; the list then holds what it found."""
    measurements: list[Found] = []
    start()
    try:
        yield measurements
    finally:
        measurements.append(stop())


class Experiment:
    """A run under way."""

    def __init__(self, name: str, run: Run, server: ServerProcess | None, show: Show) -> None:
        self._name = name
        self._run = run
        self._server = server
        self._show = show
        self._began = time.monotonic()
        self._children: list[BenchProcess] = []

    def run(self) -> RunResult:
        """Everything; what was started ends, and what was made in the database goes."""
        self._tell("preparing")
        began = time.monotonic()
        database = tables.prepare_tables(self._run)
        prepared = round(time.monotonic() - began, 2)
        try:
            self._run = self._run.model_copy(update={"since": tables.read_database_time(database)})
            self._run.save()
            if self._run.backlog:
                self._tell("loading the backlog")
                tables.load_backlog(database, self._run)
            result = self._run_with_costs(database)
            return result.model_copy(update={"prepare_seconds": prepared})
        finally:
            for child in self._children:
                child.kill()
            if self._server is None:
                tables.drop_own_tables(database)

    def _run_with_costs(self, database: Database) -> RunResult:
        """What was measured, and what client and server did for it by their own account."""
        before = query_costs(database) if self._server else None
        meter = NoIndex() if self._run.consumer.streams else IndexMeter(self._run)
        consumers, started = self._start_consumers()
        idle = self._measure_idle(database, consumers) if self._run.idle else None
        result = self._measure(consumers, meter)
        queries = query_costs(database).subtract(before) if before else None
        return result.model_copy(
            update={
                "client": read_client_times(self._run),
                "queries": queries,
                "start": started,
                "idle": idle,
            }
        )

    def _start_consumers(self) -> tuple[list[BenchProcess], StartCosts]:
        """What delivers, once it does."""
        server = UsageMeter({"server": self._server.pid} if self._server else {})
        began = time.monotonic()
        server.start()
        consumers = [self._start(*each) for each in systems.processes(self._run)]
        self._wait_until_ready(consumers)
        seconds, used = time.monotonic() - began, server.stop()
        cpu = sum(read_cpu_seconds(child.process.pid) for child in consumers)
        costs = used["server"].cpu_seconds if self._server else None
        return consumers, StartCosts(
            seconds=round(seconds, 2), cpu_seconds=round(cpu, 2), server_cpu_seconds=costs
        )

    def _measure_idle(self, database: Database, consumers: list[BenchProcess]) -> IdleCosts:
        """What it costs to look while nothing changes. The first looks do not count: the embedded
        server meets their statements for the first time."""
        self._idle(consumers, "warming up")
        before = query_costs(database) if self._server else None
        usage = UsageMeter(self._list_pids())
        began = time.monotonic()
        with run_meter(usage.start, usage.stop) as used:
            self._idle(consumers, "idle")
        seconds = time.monotonic() - began
        server = used[0].pop("server", None)
        return IdleCosts(
            seconds=round(seconds, 2),
            cpu_seconds=round(sum(each.cpu_seconds for each in used[0].values()), 2),
            server_cpu_seconds=server.cpu_seconds if server else None,
            queries=query_costs(database).subtract(before) if before else None,
        )

    def _idle(self, consumers: list[BenchProcess], phase: str) -> None:
        ends_at = time.monotonic() + self._run.idle
        while time.monotonic() < ends_at:
            self._look(consumers, ends_at + LATE_SECONDS_MAX, phase)

    def _list_pids(self) -> dict[str, int]:
        """What is measured: everything that was started, and the server."""
        pids = {child.name: child.process.pid for child in self._children}
        return pids | ({"server": self._server.pid} if self._server is not None else {})

    def _measure(self, consumers: list[BenchProcess], meter: IndexMeter | NoIndex) -> RunResult:
        count = self._run.workload.writers if self._run.write else 0
        writers = [self._writer(number) for number in range(count)]
        self._wait_until_ready(writers)
        usage = UsageMeter(self._list_pids())
        with (
            run_meter(usage.start, usage.stop) as used,
            run_meter(meter.start, meter.stop) as index,
        ):
            beginning = self._begin(consumers)
            self._wait(writers, "writing", self._max_writing_seconds())
            write_atomically(self._run.drain, "")
            self._wait(consumers, "draining", DRAIN_SECONDS_MAX)
        return self._result(beginning, used[0], *index[0])

    def _begin(self, consumers: list[BenchProcess]) -> int:
        """The moment at which the schedule begins; that of the first delivery without writers."""
        beginning = time.time_ns() // 1_000 + HEAD_START_MICROS
        if not self._run.write:
            return min(int(self._run.ready(child.name).read_text()) for child in consumers)
        write_atomically(self._run.begin, str(beginning))
        return beginning

    def _result(
        self,
        beginning: int,
        processes: dict[str, Usage],
        sizes: tuple[tuple[float, int], ...],
        scanned: ScanTotals | None,
    ) -> RunResult:
        self._tell("comparing row by row")
        every, warm_up = self._run.consumer.streams, self._run.workload.warm_up
        measured = measure(
            Logs.read(self._run), beginning, every, warm_up if self._run.write else 0.0
        )
        return RunResult(
            name=self._name,
            plan=RunPlan(**{name: getattr(self._run, name) for name in RunPlan.model_fields}),
            **dict(measured),
            index_rows=sizes,
            scanned=scanned,
            processes=processes,
        )

    def _start(self, name: str, module: str, arguments: tuple[str, ...]) -> BenchProcess:
        child = start_module(name, self._run.log(name), module, arguments)
        self._children.append(child)
        return child

    def _writer(self, number: int) -> BenchProcess:
        arguments = (str(self._run.file), str(number))
        return self._start(f"writer{number}", "benchmarks.load.writer", arguments)

    def _max_writing_seconds(self) -> float:
        return self._run.workload.seconds + self._run.disturbance.stall + LATE_SECONDS_MAX

    def _wait_until_ready(self, children: list[BenchProcess]) -> None:
        ends_at = time.monotonic() + START_SECONDS_MAX
        while not all(self._run.ready(child.name).exists() for child in children):
            self._look(children, ends_at, "starting")

    def _wait(self, children: list[BenchProcess], phase: str, seconds: float) -> None:
        """Until they have ended."""
        began = time.monotonic()
        stall_at = began + self._run.disturbance.after + HEAD_START_MICROS / 1_000_000
        stalled = phase != "writing" or not self._run.disturbance.stall
        while any(child.running for child in children):
            if not stalled and time.monotonic() >= stall_at:
                self._stall()
                stalled = True
            self._look(children, began + seconds, phase)
        for child in children:
            child.check()

    def _stall(self) -> None:
        """The server stands still."""
        if self._server is None:
            raise RunError(
                "a stall needs the embedded server: set stall to 0, or use the embedded server"
            )
        os.kill(self._server.pid, signal.SIGSTOP)
        time.sleep(self._run.disturbance.stall)
        os.kill(self._server.pid, signal.SIGCONT)

    def _look(self, children: list[BenchProcess], ends_at: float, phase: str) -> None:
        for child in self._children:
            child.check()
        if time.monotonic() > ends_at:
            names = ", ".join(child.name for child in children if child.running)
            raise RunError(f"{phase} took too long: {names}")
        self._tell(phase)
        time.sleep(LOOK_EVERY_SECONDS)

    def _tell(self, phase: str) -> None:
        self._show(
            RunProgress(
                self._name,
                phase,
                time.monotonic() - self._began,
                count(self._run.all_records("written"), WRITTEN),
                count(self._run.all_records("delivered"), DELIVERED),
            )
        )
