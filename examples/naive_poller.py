"""A poller as many are written by hand. What is wrong with it, `spanner-watcher conformance` shows:

    spanner-watcher conformance --prepare poll --promise newest-row \
        --against 'python examples/naive_poller.py {database} {tables} {state}'

It asks for what is newer than its last look, which it knows by its own clock. A row that is
committed after the query and before that moment is lost. With the argument `windows` it reads at a
timestamp of Spanner's, and remembers that one: nothing is lost.
"""

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.cloud import spanner
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.snapshot import Snapshot

KEYS = {"Accounts": ["Id"], "Entries": ["Id", "EntryId"], "Events": ["Name"]}
PAUSE_SECONDS = 0.1
Look = tuple[list[dict[str, object]], datetime]


def read_changes(snapshot: Snapshot, table: str, since: datetime) -> Iterator[dict[str, object]]:
    """The rows of a table that changed after a time."""
    columns = ", ".join([*KEYS[table], "Version", "LastModified"])
    sql = f"SELECT {columns} FROM {table} WHERE LastModified > @since ORDER BY LastModified"
    types = {"since": param_types.TIMESTAMP}
    for *key, version, modified in snapshot.execute_sql(sql, {"since": since}, types):
        yield {
            "table": table,
            "key": key,
            "commit_timestamp": modified.isoformat(),
            "values": {"Version": version},
        }


def look(database: Database, tables: list[str], since: datetime) -> Look:
    """The changes since the last look, and the time of this one by the clock of this machine."""
    with database.snapshot(multi_use=True) as snapshot:
        changes = [change for table in tables for change in read_changes(snapshot, table, since)]
    return changes, datetime.now(UTC)


def look_at_timestamp(database: Database, tables: list[str], since: datetime) -> Look:
    """The same at a timestamp of Spanner's: nothing can be committed at or before it any more."""
    with database.snapshot() as snapshot:
        ((now,),) = snapshot.execute_sql("SELECT CURRENT_TIMESTAMP()")
    with database.snapshot(read_timestamp=now, multi_use=True) as snapshot:
        changes = [change for table in tables for change in read_changes(snapshot, table, since)]
    return changes, now


def main() -> None:
    name, tables, state, *options = sys.argv[1:]
    _, project, _, instance, _, database_id = name.split("/")
    take_a_look = look_at_timestamp if "windows" in options else look
    remembered = Path(state) / "since"
    since = datetime(1970, 1, 1, tzinfo=UTC)
    if remembered.exists():
        since = datetime.fromisoformat(remembered.read_text())
    while True:
        try:
            client = spanner.Client(project=project, disable_builtin_metrics=True)
            database = client.instance(instance).database(database_id)
            changes, seen = take_a_look(database, tables.split(","), since)
        except (GoogleAPICallError, RetryError) as error:
            print(error, file=sys.stderr)
            continue
        for change in changes:
            print(json.dumps(change))
        sys.stdout.flush()
        # After the lines are written: when it is killed in between, they come again.
        since = seen
        new = remembered.with_suffix(".new")
        new.write_text(since.isoformat())
        new.replace(remembered)
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
