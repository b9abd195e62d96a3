"""Positions in a file, for a watcher that may not write to the database."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from watcher.errors import CheckpointError
from watcher.positions.values import Move, Position, moved
from watcher.stream import micros_of, timestamp_text

FILE_VERSION = 1


class FilePositions:
    """Positions in a JSON file, replaced as a whole; a lock file keeps other processes out."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, consumer: str, table: str) -> Position | None:
        """As ``Positions.load``."""
        micros = self._read().get((consumer, table))
        return None if micros is None else Position(consumer, table, micros)

    def save(self, position: Position, expected: int | None) -> None:
        """As ``Positions.save``."""
        self.save_all([Move(position, expected)])

    def save_all(self, moves: Sequence[Move], owner: str | None = None) -> None:  # noqa: ARG002
        """As ``Positions.save_all``; the comparison alone keeps a second instance out."""
        with self._locked():
            kept = self._read()
            kept |= moved(kept, moves)
            rows = [
                {"consumer": c, "table": t, "position": timestamp_text(micros)}
                for (c, t), micros in sorted(kept.items())
            ]
            replace_file(self._path, json.dumps({"version": FILE_VERSION, "positions": rows}))

    def of(self, consumer: str) -> dict[str, int]:
        """As ``Positions.of``."""
        return {t: micros for (c, t), micros in self._read().items() if c == consumer}

    def all(self, table: str) -> tuple[Position, ...]:
        """As ``Positions.all``."""
        return tuple(Position(c, t, m) for (c, t), m in self._read().items() if t == table)

    def every(self) -> tuple[Position, ...]:
        """As ``Positions.every``."""
        return tuple(Position(c, t, micros) for (c, t), micros in self._read().items())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_name(self._path.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read(self) -> dict[tuple[str, str], int]:
        if not self._path.exists():
            return {}
        try:
            content = json.loads(self._path.read_text())
            version, rows = content["version"], content["positions"]
            found = {
                (row["consumer"], row["table"]): micros_of(datetime.fromisoformat(row["position"]))
                for row in rows
            }
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self._path} is no file of positions ({error}); name another one, or mend it"
            ) from error
        if version != FILE_VERSION:
            raise CheckpointError(
                f"{self._path} is of version {version}; this release reads {FILE_VERSION}"
            )
        return found


def replace_file(path: Path, text: str) -> None:
    """Writes a file so that a crash leaves the old one or the new one, whole."""
    part = path.with_name(f"{path.name}.{os.getpid()}.new")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
