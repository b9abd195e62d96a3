"""What was measured, with every setting and the machine: JSON that reports are made of."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import psutil
from pydantic import ValidationError

from benchmarks.index import ScanTotals
from benchmarks.load.client_times import ClientTimes
from benchmarks.load.latency import Latency
from benchmarks.machine_load import CpuUse
from benchmarks.pages.charts import Chart, Value
from benchmarks.processes import Usage
from benchmarks.query_costs import QueryCosts
from benchmarks.run_settings import RunPlan
from conformance.judges.arrays import RunVerdict
from watcher.model.errors import ConfigurationError
from watcher.process.text_files import read_text_file

Cell = str | int | float | bool | None
PACKAGES = (
    "spanner-watcher",
    "google-cloud-spanner",
    "grpcio",
    "pyarrow",
    "pyspark",
    "apsw",
    "protobuf",
)


class Environment(Value):
    """Where and when. ``load`` is the machine's load average (1 minute) as the scenario began, of
    what was measured before it, too. ``revision`` is the commit of the source tree, with
    ``-dirty`` where files differ from it; None without a source tree."""

    started: str
    python: str
    platform: str
    cpus: int
    memory_gb: float
    load: float
    revision: str | None
    packages: dict[str, str]


class Series(Value):
    """Seconds since the schedule began, a value a second. Rates are rows a second; latencies are
    seconds from the intended arrival, of the rows that were due in that second (None: none was).
    ``backlog``: committed rows that were still to come."""

    written: tuple[int, ...]
    delivered: tuple[int, ...]
    backlog: tuple[int, ...]
    p50: tuple[float | None, ...]
    p99: tuple[float | None, ...]
    maximum: tuple[float | None, ...]


class StartCosts(Value):
    """From the start of the processes that deliver until all of them do: ``cpu_seconds`` of all of
    them together, Python's imports included; of the embedded server ``server_cpu_seconds``."""

    seconds: float
    cpu_seconds: float
    server_cpu_seconds: float | None


class IdleCosts(Value):
    """Some seconds in which nothing changed. CPU seconds of what delivers and of the embedded
    server; ``queries`` None on another database."""

    seconds: float
    cpu_seconds: float
    server_cpu_seconds: float | None
    queries: QueryCosts | None


class Measured(Value):
    """The figures of the logs of a run. Latencies: ``since_commit`` and ``since_intended`` are of
    delivered rows until their arrival in the callback; ``commit`` of commits from their intended
    moment to their answer.

    ``drain_seconds``: from the end of writing until the last row had come.
    ``aborted``: Commit calls that were not acknowledged and sent again.
    """

    verdict: RunVerdict
    write_seconds: float
    written_per_second: float
    delivered_per_second: float
    drain_seconds: float
    since_commit: Latency
    since_intended: Latency
    commit: Latency
    aborted: int
    series: Series


class RunResult(Measured):
    """One run.

    ``prepare_seconds``: until the tables were made and filled.
    ``queries``: what the embedded server did for what delivers, None on another database.
    """

    name: str
    plan: RunPlan
    index_rows: tuple[tuple[float, int], ...]
    scanned: ScanTotals | None
    processes: dict[str, Usage]
    client: ClientTimes | None = None
    queries: QueryCosts | None = None
    prepare_seconds: float | None = None
    start: StartCosts | None = None
    idle: IdleCosts | None = None

    @property
    def consumer_cpu_seconds(self) -> float:
        """CPU seconds of all that delivers."""
        return round(sum(usage.cpu_seconds for usage in self._consumers()), 2)

    @property
    def consumer_peak_mb(self) -> float:
        """Peak memory of all that delivers."""
        return round(sum(usage.peak_mb for usage in self._consumers()), 1)

    @property
    def server_cpu_seconds(self) -> float | None:
        """CPU seconds of the embedded server; None for another one."""
        server = self.processes.get("server")
        return server.cpu_seconds if server else None

    def _consumers(self) -> list[Usage]:
        return [usage for name, usage in self.processes.items() if not other_process(name)]


def other_process(name: str) -> bool:
    """True for the processes of a run that deliver nothing."""
    return name == "server" or name.startswith("writer")


class ScenarioResult(Value):
    """A scenario: its settings, a table of figures, charts, and the runs behind them. ``keys`` are
    the columns that tell a row of the table from the others.

    ``problems`` make it fail: lost rows, for instance. ``skipped`` says what was left out and why.
    ``defaults`` are the settings without ``--set``, ``cpu`` what this and others used of the
    machine meanwhile; both are None in files of older releases.
    """

    scenario: str
    summary: str
    command: str
    environment: Environment
    settings: dict[str, object]
    seconds: float
    keys: tuple[str, ...]
    figures: tuple[dict[str, Cell], ...]
    charts: tuple[Chart, ...] = ()
    runs: tuple[RunResult, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    defaults: dict[str, object] | None = None
    cpu: CpuUse | None = None

    @property
    def busy(self) -> str | None:
        """What kept the machine busy besides this scenario, with the figure; None for nothing that
        matters. Without ``cpu`` the load average as it began has to do."""
        if self.cpu is not None:
            return self.cpu.describe_others() if self.cpu.busy else None
        where = self.environment
        if where.load <= where.cpus:
            return None
        return (
            f"the load average was {where.load:.2f} on {where.cpus} CPUs as it began (how much of"
            " it came from the benchmark before is not recorded)"
        )

    @property
    def passed(self) -> bool:
        """Nothing was lost, and nothing else was wrong."""
        return not self.problems

    @property
    def outcome(self) -> Literal["passed", "failed", "skipped"]:
        """In a word; skipped when there was nothing that could be run."""
        if not self.passed:
            return "failed"
        return "skipped" if self.skipped and not self.runs and not self.figures else "passed"

    def save(self, folder: Path) -> Path:
        """Writes ``FOLDER/SCENARIO.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.scenario}.json"
        path.write_text(self.model_dump_json(indent=1) + "\n")
        return path

    @classmethod
    def load(cls, path: Path) -> ScenarioResult:
        """Reads what ``save`` wrote. Raises ConfigurationError for anything else."""
        try:
            return cls.model_validate_json(read_text_file(path))
        except ValidationError as error:
            raise ConfigurationError(
                f"{path} is not a result of this release: {error.error_count()} invalid fields, the"
                f" first: {error.errors()[0]['msg']} at {error.errors()[0]['loc']}"
            ) from error


def environment() -> Environment:
    """This machine, now."""
    return Environment(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        cpus=os.cpu_count() or 1,
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        load=round(os.getloadavg()[0], 2),
        revision=revision(),
        packages={name: read_version(name) for name in PACKAGES},
    )


def read_version(package: str) -> str:
    """The version of an installed package; ``unknown`` for one that runs from a source tree."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def revision() -> str | None:
    """The commit of this source tree, ``-dirty`` where tracked files differ from it; None where it
    is installed without one, be it inside of another repository."""
    if ask_git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return ask_git("describe", "--always", "--dirty", "--exclude=*")


def ask_git(*arguments: str) -> str | None:
    """What git answers in this folder; None where it refuses, or is not installed."""
    here = Path(__file__).resolve().parent
    try:
        result = subprocess.run(
            ["git", "-C", str(here), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return (result.stdout.strip() or None) if result.returncode == 0 else None
