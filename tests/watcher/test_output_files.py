"""``watch`` into files: full disks, files that are moved away, commands that are started twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import PROGRAM, run_command
from fixtures.pace import allow
from fixtures.queue_records import account_changes
from fixtures.singers import address_of, write_singers
from fixtures.small_disk import SmallDisk
from fixtures.watcher_threads import run_in_thread, run_without_error
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.consumers.positions import FilePositions, Move, Position
from watcher.model.change import Change
from watcher.model.errors import (
    ConfigurationError,
    FileInUseError,
    FileUnavailableError,
    FileWriteError,
)
from watcher.sinks import whole_batches
from watcher.sinks.lines import RotatingFile

LARGE = "x" * 150


def make_watcher(database: Database, path: Path, rotate: int | None = None, **more: Any) -> Watcher:
    watcher = Watcher(
        **{
            "database": str(address_of(database)),
            "tables": ["Singers"],
            "consumer": "to-file",
            "start": "earliest",
            "interval": "20ms",
        }
        | more
    )
    watcher.deliver_to(RotatingFile(path, rotate))
    return watcher


def keys(*paths: Path) -> list[int]:
    """The keys of the changes in files, whose lines are all whole."""
    lines = [line for path in paths for line in path.read_text().splitlines()]
    return [json.loads(line)["key"]["SingerId"] for line in lines]


def wait_until(condition: Callable[[], object]) -> None:
    waiting, tries = threading.Event(), int(allow(60) / 0.02)
    for _ in range(tries):
        if condition():
            return
        waiting.wait(0.02)
    raise AssertionError("it does not come to pass")


def arguments(database: Database, consumer: str = "c") -> list[str]:
    options = ["-d", str(address_of(database)), "-t", "Singers", "--consumer", consumer]
    return ["watch", *options, "--from", "earliest"]


# Full disks.


@pytest.mark.parametrize("by_column", [False, True])
def test_a_disk_that_is_full_for_a_moment_loses_no_row(
    singers: Database, small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, by_column: bool
) -> None:
    monkeypatch.setattr(whole_batches, "ROWS_BY_COLUMN", 0 if by_column else sys.maxsize)
    write_singers(singers, range(40), LARGE)
    small_disk.fill(left=8_192)
    watcher = make_watcher(singers, small_disk.path / "changes.jsonl")
    errors: list[str] = []

    def free(error: str) -> None:
        errors.append(error)
        small_disk.free()

    watcher.metrics.count_error = free  # type: ignore[assignment]
    watcher.run_once()
    assert errors == ["FileUnavailableError"]
    assert sorted(set(keys(small_disk.path / "changes.jsonl"))) == list(range(40))


def write_and_flush(sink: RotatingFile, changes: Iterable[Change]) -> None:
    for change in changes:
        sink.write_change(change)
        sink.flush()


def test_a_full_disk_is_named_and_leaves_whole_lines(small_disk: SmallDisk) -> None:
    file = small_disk.path / "changes.jsonl"
    small_disk.fill(left=8_192)
    sink = RotatingFile(file, None)
    with pytest.raises(FileUnavailableError, match=r"changes\.jsonl: No space left .*free some"):
        write_and_flush(sink, account_changes(1_000))
    sink.close()
    whole = file.read_bytes()
    assert whole.endswith(b"\n")
    assert all(json.loads(line) for line in whole.splitlines())


def test_positions_on_a_full_disk_are_named_and_nothing_else_is_left(small_disk: SmallDisk) -> None:
    path = small_disk.path / "positions.json"
    positions = FilePositions(path)
    positions.save(Position("c", "Singers", 10), None)
    small_disk.fill()
    before = path.read_bytes(), sorted(small_disk.path.iterdir())
    moves = [Move(Position("c", f"T{number}", 10), None) for number in range(2_000)]
    with pytest.raises(FileUnavailableError, match=r"cannot write .*positions\.json: No space"):
        positions.save_all(moves)
    assert (path.read_bytes(), sorted(small_disk.path.iterdir())) == before
    small_disk.free()
    positions.save_all(moves)
    assert len(positions.list_all()) == 2_001


def test_a_standard_output_on_a_full_disk_ends_the_command_and_saves_no_position(
    singers: Database,
) -> None:
    write_singers(singers, range(3), "name")
    with Path("/dev/full").open("w") as full:
        command = [*PROGRAM, *arguments(singers), "--once"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 3
    assert "cannot write to the standard output: No space left on device" in ended.stderr
    assert len(ended.stderr.splitlines()) <= 2, ended.stderr
    assert "Exception ignored" not in ended.stderr
    again = run_command(*arguments(singers), "--once")
    assert len(again.stdout.splitlines()) == 3


def test_the_standard_output_that_continues_a_torn_line_loses_none(
    singers: Database, tmp_path: Path
) -> None:
    write_singers(singers, range(3), "name")
    path = tmp_path / "output"
    path.write_text('{"torn')
    with path.open("a") as output:
        subprocess.run([*PROGRAM, *arguments(singers), "--once"], stdout=output, check=True)
    torn, *lines = path.read_text().splitlines()
    assert torn == '{"torn'
    assert len([json.loads(line) for line in lines]) == 3


# Dead letters.


def refuse(_change: Change) -> None:
    raise RuntimeError("never")


def skip_all(database: Database, letters: Path) -> None:
    delivery = {"backoff": 0, "retries": 0, "then": "skip", "dead_letters": letters}
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["Singers"],
        consumer="skips",
        start="earliest",
        delivery=delivery,
    )
    watcher.on_change(refuse)
    watcher.run_once()


def test_a_dead_letter_behind_a_torn_one_is_not_lost(singers: Database, tmp_path: Path) -> None:
    letters = tmp_path / "dead.jsonl"
    letters.write_text('{"id": "torn')
    write_singers(singers, [1], "name")
    skip_all(singers, letters)
    assert keys(letters) == [1]


def test_dead_letters_on_a_full_disk_are_written_when_there_is_space(
    singers: Database, small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_singers(singers, range(3), "name")
    small_disk.fill()
    letters = small_disk.path / "dead.jsonl"
    failed: list[str] = []

    def free(_metrics: object, error: str) -> None:
        failed.append(error)
        small_disk.free()

    monkeypatch.setattr("watcher.runners.metrics.Metrics.count_error", free)
    skip_all(singers, letters)
    assert failed == ["FileUnavailableError"]
    assert sorted(set(keys(letters))) == [0, 1, 2]


# A file that is moved or removed.


@pytest.mark.parametrize("keep", [True, False])
def test_a_file_that_is_taken_away_is_made_again(
    singers: Database, tmp_path: Path, keep: bool
) -> None:
    file, old = tmp_path / "changes.jsonl", tmp_path / "changes.jsonl.1"
    write_singers(singers, range(3), "name")
    with run_without_error(make_watcher(singers, file)):
        wait_until(lambda: file.exists() and len(keys(file)) == 3)
        file.rename(old) if keep else file.unlink()
        write_singers(singers, range(3, 6), "name")
        wait_until(lambda: file.exists() and {3, 4, 5} <= set(keys(file)))
    assert not keep or sorted(keys(old)) == [0, 1, 2]


def test_a_file_that_is_taken_away_within_a_window_gets_all_of_it_again(
    singers: Database, tmp_path: Path
) -> None:
    file = tmp_path / "changes.jsonl"
    write_singers(singers, range(3), "name")
    watcher = make_watcher(singers, file)
    sink = RotatingFile(file, None)
    written = sink.write_change
    taken: list[Change] = []

    def remove_before_the_last(change: Change) -> None:
        taken.append(change)
        if len(taken) == 3:
            sink._file._write()
            file.unlink()
        written(change)

    sink.write_change = remove_before_the_last  # type: ignore[method-assign]
    watcher.deliver_to(sink)
    watcher.run_once()
    assert sorted(keys(file)) == [0, 1, 2]


# Started twice.


def test_a_second_watcher_of_the_file_is_refused_and_spoils_nothing(
    singers: Database, tmp_path: Path
) -> None:
    file = tmp_path / "changes.jsonl"
    write_singers(singers, range(3), "name")
    with run_without_error(make_watcher(singers, file)):
        wait_until(lambda: file.exists() and len(keys(file)) == 3)
        with file.open("a") as half:
            half.write('{"half of a line": ')  # as the first one is writing it
        size = file.stat().st_size
        same = run_command(*arguments(singers, "to-file"), "--to", str(file))
        assert same.returncode == 6
        assert "another instance runs as consumer 'to-file'" in same.stderr
        other = run_command(*arguments(singers, "other"), "--to", str(file))
        assert other.returncode == 6
        assert f"another process is writing to {file}" in other.stderr
        assert file.stat().st_size == size
        with file.open("rb+") as whole:
            whole.truncate(size - len('{"half of a line": '))
        write_singers(singers, [3], "name")
        wait_until(lambda: len(keys(file)) == 4)


def test_an_instance_on_standby_opens_the_file_when_it_delivers(
    singers: Database, tmp_path: Path
) -> None:
    file = tmp_path / "changes.jsonl"
    write_singers(singers, range(3), "name")
    first = make_watcher(singers, file, lease="2s")
    second = make_watcher(singers, file, lease="2s", standby=True)
    with run_in_thread(first) as ended:
        wait_until(lambda: file.exists() and len(keys(file)) == 3)
        descriptors = len(os.listdir("/proc/self/fd"))
        with run_without_error(second):
            assert not ended
            first.stop()
            write_singers(singers, [3], "name")
            wait_until(lambda: len(keys(file)) == 4)
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 4


def test_a_watcher_on_standby_waits_for_a_file_that_a_frozen_instance_has(
    singers: Database, tmp_path: Path
) -> None:
    """Also when the lease of that instance is over: it may be in the middle of a line."""
    file = tmp_path / "changes.jsonl"
    frozen = RotatingFile(file, None)
    frozen.open()
    write_singers(singers, range(3), "name")
    with pytest.raises(FileInUseError):
        make_watcher(singers, file).run_once()
    with run_without_error(make_watcher(singers, file, standby=True)):
        frozen.close()
        wait_until(lambda: len(keys(file)) == 3)


def test_a_folder_that_cannot_be_written_is_an_error_at_once(
    singers: Database, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileWriteError, match=r"cannot write .*file/changes\.jsonl"):
        make_watcher(singers, tmp_path / "file" / "changes.jsonl").run_once()


# Folders: of a mistyped path everything would be made otherwise.


@pytest.mark.parametrize("option", ["delivery.to", "delivery.dead_letters", "positions.path"])
def test_a_missing_folder_is_an_error_and_only_the_last_one_is_made(
    singers: Database, tmp_path: Path, option: str
) -> None:
    def start(path: Path, **more: Any) -> None:
        section, _, name = option.rpartition(".")
        values: dict[str, Any] = {
            "delivery": {"dead_letters": tmp_path / "dead.jsonl", "then": "skip"},
            "positions": {"keep": "file", "path": tmp_path / "positions.json"},
        }
        values[section] = values[section] | {name: str(path)}
        make_watcher(singers, tmp_path / "out.jsonl", **values, **more).run_once()

    write_singers(singers, [1], "name")
    lost = tmp_path / "no" / "such" / "dir"
    with pytest.raises(
        ConfigurationError, match=rf"{option}: there is no folder .*/such.*--create"
    ):
        start(lost / "file.x")
    assert not (tmp_path / "no").exists()
    with pytest.raises(ConfigurationError, match=rf"{option}: {tmp_path} is a folder"):
        start(tmp_path)
    start(tmp_path / "new" / "file.x")
    start(lost / "file.x", create_folders=True)
    assert lost.is_dir()


def test_a_replica_is_not_made_where_its_parents_are_missing(
    singers: Database, tmp_path: Path
) -> None:
    pytest.importorskip("deltalake", reason="needs the extra [delta]")
    where = ("replicate", "-d", str(address_of(singers)), "-t", "Singers", "--once")
    refused = run_command(*where, "--to", f"delta:{tmp_path}/no/such/copies")
    assert refused.returncode == 2
    assert f"there is no folder {tmp_path}/no/such: make it, or use --create" in refused.stderr
    assert not list(tmp_path.iterdir())
    made = run_command(*where, "--to", f"delta:{tmp_path}/no/such/copies", "--create-folders")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "no/such/copies/Singers").is_dir()
    wrong = run_command("verify", "--to", f"iceberg:{tmp_path}/no/such/copies")
    assert wrong.returncode == 2
    assert f"are delta:{tmp_path}/no/such/copies" in wrong.stderr
