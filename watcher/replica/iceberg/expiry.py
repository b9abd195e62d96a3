"""Removes what no cut needs of an Iceberg table: snapshots, and then files that no snapshot has."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from watcher.replica.copies import Needed
from watcher.replica.iceberg.io import SafeFileIO
from watcher.replica.iceberg.lineage import list_expired
from watcher.replica.iceberg.manifests import Part, read_parts
from watcher.replica.iceberg.stored_copy import list_ancestors

MARGIN_SECONDS = 86_400.0
"""A file that is younger may be one that is about to be committed."""
SNAPSHOTS_MAX, SNAPSHOTS_SLACK = 500, 50
"""The table's metadata have a line for each snapshot, and are written with each commit. So many
more may be there before they are removed."""


def expire_snapshots(table: Table, consumer: str, needed: Needed) -> None:
    """Removes snapshots before the lowest version that a cut names, and so many that not more than
    ``SNAPSHOTS_MAX`` are left. The newest one of the consumer stays, and what has a name."""
    named = {each.snapshot_id for each in table.metadata.refs.values()}
    gone = list_expired(list_ancestors(table, consumer), needed, named, SNAPSHOTS_MAX)
    if not gone:
        return
    try:
        table.maintenance.expire_snapshots().by_ids(gone).commit()
    except CommitFailedException:
        return  # somebody else has committed: the next time


def remove_files(table: Table, unfinished: Sequence[str]) -> None:
    """Removes files in the folders of data and metadata that no snapshot has, but for those that
    this process is still writing."""
    io = table.io
    if not isinstance(io, SafeFileIO):
        return  # the catalog names another one, which lists nothing
    kept = {normalize_location(each) for each in (*list_used(table), *unfinished)}
    before = time.time() - MARGIN_SECONDS
    for name in ("data", "metadata"):
        for path, written in io.list_files(f"{table.location().rstrip('/')}/{name}"):
            if normalize_location(path) not in kept and written < before:
                io.delete(path)


def normalize_location(location: str) -> tuple[str, str, str]:
    """What is the same for all spellings of a location."""
    return SafeFileIO.parse_location(location)


def list_used(table: Table) -> Iterator[str]:
    """The files of all snapshots, and those of the metadata that the table names."""
    yield table.metadata_location
    yield from (each.metadata_file for each in table.metadata.metadata_log)
    known: dict[str, Part] = {}
    for snapshot in table.metadata.snapshots:
        yield snapshot.manifest_list
        for part in read_parts(table.io, snapshot, known):
            if part.manifest.manifest_path not in known:
                known[part.manifest.manifest_path] = part
                yield from list_files(part)


def list_files(part: Part) -> Iterable[str]:
    """A manifest, and the files that it has."""
    return (part.manifest.manifest_path, *(e.data_file.file_path for e in part.entries))
