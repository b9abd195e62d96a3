"""Runs whose watcher writes files by table and time: each change is in one of them, once."""

from __future__ import annotations

import gzip
import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from fixtures.pace import allow

from conformance.embedded import restored_address
from conformance.judges.each_change import newest_versions
from conformance.judges.polled_windows import find_disordered
from conformance.judges.streamed_windows import mods_of
from conformance.truth import Row, Truth
from conformance.writers import COLUMNS, WATCHED, Writer
from nemesis.run import (
    REFUSED,
    STOP_SECONDS_MAX,
    WRITERS,
    Capture,
    Report,
    World,
    micros,
    write_and_strike,
)
from watcher.spanner.timestamps import to_micros


@dataclass(frozen=True, slots=True)
class FileLine:
    """A change in a file; ``version`` is None for a delete."""

    row: Row
    at: int
    version: str | None


class FilesWorld(World):
    """As ``World``, with files by table and time in place of one file of lines."""

    file_format: str

    @property
    def destination(self) -> str:
        """As ``World.destination``."""
        return f"files:{self.output}"

    def _place_output(self, base: Path) -> Path:
        return base / "changes"

    def _destination_settings(self) -> str:
        whole = self.capture == "poll" or self.captured.whole_row
        self.file_format = self.randomness.choice(["lines", "parquet"] if whole else ["lines"])
        self.struck[self.file_format] += 1
        return f'[delivery.files]\nformat = "{self.file_format}"'

    def start_other(self) -> None:
        """Another consumer with the same folder, by mistake."""
        config = self.folder / "other.toml"
        config.write_text(self._configure_other())
        code = self._start(config).wait(allow(STOP_SECONDS_MAX))
        assert code == REFUSED, f"another consumer ended with {code}"

    def read_files(self) -> list[FileLine]:
        """What a reader of all files finds, in the order of their numbers."""
        read = read_parquet if self.file_format == "parquet" else read_lines
        suffix = "parquet" if self.file_format == "parquet" else "jsonl.gz"
        return [
            line
            for path in sorted(self.output.glob(f"*/*/*.{suffix}"))
            for line in read(path, path.parts[-3])
        ]

    def _unmount(self) -> None:
        if self.disk is not None:
            shutil.copytree(self.output, self.folder / "changes", dirs_exist_ok=True)
            self.disk.close()


def read_lines(path: Path, table: str) -> Iterator[FileLine]:
    """The changes of a file of lines."""
    for text in gzip.decompress(path.read_bytes()).splitlines():
        change: dict[str, Any] = json.loads(text)
        row = (table, tuple(change["key"].values()))
        deleted = change["operation"] == "DELETE"
        version = None if deleted else change["values"]["Version"]
        yield FileLine(row, micros(change["commit_timestamp"]), version)


def read_parquet(path: Path, table: str) -> Iterator[FileLine]:
    """The changes of a file of Parquet."""
    for each in pq.read_table(path).to_pylist():
        row = (table, tuple(each[name] for name in COLUMNS[table][:-1]))
        deleted = each["_change_type"] == "delete"
        version = None if deleted else each["Version"]
        yield FileLine(row, to_micros(each["_commit_timestamp"]), version)


def run_files(folder: Path, seed: int, seconds: float, capture: Capture) -> Report:
    """A whole run. Raises AssertionError when the watcher or the server fails to obey."""
    with restored_address():
        world = FilesWorld(folder, seed, capture)
        truth, stop = Truth(), threading.Event()
        writers = [Writer(n, seed, world.database, truth, stop) for n in range(WRITERS)]
        world.writers = writers
        threads = [threading.Thread(target=writer.run, daemon=True) for writer in writers]
        try:
            write_and_strike(world, truth, stop, threads, seconds)
            problems = [repr(writer.failure) for writer in writers if writer.failure]
            world.finish()
            lines = world.read_files()
            problems += find_problems(lines, truth, capture)
            return Report(seed, problems, len(truth.commits), len(lines), 0, dict(world.struck))
        finally:
            stop.set()
            world.close()


def find_problems(lines: Sequence[FileLine], truth: Truth, capture: Capture) -> list[str]:
    """Everything that is wrong: what was doubled, invented, lost, or is out of order."""
    history = truth.history()
    mods = mods_of(history, WATCHED)
    found = Counter((line.row, line.at) for line in lines)
    expected = mods.keys() if capture == "change-stream" else newest_versions(history)
    return [
        *(f"{row} at {at} is there {n} times" for (row, at), n in found.items() if n > 1),
        *(
            f"{line.row} at {line.at}: {line.version!r} was never written"
            for line in lines
            if (line.row, line.at) not in mods or mods[line.row, line.at].new != line.version
        ),
        *(f"{row} at {at} is lost" for row, at in expected - found.keys()),
        *find_disordered(lines),
    ]
