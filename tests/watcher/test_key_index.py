"""The index of the keys of a copy, where several instances have it in one folder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from watcher.replica.delta.deletion_vectors import VectorDescriptor
from watcher.replica.writing.key_index import ABANDONED_SECONDS, SUFFIX, Entries, KeyIndex


def open_index(folder: Path, key: str = "key") -> KeyIndex[VectorDescriptor]:
    return KeyIndex(folder, key, VectorDescriptor.from_stored)


def add_file(index: KeyIndex[VectorDescriptor], path: str, hashes: list[int]) -> None:
    number = index.take_number()
    words = np.array(hashes, np.uint64)
    rows = Entries.of_rows(number, 0, (words, words), np.zeros(len(words), np.int64))
    index.add(path, None, number, [rows])


def find_files(index: KeyIndex[VectorDescriptor], hashes: list[int]) -> set[str]:
    words = np.array(hashes, np.uint64)
    paths = index.list_paths()
    return {paths[int(number)] for number in index.find((words, words))[1].files}


def test_an_instance_keeps_what_another_is_about_to_list(tmp_path: Path) -> None:
    first, second = open_index(tmp_path), open_index(tmp_path)
    add_file(first, "of-first", [1, 2])
    add_file(second, "of-second", [3])
    second.save({})
    first.save({})
    assert find_files(first, [1, 2, 3]) == {"of-first"}
    assert find_files(open_index(tmp_path), [1, 2, 3]) == {"of-first"}


def test_a_run_is_written_while_another_instance_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one does it between the file and the look at it."""
    first, second = open_index(tmp_path), open_index(tmp_path)
    write = first._write

    def write_and_wait(name: str, content: bytes) -> None:
        write(name, content)
        second.save({})

    monkeypatch.setattr(first, "_write", write_and_wait)
    add_file(first, "of-first", [1])
    assert find_files(first, [1]) == {"of-first"}


def test_runs_that_nobody_will_list_go(tmp_path: Path) -> None:
    given_up, index = open_index(tmp_path, "another key"), open_index(tmp_path)
    add_file(given_up, "of-another", [1])
    (old,) = tmp_path.glob(f"*{SUFFIX}")
    add_file(index, "file", [2])
    index.save({})
    assert old.exists()
    long_ago = old.stat().st_mtime - ABANDONED_SECONDS - 1
    os.utime(old, (long_ago, long_ago))
    index.save({})
    assert not old.exists()
    assert find_files(open_index(tmp_path), [2]) == {"file"}


def test_merged_runs_go_at_once(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    for number in range(20):
        add_file(index, f"file {number}", [number])
    index.save({})
    assert 0 < len(list(tmp_path.glob(f"*{SUFFIX}"))) < 20
    assert len(find_files(open_index(tmp_path), list(range(20)))) == 20
