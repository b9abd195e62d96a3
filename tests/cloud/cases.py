"""What ``make test-cloud`` runs: commands, each with a database of its own."""

from __future__ import annotations

from dataclasses import dataclass

from spanner_schema.model.schema import Dialect

PREFIX = "watcher-test"


@dataclass(frozen=True, slots=True)
class Case:
    """A command of spanner-watcher. ``{database}`` is the address of its database, which it creates
    and drops by itself, unless the case has it ``made``. ``minutes`` and ``writes`` (of rows) are
    estimates for an instance of 100 processing units; ``short`` is the same in little."""

    name: str
    command: str
    short: str
    minutes: float
    writes: int
    made: bool = False
    dialect: Dialect = Dialect.GOOGLESQL

    def list_arguments(self, database: str, *, short: bool) -> list[str]:
        """The words of the command."""
        text = self.short if short else self.command
        return [word.format(database=database) for word in text.split()]


PROBE = "check --probe --json --database {database}"
DEMO = "demo --json --database {database} --rows 2000 --rate 100 --seconds 60 --kill-driver 2"
DEMO_SHORT = "demo --json --database {database} --rows 200 --rate 100 --seconds 6 --kill-driver 1"
KIT = "conformance --json --database {database} --runs 2 --seconds 30 --against "
KIT_SHORT = "conformance --json --database {database} --runs 1 --seconds 2 --late-max 0 --against "

CASES = (
    Case("probe", PROBE, PROBE, 5, 3_000, made=True),
    Case("probe-pg", PROBE, PROBE, 5, 3_000, made=True, dialect=Dialect.POSTGRESQL),
    Case("demo", DEMO, DEMO_SHORT, 5, 8_000),
    Case("replica", f"{DEMO} --to delta", f"{DEMO_SHORT} --to delta", 5, 8_000),
    Case("poll", f"{KIT}watch-poll", f"{KIT_SHORT}watch-poll", 6, 10_000),
    Case("stream", f"{KIT}watch-change-stream", f"{KIT_SHORT}watch-change-stream", 6, 10_000),
    Case("push", f"{KIT}watch-push", f"{KIT_SHORT}watch-push", 6, 10_000),
)
"""The probe in both dialects; the whole data path into Parquet and into a replica that ``verify``
compares, Spark killed with -9 meanwhile; the watcher, killed, stopped and frozen, before the judges
of the conformance kit."""
