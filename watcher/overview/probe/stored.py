"""What the last probe of a database found wrong: stored beside the state of its consumers, where
whoever starts looks once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from google.api_core.exceptions import NotFound
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeyRange, KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions import create_own_tables, errors_table
from watcher.model.assumptions.entry import Mode
from watcher.model.assumptions.ledger import list_unsafe
from watcher.model.errors import UnsafeModeError
from watcher.overview.probe.verdicts import Outcome, Verdict
from watcher.spanner.address import DatabaseAddress

KIND = "FailedProbe"
COLUMNS = ("Consumer", "ErrorId", "Kind", "Message", "OccurredAt")
"""Of the table of errors, in which the path of the database stands in the place of a consumer."""


def rows_of(address: DatabaseAddress) -> KeySet:
    """The rows that a probe of a database has stored."""
    return KeySet(ranges=[KeyRange(start_closed=[address.path], end_closed=[address.path])])


def store_failures(
    database: Database, table: str, address: DatabaseAddress, verdicts: Iterable[Verdict]
) -> None:
    """Replaces what an earlier probe of a database has stored. ``database`` and ``table`` keep the
    positions."""
    create_own_tables(database, table)
    errors = errors_table(table)
    failures = [
        (address.path, each.assumption.name, KIND, each.seen, COMMIT_TIMESTAMP)
        for each in verdicts
        if each.outcome is Outcome.FAILS
    ]

    def store(transaction: Transaction) -> None:
        transaction.delete(errors, rows_of(address))
        transaction.insert(errors, COLUMNS, failures)

    database.run_in_transaction(store)


def load_failures(database: Database, table: str, address: DatabaseAddress) -> dict[str, str]:
    """By the name of the assumption, what the last probe of a database saw; empty where nobody has
    watched."""
    with database.snapshot() as snapshot:
        rows = snapshot.read(errors_table(table), COLUMNS[1:4], rows_of(address))
        try:
            return {name: seen for name, kind, seen in rows if kind == KIND}
        except NotFound:
            return {}


def refuse_unsafe(
    database: Database,
    table: str,
    address: DatabaseAddress,
    modes: Collection[Mode],
    accepted: Collection[str],
    option: str = "accept_failed_probes",
) -> None:
    """Raises UnsafeModeError where the last probe of a database has found wrong what one of these
    modes relies on, unless its name is among the ``accepted``, those of an ``option``."""
    failures = load_failures(database, table, address)
    unsafe = [each for each in list_unsafe(failures, modes) if each.name not in accepted]
    if not unsafe:
        return
    first = unsafe[0]
    named = ", ".join(f"'{each.name}'" for each in unsafe)
    raise UnsafeModeError(
        f"the last probe of {address} found that {named} does not hold"
        f" ({failures[first.name]}): {first.broken}; {first.advice}. To run nevertheless, add"
        f" each name to '{option}'; to probe again, run 'spanner-watcher check --probe'"
    )
