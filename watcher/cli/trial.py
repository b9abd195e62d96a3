"""``spanner-watcher try``: server, table, migration, writer and watcher in one process."""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from watcher.cli.options import JsonOption
from watcher.cli.output import CONSOLE
from watcher.model.errors import OutputClosedError
from watcher.process.terminal.loading import to_run
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress

if to_run(__name__):
    from google.cloud.spanner_v1.database import Database

    from ddl.migration.apply import apply_plan, read_schema
    from ddl.migration.plan import Plan, make_plan
    from emulator.server import start
    from spanner_schema.model.options import WatchOptions
    from watcher.envelopes.lines import JsonLines
    from watcher.model.change import Change
    from watcher.runners.signals import stop_when_closed
    from watcher.runners.watcher import Watcher
    from watcher.runners.watcher_run.lifecycle import READER_GONE
    from watcher.sinks.lines import Lines
    from watcher.spanner.database import connect, create_on_emulator
    from watcher.spanner.timestamps import format_timestamp

EXTRAS = ("emulator",)
ADDRESS = DatabaseAddress("my-project", "my-instance", "my-database")
TABLE = "Singers"
SCHEMA = "CREATE TABLE Singers (SingerId INT64, FirstName STRING(200)) PRIMARY KEY (SingerId)"
NAMES = ("Marc", "Catalina", "Alice", "Lea", "David", "Elena", "Miriam", "Kai")
CONSUMER = "my-reader"
SECONDS_MAX = 86_400
WRITE_SECONDS = 0.5
POLL_INTERVAL = "200ms"


def command(
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1, max=SECONDS_MAX, metavar="SECONDS", help="End by itself after this time."
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="End by itself after this many changes."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """See changes arrive, in one terminal, without a cloud.

    Starts an embedded Spanner in memory, creates a table, makes it watchable, writes a row every
    half second and prints each change as it arrives. Ctrl-C ends everything; nothing stays behind.
    With --json, prints the changes alone, as 'watch' does.
    """
    logging.getLogger("watcher").setLevel(logging.ERROR)
    with start("127.0.0.1", 0, None) as server, use_server(server.address):
        plan = prepare_database()
        if not json_output:
            print_beginning(server.address, plan)
        watcher = Watcher(
            database=str(ADDRESS), tables=[TABLE], consumer=CONSUMER, interval=POLL_INTERVAL
        )
        arrivals = Arrivals(watcher, rows, json_output)
        watcher.deliver_to(arrivals)
        watcher.stop_on_signals()
        stop_when_closed(sys.stdout, lambda: watcher.stop(READER_GONE))
        began = threading.Event()
        watcher.on_start(lambda _start: began.set())
        with write_rows(began), stop_after(watcher, seconds):
            watcher.run()
    if watcher.stop_reason == READER_GONE:
        raise OutputClosedError
    if not json_output:
        print_end(arrivals.rows)


class Arrivals:
    """Takes changes and prints them; asks the watcher to end after so many."""

    def __init__(self, watcher: Watcher, rows_max: int | None, json_output: bool) -> None:
        self._watcher = watcher
        self._rows_max = rows_max
        self._lines = Lines(sys.stdout, JsonLines()) if json_output else None
        self.rows = 0

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``."""
        if self.rows == self._rows_max:
            return
        self.rows += 1
        if self._lines is not None:
            self._lines.write_change(change)
        else:
            CONSOLE.print(describe_change(change))
        if self.rows == self._rows_max:
            self._watcher.stop()

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``."""

    def flush(self) -> None:
        """As ``ChangeSink.flush``."""
        if self._lines is not None:
            self._lines.flush()
        else:
            sys.stdout.flush()

    def discard(self) -> None:
        """Nothing is kept."""


@contextmanager
def use_server(address: str) -> Iterator[None]:
    """Points the clients of this process to the embedded server."""
    before = os.environ.get(EMULATOR_HOST)
    os.environ[EMULATOR_HOST] = address
    try:
        yield
    finally:
        os.environ.pop(EMULATOR_HOST)
        if before is not None:
            os.environ[EMULATOR_HOST] = before


def prepare_database() -> Plan:
    """Creates the table and makes it watchable; what was done for that."""
    create_on_emulator(ADDRESS, [SCHEMA])
    database = connect(ADDRESS)
    plan = make_plan(read_schema(database), [TABLE], WatchOptions(shards=4))
    apply_plan(database, plan)
    return plan


@contextmanager
def write_rows(began: threading.Event) -> Iterator[None]:
    """Writes a row every half second once ``began`` is set, of which every third exists already,
    until the block ends."""
    done = threading.Event()
    database = connect(ADDRESS)

    def write() -> None:
        began.wait()
        for number in itertools.count(1):
            if done.wait(WRITE_SECONDS):
                return
            write_row(database, number)

    thread = threading.Thread(target=write, name="writer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        began.set()
        thread.join()


def write_row(database: Database, number: int) -> None:
    """The write of this number: two new singers, then a new name for the first of them."""
    group, within = divmod(number - 1, 3)
    key = 2 * group + (within % 2) + 1
    name = NAMES[number % len(NAMES)]
    with database.batch() as batch:
        batch.insert_or_update(TABLE, ("SingerId", "FirstName"), [(key, name)])


@contextmanager
def stop_after(watcher: Watcher, seconds: float | None) -> Iterator[None]:
    """Stops the watcher after so many seconds, unless the block ends before."""
    timer = threading.Timer(seconds or 0.0, watcher.stop)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def describe_change(change: Change) -> str:
    """A change as a line for people."""
    row = {**change.key, "FirstName": (change.new_values or {}).get("FirstName")}
    late = (change.window.end - change.commit_timestamp) / 1_000_000
    at = format_timestamp(change.commit_timestamp)
    text = json.dumps(row, ensure_ascii=False)
    return f"{at}  {change.operation} {change.table} {text}  seen {late:.2f} s after its commit"


def print_beginning(address: str, plan: Plan) -> None:
    """Says what runs here, for somebody who sees it for the first time."""
    CONSOLE.print(f"An embedded Spanner listens on {address}. It holds this table:")
    CONSOLE.print(f"  {SCHEMA}")
    CONSOLE.print(
        f"{len(plan.statements)} DDL statements have made it watchable ('ddl apply'): a commit"
        " timestamp, a shard, an index."
    )
    CONSOLE.print("A writer changes a row every half second. Each line below is a change that")
    CONSOLE.print("the watcher has found through the index. Press Ctrl-C to end everything.")
    CONSOLE.print("")
    sys.stdout.flush()


def print_end(rows: int) -> None:
    """Says what to try next, in commands that work as they stand."""
    CONSOLE.print(f"\n{rows} changes have arrived, and everything has ended. To do the same")
    CONSOLE.print("step by step, on an embedded Spanner that stays:\n")
    CONSOLE.print(NEXT_COMMANDS)


WRITE = (
    'from google.cloud import spanner; spanner.Client("my-project").instance("my-instance")'
    '.database("my-database").run_in_transaction(lambda transaction: transaction'
    '.insert_or_update("Singers", ["SingerId", "FirstName"], [[1, "Marc"]]))'
)
"""What an application does, as a program of one line."""
NEXT_COMMANDS = f"""\
  export D={ADDRESS}
  export SPANNER_EMULATOR_HOST=127.0.0.1:9010
  echo '{SCHEMA}' > singers.sql
  spanner-watcher emulator --database $D --schema singers.sql &    # wait for 'listening on'
  spanner-watcher ddl apply --database $D --table Singers
  spanner-watcher watch --database $D --table Singers --consumer my-reader &
  python3 -c '{WRITE}'
  spanner-watcher status --database $D"""
