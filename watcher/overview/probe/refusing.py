"""Probes of what Spanner says where it refuses: errors without a code of their own."""

from __future__ import annotations

from google.api_core.exceptions import GoogleAPICallError

from watcher.captures import statements
from watcher.model.errors import VersionExpiredError
from watcher.model.window import Window
from watcher.overview.probe.context import Observation, ProbeContext
from watcher.overview.probe.tables import KEY
from watcher.spanner.failures import FailureKind, classify_error

LONG_AGO_MICROS = 30 * 86_400 * 1_000_000
"""No database keeps versions for so long."""
MISSING = "ProbeMissing"


def probe_expired(context: ProbeContext) -> Observation:
    """Reads at a timestamp of a month ago."""
    at = context.insert(context.take_key()) - LONG_AGO_MICROS
    statement = statements.count_window(context.rows, Window(at - 1, at))
    try:
        _, numbers = context.queries.stream.query_numbers(statement, at)
    except VersionExpiredError as error:
        return Observation(True, str(error))
    except GoogleAPICallError as error:
        return Observation(False, f"Spanner says: {error.message}")
    return Observation(False, f"a read of a month ago counts {numbers[0]} rows")


def probe_missing(context: ProbeContext) -> Observation:
    """Queries a table, a column and an index that are not there."""
    sql, rows = context.sql, context.sql.quote(context.rows.name)
    key, missing = sql.quote_column(KEY), sql.quote_column(MISSING)
    kinds = {
        f"SELECT {key} FROM {sql.quote(MISSING)}": FailureKind.SCHEMA,  # noqa: S608 (quoted)
        f"SELECT {missing} FROM {rows}": FailureKind.SCHEMA,  # noqa: S608 (quoted)
        f"SELECT {key} FROM {rows}{sql.force_index(MISSING)}": FailureKind.INDEX,  # noqa: S608
    }
    said = []
    for text, kind in kinds.items():
        try:
            with context.database.snapshot() as snapshot:
                list(snapshot.execute_sql(text))
        except GoogleAPICallError as error:
            said.append(str(error.message))
            if classify_error(error) is not kind:
                return Observation(False, f"of what is not there Spanner says: {error.message}")
        else:
            return Observation(False, f"Spanner serves: {text}")
    return Observation(True, "; ".join(said))
