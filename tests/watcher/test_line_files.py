"""Files that are appended to, over any sequence of failed writes, torn ends, kills and moves:
judged by the lines that have to be in them."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from fixtures.queue_records import account_changes
from hypothesis import given
from hypothesis import strategies as st

from watcher.model.change import Change
from watcher.model.errors import (
    ConfigurationError,
    FileInUseError,
    FileUnavailableError,
    FileWriteError,
)
from watcher.process import line_files
from watcher.process.line_files import LineFile, append_line, begin_line, replace_lines
from watcher.process.private_files import replace_file
from watcher.sinks.lines import RotatingFile

WINDOW = 4
KEYS = 3


class KilledError(BaseException):
    """The process ends here: nothing else of it runs."""


@dataclass
class Disk:
    """The system's calls, of which some fail. Each fault is for one call that writes or syncs:
    ``None`` for none, or what happens after so many parts of its bytes."""

    faults: Iterator[tuple[str, float] | None]
    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, fd: int, part: memoryview) -> int:
        fault = next(self.faults, None)
        if fault is None:
            return os.write(fd, part)
        kind, share = fault
        written = os.write(fd, part[: int(len(part) * share)])
        self.calls.append(kind)
        return self._fail(kind, written)

    def fsync(self, fd: int) -> None:
        fault = next(self.faults, None)
        if fault is None:
            return os.fsync(fd)
        self.calls.append(fault[0])
        self._fail(fault[0], 0)
        return None

    def _fail(self, kind: str, written: int) -> int:
        if kind == "killed":
            raise KilledError
        if kind == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written  # a short write


FAULTS = st.none() | st.tuples(st.sampled_from(["full", "killed", "short"]), st.floats(0, 0.99))
EVENTS = st.sampled_from(["nothing", "nothing", "nothing", "moved", "removed", "restarted"])


class Delivery:
    """Windows to one file, as a watcher delivers them: each until it is acknowledged."""

    def __init__(self, folder: Path, rotate_bytes: int | None, at_once: bool) -> None:
        """``at_once``: many lines of a window are handed over as one text."""
        self.path = folder / "changes.jsonl"
        self._at_once = at_once
        self._rotate_bytes = rotate_bytes
        self._sink = self._start()
        self._moves = 0
        self.removed: set[int] = set()
        """Changes that were acknowledged when somebody removed the file that had them."""

    def _start(self) -> RotatingFile:
        return RotatingFile(self.path, self._rotate_bytes)

    def restart(self) -> None:
        """As after a kill: the system closes the file, and nothing is written to it before."""
        fd = self._sink._file._fd
        if fd is not None:
            os.close(fd)
        self._sink._file._fd = None
        self._sink = self._start()

    def deliver(self, window: list[Change], event: str, at: int) -> None:
        """Returns when the window is acknowledged; the event comes before one of its changes."""
        for attempt in range(100):
            try:
                self._write(window[:at])
                if attempt == 0:
                    self.happen(event)
                self._write(window[at:])
                self._sink.flush()
            except FileUnavailableError:
                self._sink.discard()
            except KilledError:
                self.restart()
            else:
                return
        raise AssertionError("the window is never acknowledged")

    def _write(self, changes: list[Change]) -> None:
        if self._at_once:
            lines = [line for change in changes for line in self._sink.lines.encode(change)]
            self._sink.append("".join(f"{line}\n" for line in lines).encode())
            return
        for change in changes:
            self._sink.write_change(change)

    def happen(self, event: str) -> None:
        if event == "restarted":
            raise KilledError
        if not self.path.exists():
            return
        if event == "moved":
            self._moves += 1
            self.path.rename(self.path.with_name(f"moved.{self._moves}"))
        elif event == "removed":
            self.removed |= set(balances_in([self.path]))
            self.path.unlink()

    def files(self) -> list[Path]:
        """Every file, in the order in which they had the name."""
        others = [p for p in self.path.parent.iterdir() if p != self.path]
        return [*sorted(others, key=lambda p: p.stat().st_mtime_ns), self.path]


def balances_in(paths: list[Path]) -> list[int]:
    """The column Balance of each line, of which none is torn but the last of a file that a killed
    process has left."""
    found = []
    for path in paths:
        for line in path.read_bytes().split(b"\n")[:-1]:
            found.append(json.loads(line)["values"]["Balance"])
    return found


@given(
    st.lists(FAULTS, max_size=30),
    st.lists(st.tuples(EVENTS, st.integers(0, WINDOW - 1)), min_size=1, max_size=6),
    st.sampled_from([None, 1, 3_000]),
    st.sampled_from([10, 1_500, line_files.BUFFER_BYTES]),
    st.booleans(),
)
def test_every_acknowledged_change_is_in_a_file_whole_and_in_the_order_of_its_key(
    faults: list[tuple[str, float] | None],
    windows: list[tuple[str, int]],
    rotate_bytes: int | None,
    buffer: int,
    at_once: bool,
) -> None:
    changes = account_changes(WINDOW * len(windows), KEYS)
    with TemporaryDirectory() as folder:
        delivery = Delivery(Path(folder), rotate_bytes, at_once)
        with (
            patch.object(line_files, "os", Disk(iter(faults))),
            patch.object(line_files, "BUFFER_BYTES", buffer),
        ):
            for number, (event, at) in enumerate(windows):
                part = changes[number * WINDOW : (number + 1) * WINDOW]
                delivery.deliver(part, event, at)
            delivery._sink.close()
        delivery.restart()
        delivery._sink.open()
        found = balances_in(delivery.files())
        delivery._sink.close()
    assert set(found) | delivery.removed >= set(range(len(changes)))
    for key in range(KEYS):
        mine = [balance for balance in found if balance % KEYS == key]
        new = list(dict.fromkeys(mine))
        assert new == sorted(new), "a version came first after a newer one"
        assert mine == [] or mine[-1] == max(mine), "a key ends with an older version"


# One by one.


def line(number: int) -> str:
    return json.dumps({"number": number})


def numbers(path: Path) -> list[int]:
    return [json.loads(text)["number"] for text in path.read_text().splitlines()]


@pytest.mark.parametrize("left", ['{"number": 1', "", "x" * 200_000, "\0" * 5_000])
def test_a_part_of_a_line_is_removed_before_the_next_one(tmp_path: Path, left: str) -> None:
    path = tmp_path / "lines"
    path.write_text(line(0) + "\n" + left)
    append_line(path, line(2))
    assert numbers(path) == [0, 2]


def test_a_whole_line_that_lacks_its_newline_stays(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text(line(0) + "\n" + line(1))
    append_line(path, line(2))
    assert numbers(path) == [0, 1, 2]


def test_two_processes_do_not_append_to_a_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    first, second = LineFile(path), LineFile(path)
    first.open()
    first.append([line(0)])
    with pytest.raises(FileInUseError, match=r"another process is writing to .*lines: stop it"):
        second.open(wait_seconds=0)
    first.sync()
    first.rotate()
    with pytest.raises(FileInUseError):
        second.open(wait_seconds=0)
    first.append([line(1)])
    first.sync()
    first.close()
    second.open(wait_seconds=0)
    second.append([line(2)])
    second.sync()
    second.close()
    assert numbers(path) == [1, 2]


def test_who_waits_for_a_file_that_is_rotated_gets_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    first, second = LineFile(path), LineFile(path)
    first.open()
    waiting = threading.Thread(target=second.open, args=(60.0,))
    waiting.start()
    first.append([line(0)])
    first.sync()
    first.rotate()
    first.close()
    waiting.join()
    second.append([line(1)])
    second.sync()
    second.close()
    assert numbers(path) == [1]


def test_a_file_in_which_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileWriteError, match=r"cannot write .*file/lines: "):
        append_line(tmp_path / "file" / "lines", line(0))
    with pytest.raises(ConfigurationError, match="not a regular file"):
        append_line(Path("/dev/full"), line(0))
    with pytest.raises(FileWriteError, match=r"cannot write .*gone/positions: ") as raised:
        replace_file(tmp_path / "gone" / "positions", "text")
    assert not isinstance(raised.value, FileUnavailableError)


def test_lines_that_came_meanwhile_stay_when_others_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text(line(0) + "\n" + line(1))
    before = path.read_text()
    append_line(path, line(2))
    replace_lines(path, before, [line(1)])
    assert numbers(path) == [1, 2]
    with pytest.raises(FileInUseError, match="has changed"):
        replace_lines(path, before, [])
    assert numbers(path) == [1, 2]


def test_an_output_that_continues_a_part_of_a_line_begins_another(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text('{"torn')
    for _ in range(2):
        with path.open("a") as file:
            begin_line(file.fileno())
            file.write(line(1) + "\n")
    assert path.read_text() == '{"torn\n' + (line(1) + "\n") * 2


def test_an_output_that_others_append_to_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with path.open("a") as first, path.open("a") as second:
        begin_line(first.fileno())
        first.write("half a line of the first")
        first.flush()
        begin_line(second.fileno())
        assert path.read_text() == "half a line of the first"


def test_changes_of_a_file_keep_their_values(tmp_path: Path) -> None:
    (change,) = account_changes(1)
    sink = RotatingFile(tmp_path / "of" / "changes", None)
    sink.write_change(replace(change, id="one\ntwo"))
    sink.flush()
    sink.close()
    (text,) = (tmp_path / "of" / "changes").read_text().splitlines()
    assert json.loads(text)["id"] == "one\ntwo"


@pytest.mark.parametrize("text", ["dear diary", "a,b\n1,2", '{"a": 1}\nnot json\nlast', "\n\nlast"])
def test_the_last_line_of_a_file_that_is_not_ours_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="is not a file of changes"):
        append_line(path, line(1))
    assert path.read_text() == text


@pytest.mark.parametrize("left", ['{"torn', "\0" * 100, '{"number": 0}\n{"to'])
def test_a_first_line_that_a_crash_has_torn_is_removed(tmp_path: Path, left: str) -> None:
    path = tmp_path / "lines"
    path.write_text(left)
    append_line(path, line(1))
    assert numbers(path)[-1] == 1
