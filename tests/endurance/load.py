"""An application that writes evenly, as a process: ``python -m endurance.load DATABASE LOG ...``.

Each of its threads has keys of its own and writes one transaction after another. A transaction
names itself in ``Marks``, so that a commit whose answer was lost can be looked up, and so that the
client cannot send it twice. What was committed goes to ``LOG.N``: commit timestamp in
microseconds, key, version (``DELETED`` for a row that was deleted), as 64-bit integers.
"""

from __future__ import annotations

import argparse
import random
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np
from google.api_core.exceptions import AlreadyExists, GoogleAPICallError, RetryError
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet
from google.cloud.spanner_v1.database import Database

from conformance.writers import fresh_database
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.timestamps import to_micros

SCHEMA = (
    "CREATE TABLE Load (Id INT64 NOT NULL, Version INT64, Payload STRING(MAX)) PRIMARY KEY (Id)",
    "CREATE TABLE Marks (Thread INT64 NOT NULL, Number INT64 NOT NULL,"
    " CommittedAt TIMESTAMP OPTIONS (allow_commit_timestamp = true))"
    " PRIMARY KEY (Thread, Number)",
)
DELETED = -1
DELETES = 0.02
"""The share of mutations that delete their row."""
PAYLOAD = "x" * 60
LOST = (GoogleAPICallError, RetryError)
AGAIN_SECONDS = 0.1


class LoadThread:
    """One thread of the application; it has the keys that leave ``number`` over ``threads``."""

    def __init__(
        self, number: int, options: argparse.Namespace, log: BinaryIO, stop: threading.Event
    ) -> None:
        self._number = number
        self._options = options
        self._log = log
        self._stop = stop
        self._choice = random.Random(options.seed * 1_000 + number)
        self._database = self._connect()
        self.failure: Exception | None = None

    def run(self) -> None:
        """Writes on schedule until it is stopped; what is late follows at once."""
        every = self._options.threads * self._options.size / self._options.rate
        due = time.monotonic()
        sequence = 0
        try:
            while not self._stop.wait(max(0.0, due - time.monotonic())):
                due += every
                sequence += 1
                self._write(sequence)
        except Exception as error:  # noqa: BLE001 (the main thread raises it)
            self.failure = error

    def _connect(self) -> Database:
        return fresh_database(DatabaseAddress.parse(self._options.database))

    def _write(self, sequence: int) -> None:
        threads = self._options.threads
        places = self._choice.sample(range(self._options.keys // threads), self._options.size)
        keys = [place * threads + self._number for place in places]
        version = sequence * threads + self._number
        gone = [key for key in keys if self._choice.random() < DELETES]
        kept = sorted(set(keys) - set(gone))
        at = self._commit(sequence, version, kept, gone)
        if at is None:
            return
        rows = [(at, key, version) for key in kept] + [(at, key, DELETED) for key in gone]
        np.array(rows, dtype=np.int64).tofile(self._log)
        self._log.flush()

    def _commit(
        self, sequence: int, version: int, kept: Sequence[int], gone: Sequence[int]
    ) -> int | None:
        """The commit timestamp, or None where it was not committed."""
        try:
            with self._database.batch() as batch:
                batch.insert(
                    "Marks",
                    ("Thread", "Number", "CommittedAt"),
                    [(self._number, sequence, COMMIT_TIMESTAMP)],
                )
                batch.delete("Marks", KeySet(keys=[[self._number, sequence - 1]]))
                batch.insert_or_update(
                    "Load",
                    ("Id", "Version", "Payload"),
                    [(key, version, PAYLOAD) for key in kept],
                )
                if gone:
                    batch.delete("Load", KeySet(keys=[[key] for key in gone]))
        except AlreadyExists:
            pass  # the client sent it again, and the first one had come through
        except LOST:
            pass  # perhaps it came through all the same: the mark knows
        else:
            return to_micros(batch.committed)
        return self._look_up(sequence)

    def _look_up(self, sequence: int) -> int | None:
        """What the mark of a transaction says, read until the server answers."""
        while True:
            try:
                self._database = self._connect()
                with self._database.snapshot() as snapshot:
                    keys = KeySet(keys=[[self._number, sequence]])
                    rows = list(snapshot.read("Marks", ("CommittedAt",), keys))
            except LOST:
                time.sleep(AGAIN_SECONDS)
            else:
                return to_micros(rows[0][0]) if rows else None


def main() -> None:
    """Writes until SIGTERM."""
    options = parse_arguments()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to its whole group
    with ExitStack() as files:
        works = [
            LoadThread(number, options, files.enter_context(open_log(options.log, number)), stop)
            for number in range(options.threads)
        ]
        threads = [threading.Thread(target=work.run) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for work in works:
        if work.failure is not None:
            raise work.failure


def open_log(path: Path, number: int) -> BinaryIO:
    """The log of a thread."""
    return Path(f"{path}.{number}").open("ab")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", help="projects/P/instances/I/databases/D")
    parser.add_argument("log", type=Path)
    parser.add_argument("--rate", type=float, required=True, help="mutations a second")
    parser.add_argument("--size", type=int, default=30, help="mutations of a transaction")
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
