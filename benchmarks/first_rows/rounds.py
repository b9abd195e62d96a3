"""Runs jobs in turns, each in a process of its own, and says where their time went."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from benchmarks.first_rows.job import JobKind
from benchmarks.processes import ask_module
from benchmarks.scenario import Figure
from watcher.process.spark.class_archive import (
    SUBMIT_OPTIONS,
    USE,
    add_option,
    make_archive,
    require_archive_path,
)

SystemName = Literal[
    "rate", "rate-archived", "python", "ours", "ours-prestarted", "ours-archived", "connector"
]
MODULES: dict[SystemName, str] = {
    "rate": "benchmarks.first_rows.rate",
    "rate-archived": "benchmarks.first_rows.rate",
    "python": "benchmarks.first_rows.python_source",
    "ours": "benchmarks.first_rows.changes",
    "ours-prestarted": "benchmarks.first_rows.changes",
    "ours-archived": "benchmarks.first_rows.changes",
    "connector": "benchmarks.first_rows.connector",
}
PRESTARTED: frozenset[SystemName] = frozenset(("ours-prestarted", "ours-archived"))
ARCHIVED: frozenset[SystemName] = frozenset(("rate-archived", "ours-archived"))
"""Java takes its classes from the archive that ``spark-archive`` makes."""
QUIET = {"spark.ui.enabled": "false"}
TO_FIRST_ROWS = ("imports", "session", "register", "plan", "first")
"""The phases until the first rows are in the sink."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job; ``options`` are those of its source, ``spark`` settings of its session."""

    system: SystemName
    job: JobKind
    rows: int
    sink: Literal["parquet", "noop"] = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> Phases:
        """Runs it. Raises RunError where it fails."""
        with tempfile.TemporaryDirectory() as folder:
            settings = {
                "job": self.job,
                "sink": self.sink,
                "rows": self.rows,
                "options": dict(self.options),
                "spark": {**QUIET, **self.spark},
                "prestart": self.system in PRESTARTED,
                "folder": folder,
            }
            arguments = (json.dumps(settings),)
            environment = {**self.environment, **make_environment(self.system, folder)}
            (moments,) = ask_module(self.system, MODULES[self.system], arguments, environment)
            return Phases.parse(moments)


def make_environment(system: SystemName, empty: str) -> dict[str, str]:
    """What a job is told by its environment; ``empty`` is a folder in which no archive is."""
    # Our source has workers run this Python by itself.
    python = {"PYSPARK_PYTHON": sys.executable} if system == "python" else {}
    if system in ARCHIVED:
        return python | {SUBMIT_OPTIONS: add_option(USE, require_archive())}
    return python | {"XDG_CACHE_HOME": empty}


@cache
def require_archive() -> Path:
    """The archive of this machine; made, where there is none yet."""
    path = require_archive_path()
    return path if path.is_file() else make_archive().path


@dataclass(frozen=True, slots=True)
class Phases:
    """Seconds of each phase, in their order, and CPU seconds of the job, its JVM and workers."""

    seconds: Mapping[str, float]
    cpu: Mapping[str, float]

    @classmethod
    def parse(cls, moments: Mapping[str, Sequence[float]]) -> Phases:
        """Of what a job noted."""
        seconds, cpu, before = {}, {}, (0.0, 0.0)
        for name, (at, used) in moments.items():
            seconds[name], cpu[name] = at - before[0], used - before[1]
            before = (at, used)
        return cls(seconds, cpu)

    def add(self, names: Iterable[str]) -> tuple[float, float]:
        """Seconds and CPU seconds of some phases together."""
        chosen = list(names)
        return sum(self.seconds[n] for n in chosen), sum(self.cpu[n] for n in chosen)


def run_in_turns(jobs: Sequence[Job], rounds: int) -> list[list[Phases]]:
    """The phases of each job in each round."""
    found: list[list[Phases]] = [[] for _ in jobs]
    for _ in range(rounds):
        for index, job in enumerate(jobs):
            found[index].append(job.run())
    return found


def describe(found: Sequence[Phases], floor: Sequence[Phases]) -> Figure:
    """A row of the table: medians of each phase, and of what each round says beside the floor."""
    names = list(found[0].seconds)
    totals = [each.add(TO_FIRST_ROWS) for each in found]
    floors = [each.add(TO_FIRST_ROWS) for each in floor]
    pairs = list(zip(totals, floors, strict=True))
    return {
        **{f"{n}_s": round(statistics.median(each.seconds[n] for each in found), 2) for n in names},
        "to_first_rows_s": round(statistics.median(seconds for seconds, _ in totals), 2),
        "times_floor": round(statistics.median(a[0] / b[0] for a, b in pairs), 2),
        **{f"{n}_cpu_s": round(statistics.median(each.cpu[n] for each in found), 2) for n in names},
        "cpu_s": round(statistics.median(used for _, used in totals), 2),
        "times_floor_cpu": round(statistics.median(a[1] / b[1] for a, b in pairs), 2),
    }
