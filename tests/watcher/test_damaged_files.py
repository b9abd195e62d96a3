"""A replica of which a file was cut off or overwritten, by a disk or by hand: what is read is
right, or an error names the file and says what to do. No row is wrong.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures.replicas import assert_equal, read_rows, replicate
from fixtures.singers import write_singers
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import CheckpointError, ReplicaError, WatcherError

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "half": lambda content: content[: len(content) // 2],
    "overwritten": lambda content: b"\x93\xff{" + content[3:],
    "other": lambda _: b"[]",
}
NUMBERS = re.compile(r"[0-9a-f]{2,}(-[0-9a-f]+)*|\d+")


@pytest.fixture
def replica(singers: Database, tmp_path: Path, own_format: str) -> Path:
    """A replica with a load, two merges and all its files, in each format."""
    folder = tmp_path / "replica"
    for names, name in ((range(50), "a"), (range(10), "b"), (range(5, 15), "c")):
        write_singers(singers, names, name)
        replicate(singers, folder)
    return folder


def list_kinds(folder: Path) -> dict[str, Path]:
    """The newest file of each kind, by its name without numbers."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {NUMBERS.sub("N", str(path.relative_to(folder))): path for path in files}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_no_wrong_row(
    singers: Database, replica: Path, tmp_path: Path, name: str
) -> None:
    rows, kept = names_of(replica), tmp_path / "kept"
    shutil.copytree(replica, kept)
    kinds = list_kinds(replica)
    assert len(kinds) > 5
    for path in kinds.values():
        path.write_bytes(DAMAGES[name](path.read_bytes()))
        for run in (
            lambda: names_of(replica),
            lambda: assert_equal(singers, replica),
            lambda: replicate(singers, replica),
            lambda: assert_equal(singers, replica),
        ):
            with named(replica):
                found = run()
                assert not isinstance(found, dict) or found == rows, path
        shutil.rmtree(replica)
        shutil.copytree(kept, replica)


@contextmanager
def named(folder: Path) -> Iterator[None]:
    """What fails says where."""
    try:
        yield
    except WatcherError as error:
        told = str(error)
        assert str(folder) in told


def names_of(folder: Path) -> dict[int, str]:
    return {row["SingerId"]: row["LastName"] for row in read_rows(folder, "Singers")}


def test_what_the_error_of_a_damaged_copy_advises_loads_it_again(
    singers: Database, replica: Path
) -> None:
    for path in (replica / "Singers").rglob("*.parquet"):
        path.write_bytes(b"")
    with pytest.raises(ReplicaError, match=r"is damaged .* remove the folder of its copy"):
        names_of(replica)
    shutil.rmtree(replica / "Singers")
    (report,) = replicate(singers, replica)
    assert report.loaded == {"Singers": 50}
    assert_equal(singers, replica)


@pytest.mark.parametrize("file", ["_owner.json", "_cuts/*.json"])
def test_without_a_damaged_file_less_is_known_and_verify_proves_the_copies(
    singers: Database, replica: Path, file: str
) -> None:
    path = max(replica.glob(file))
    path.write_bytes(b"{")
    with pytest.raises(CheckpointError, match=f"{path.name} is damaged .* or remove it"):
        replicate(singers, replica)
    path.unlink()
    assert_equal(singers, replica)
    write_singers(singers, range(40, 60), "d")
    replicate(singers, replica)
    assert_equal(singers, replica)
