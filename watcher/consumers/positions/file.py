"""Positions in a file, for a watcher that may not write to the database."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from watcher.captures.progress import BackfillProgress
from watcher.consumers.positions.values import (
    BackfillMove,
    Move,
    Position,
    Registered,
    Registration,
    check_backfills,
    moved,
    plan_registration,
)
from watcher.errors import CheckpointError
from watcher.spanner.timestamps import format_timestamp, to_micros

FILE_VERSION = 1
OLD_BACKFILLS = ".backfills"
"""What the file of backfills of earlier releases ended in."""


@dataclass(slots=True)
class Content:
    """What the file holds, by consumer and table."""

    positions: dict[tuple[str, str], int] = field(default_factory=dict)
    backfills: dict[tuple[str, str], BackfillProgress] = field(default_factory=dict)


class FilePositions:
    """Positions in a JSON file, replaced as a whole; a lock file keeps other processes out.

    Clearing does not see them, so nothing must be cleared behind them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, consumer: str, table: str) -> Position | None:
        """As ``Positions.load``."""
        micros = self._read().positions.get((consumer, table))
        return None if micros is None else Position(consumer, table, micros)

    def register(self, registration: Registration, owner: str | None = None) -> Registered:  # noqa: ARG002
        """As ``Positions.register``."""
        consumer = registration.consumer
        with self._changing() as content:
            kept = {t: at for (c, t), at in content.positions.items() if c == consumer}
            plan = plan_registration(registration, kept, {})
            content.positions |= {(consumer, table): at for table, at in plan.moved.items()}
            content.backfills |= {(consumer, table): p for table, p in plan.backfills.items()}
        return plan

    def save(self, position: Position, expected: int | None) -> None:
        """As ``Positions.save``."""
        self.save_all([Move(position, expected)])

    def save_all(
        self,
        moves: Sequence[Move],
        owner: str | None = None,  # noqa: ARG002
        backfills: Sequence[BackfillMove] = (),
        consumer: str | None = None,
    ) -> None:
        """As ``Positions.save_all``; the comparison alone keeps a second instance out."""
        name = consumer or ""
        with self._changing() as content:
            check_backfills(name, backfills_of(content, name), backfills)
            content.positions |= moved(content.positions, moves)
            for move in backfills:
                content.backfills.pop((name, move.table), None)
                if move.progress is not None:
                    content.backfills[name, move.table] = move.progress

    def remove(self, consumer: str, tables: Sequence[str], owner: str | None = None) -> None:  # noqa: ARG002
        """As ``Positions.remove``."""
        with self._changing() as content:
            for table in tables:
                content.positions.pop((consumer, table), None)
                content.backfills.pop((consumer, table), None)

    def of(self, consumer: str) -> dict[str, int]:
        """As ``Positions.of``."""
        return {t: micros for (c, t), micros in self._read().positions.items() if c == consumer}

    def backfills(self, consumer: str) -> dict[str, BackfillProgress]:
        """As ``Positions.backfills``."""
        return backfills_of(self._read(), consumer)

    def all(self, table: str) -> tuple[Position, ...]:
        """As ``Positions.all``."""
        return tuple(each for each in self.every() if each.table == table)

    def every(self) -> tuple[Position, ...]:
        """As ``Positions.every``."""
        return tuple(Position(c, t, micros) for (c, t), micros in self._read().positions.items())

    @contextmanager
    def _changing(self) -> Iterator[Content]:
        """The content, which is written back at the end unless an error is raised."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_name(self._path.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            content = self._read()
            yield content
            replace_file(self._path, text_of(content))
            self._old_backfills.unlink(missing_ok=True)

    @property
    def _old_backfills(self) -> Path:
        return self._path.with_name(self._path.name + OLD_BACKFILLS)

    def _read(self) -> Content:
        content, complete = Content(), False
        if self._path.exists():
            content, complete = self._parse(self._path.read_text())
        # One that a crash has left beside a file of this release is older than that.
        if not complete and self._old_backfills.exists():
            for consumer, tables in json.loads(self._old_backfills.read_text()).items():
                for table, text in tables.items():
                    content.backfills[consumer, table] = BackfillProgress.from_text(text)
        return content

    def _parse(self, text: str) -> tuple[Content, bool]:
        """The content, and whether backfills are in it."""
        try:
            stored = json.loads(text)
            version = stored["version"]
            content = Content(
                {
                    (r["consumer"], r["table"]): to_micros(datetime.fromisoformat(r["position"]))
                    for r in stored["positions"]
                },
                {
                    (r["consumer"], r["table"]): BackfillProgress.from_text(r["progress"])
                    for r in stored.get("backfills", ())
                },
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self._path} is not a file of positions ({error}); name another file or fix it"
            ) from error
        if version != FILE_VERSION:
            raise CheckpointError(
                f"{self._path} has version {version}; this release reads version {FILE_VERSION}"
            )
        return content, "backfills" in stored


def backfills_of(content: Content, consumer: str) -> dict[str, BackfillProgress]:
    """The backfills of a consumer, by table."""
    return {t: progress for (c, t), progress in content.backfills.items() if c == consumer}


def text_of(content: Content) -> str:
    """The content as it is stored."""
    positions = [
        {"consumer": c, "table": t, "position": format_timestamp(micros)}
        for (c, t), micros in sorted(content.positions.items())
    ]
    backfills = [
        {"consumer": c, "table": t, "progress": progress.to_text()}
        for (c, t), progress in sorted(content.backfills.items(), key=lambda item: item[0])
    ]
    return json.dumps({"version": FILE_VERSION, "positions": positions, "backfills": backfills})


def replace_file(path: Path, text: str) -> None:
    """Writes a file so that a crash leaves the old one or the new one, whole."""
    part = path.with_name(f"{path.name}.{os.getpid()}.new")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
