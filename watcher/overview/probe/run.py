"""Probes a database: makes its tables, tries every assumption, removes the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import run_statements
from spanner_schema.model.errors import DdlError
from watcher.model.assumptions.entry import Assumption
from watcher.model.assumptions.ledger import LEDGER
from watcher.model.errors import WatcherError
from watcher.overview.probe.context import CannotTryError, ProbeContext
from watcher.overview.probe.registry import PROBES, PROBES_AFTER_CHANGES, Probe
from watcher.overview.probe.schemas import write_history
from watcher.overview.probe.tables import (
    ProbeNames,
    create_tables,
    plan_changes,
    remove_tables,
)
from watcher.overview.probe.verdicts import Outcome, Verdict
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.dialects import find_dialect
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import discover_table

SCHEMA_UPDATES = 3
"""How many a probe needs: to make its tables, to change them, to remove them."""
STEPS = SCHEMA_UPDATES + len(PROBES) + len(PROBES_AFTER_CHANGES)
"""How often a probe reports its progress."""


def probe_database(
    address: DatabaseAddress, names: ProbeNames, report: Callable[[], object]
) -> list[Verdict]:
    """Tries every assumption, in the order of the ledger. ``report`` is called after each step.

    Raises WatcherError where the database does not answer, or the tables of a probe cannot be made;
    whatever was made is removed.
    """
    database = connect(address)
    verdicts: dict[str, Verdict] = {}
    with probe_tables(database, address, names) as context:
        report()
        for verdict in run_probes(context, PROBES):
            verdicts[verdict.assumption.name] = verdict
            report()
        changed = replace(context, history=write_history(context))
        run_statements(database, plan_changes(names, context.sql.dialect))
        report()
        for verdict in run_probes(changed, PROBES_AFTER_CHANGES):
            verdicts[verdict.assumption.name] = verdict
            report()
    report()
    return [verdicts.get(each.name) or describe_untried(each) for each in LEDGER.values()]


@contextmanager
def probe_tables(
    database: Database, address: DatabaseAddress, names: ProbeNames
) -> Iterator[ProbeContext]:
    """The tables of a probe while it lasts."""
    sql = find_dialect(database)
    create_tables(database, names, sql.dialect)
    try:
        rows, marked = (discover_table(database, name) for name in (names.rows, names.marked))
        yield ProbeContext(database, address, names, sql, rows, marked, QueryClient(address))
    finally:
        remove_tables(database, names, sql.dialect)


def run_probes(context: ProbeContext, probes: Mapping[str, Probe]) -> Iterator[Verdict]:
    """What each probe says. What Spanner refuses was not tried."""
    for name, probe in probes.items():
        assumption = LEDGER[name]
        try:
            observation = probe(context)
        except CannotTryError as reason:
            yield Verdict(assumption, Outcome.UNTRIED, str(reason))
        except (GoogleAPICallError, WatcherError, DdlError) as error:
            message = getattr(error, "message", "") or str(error)
            yield Verdict(assumption, Outcome.UNTRIED, f"Spanner refused: {message}")
        else:
            outcome = Outcome.HOLDS if observation.holds else Outcome.FAILS
            yield Verdict(assumption, outcome, observation.seen)


def describe_untried(assumption: Assumption) -> Verdict:
    """An assumption that no probe can try."""
    return Verdict(assumption, Outcome.UNTRIED, assumption.untried)


def remove_probe(address: DatabaseAddress, names: ProbeNames) -> int:
    """Removes what a killed probe has left; how many objects. Raises as ``remove_tables``."""
    database = connect(address)
    return remove_tables(database, names, find_dialect(database).dialect)


def describe_verdict(verdict: Verdict) -> dict[str, object]:
    """A verdict for machines, with what its assumption says."""
    assumption = verdict.assumption
    return {
        "name": assumption.name,
        "outcome": verdict.outcome.value,
        "seen": verdict.seen,
        "sentence": assumption.sentence,
        "documentation": assumption.documentation,
        "modes": [mode.value for mode in assumption.modes],
        "consequence": assumption.consequence.value,
        "broken": assumption.broken,
        "advice": assumption.advice,
    }
