"""The systems under test: each a process that delivers what is written, and logs what it got.

A system's process says by ``run.ready(process)`` since when it delivers, appends DELIVERED (and
WINDOWS, where it knows them) records, and, once ``run.drain`` exists, delivers what there is and
ends.
"""

from __future__ import annotations

from benchmarks.run_settings import Run

Started = tuple[str, str, tuple[str, ...]]
"""A process to start: its name, its module, its arguments."""


def processes(run: Run) -> list[Started]:
    """The processes of the run's system."""
    file = str(run.file)
    if run.consumer.system == "watcher":
        return [
            (f"watcher{n}", "benchmarks.systems.watcher", (file, str(n)))
            for n in range(run.consumer.watchers)
            if run.tables_of(n)
        ]
    return [(run.consumer.system, f"benchmarks.systems.{run.consumer.system}", (file,))]
