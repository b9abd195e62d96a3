"""What a command writes: lines with the moment of their arrival, from every start of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from conformance.changes import Line
from conformance.formats import UnreadableLineError, parse_line
from conformance.recording import Unreadable


def now_micros() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


@dataclass(frozen=True, slots=True)
class RawLine:
    """A line as it came. One that was ``cut`` has no end: the command was killed."""

    start: int
    arrived: int
    text: str
    cut: bool = False


@dataclass(slots=True)
class Output:
    """The lines of all starts, from the threads that read them."""

    raw: list[RawLine] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, pipe: IO[bytes], start: int) -> None:
        """Takes lines until the command and all that it has started have closed the pipe."""
        for text in pipe:
            line = RawLine(
                start,
                now_micros(),
                text.decode(errors="replace").rstrip("\n"),
                not text.endswith(b"\n"),
            )
            with self._lock:
                self.raw.append(line)

    def count(self) -> int:
        """How many lines have come."""
        with self._lock:
            return len(self.raw)

    def after(self, number: int) -> list[RawLine]:
        """The lines after so many."""
        with self._lock:
            return self.raw[number:]


def parse_output(
    raw: Sequence[RawLine], name: str, first: int = 1
) -> tuple[list[Line], list[Unreadable]]:
    """The changes in lines of a format, which are numbered from ``first``."""
    lines: list[Line] = []
    unreadable: list[Unreadable] = []
    for number, line in enumerate(raw, first):
        if line.cut or not line.text.strip():
            continue
        try:
            changes = parse_line(line.text.encode(), name)
        except UnreadableLineError as error:
            unreadable.append(Unreadable(number, line.text, str(error)))
        else:
            lines += [Line(number, line.start, line.arrived, change) for change in changes]
    return lines, unreadable


def write_lines(path: Path, values: Sequence[object]) -> None:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))
