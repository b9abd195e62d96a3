"""A consumer's state as a file, and back: positions, selection, command, division into parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.moving import (
    End,
    WholeConsumer,
    describe_lost,
    find_lost,
    read_whole,
    remove_whole,
    write_whole,
)
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.rows import StoredConsumer, StoredPosition, StoredRows
from watcher.consumers.positions.tables import create_own_tables, own_tables
from watcher.consumers.states import parse_command
from watcher.model.errors import CheckpointError, ClearedError, ConfigurationError
from watcher.process.private_files import explain, replace_file
from watcher.process.text_files import read_text_file
from watcher.spanner.timestamps import format_timestamp, to_micros
from watcher.spanner.transactions import run_optimistically

FORMAT, VERSION = "spanner-watcher consumer", 1


@dataclass(frozen=True, slots=True)
class Backup:
    """A consumer as it was at a time, in microseconds since 1970; ``database`` is the path of the
    database that had it."""

    database: str
    positions_table: str
    taken_at: int
    consumer: WholeConsumer


# Values as text.


def format_backup(backup: Backup) -> str:
    """The content of a file: JSON with a version and a checksum."""
    content = {
        "database": backup.database,
        "positions_table": backup.positions_table,
        "taken_at": format_timestamp(backup.taken_at),
        "consumer": backup.consumer.name,
        "members": [describe_member(each) for each in backup.consumer.members],
        "divisions": dict(backup.consumer.divisions),
    }
    stored = {"format": FORMAT, "version": VERSION, "checksum": compute_checksum(content)}
    return json.dumps(stored | {"content": content}, indent=1, ensure_ascii=False) + "\n"


def compute_checksum(content: object) -> str:
    """Of the content in one spelling, whatever that of the file is."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def describe_member(stored: StoredConsumer) -> dict[str, object]:
    """A consumer, or a part of one."""
    return {
        "name": stored.name,
        "has_state": stored.exists,
        "selection": stored.selection,
        "command": None if stored.command is None else str(stored.command),
        "positions": {
            table: {
                "position": format_timestamp(each.position),
                "planned_end": None if each.reached is None else format_timestamp(each.reached),
            }
            for table, each in sorted(stored.positions.items())
        },
    }


def parse_backup(text: str, where: str) -> Backup:
    """The content of a file. Raises CheckpointError for one that is not whole, or not a backup that
    this release reads."""
    try:
        stored = json.loads(text)
        found, version = stored["format"], stored["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{where} is not a backup of a consumer: {error!r}") from error
    if found != FORMAT or version != VERSION:
        raise CheckpointError(
            f"{where} is '{found}' of version {version}, and this release reads '{FORMAT}' of"
            f" version {VERSION}: restore it with the release that wrote it"
        )
    content = stored.get("content")
    if compute_checksum(content) != stored.get("checksum"):
        raise CheckpointError(
            f"{where} is damaged or was edited: its checksum is not that of its content; use"
            " another backup"
        )
    return read_content(content)


def read_content(content: Mapping[str, Any]) -> Backup:
    """What ``format_backup`` has described."""
    ours = own_tables(content["positions_table"])
    members = tuple(parse_member(each, ours) for each in content["members"])
    return Backup(
        content["database"],
        content["positions_table"],
        parse_moment(content["taken_at"]),
        WholeConsumer(content["consumer"], members, content["divisions"]),
    )


def parse_member(member: Mapping[str, Any], ours: tuple[str, ...]) -> StoredConsumer:
    """As ``describe_member`` has described it."""
    positions = {
        table: StoredPosition(
            parse_moment(each["position"]),
            None if each["planned_end"] is None else parse_moment(each["planned_end"]),
        )
        for table, each in member["positions"].items()
    }
    command = parse_command(member["command"])
    return StoredConsumer(
        member["name"], positions, member["selection"], command, False, member["has_state"], ours
    )


def parse_moment(text: str) -> int:
    """A timestamp, in microseconds since 1970."""
    return to_micros(datetime.fromisoformat(text))


# Backup.


def prove_writable(path: Path) -> None:
    """Raises ConfigurationError, or FileWriteError, for a file that cannot be written."""
    with explain(path):
        if path.is_dir():
            raise ConfigurationError(f"{path} is a folder: name a file in it")
        with TemporaryFile(dir=path.parent):
            return


def back_up(end: End, path: Path) -> Backup:
    """Writes the state of a consumer, which may run, as of now. Raises ConsumerNotFoundError, and
    LeaseHeldError while a backfill is not done: what it has delivered could not be told later."""
    with end.open_snapshot() as (snapshot, rows):
        whole = read_whole(rows, end.location.consumer)
        for each in whole.members:
            rows.check_filled(each)
        taken_at = read_now(snapshot)
    members = tuple(replace(each, alive=False) for each in whole.members)
    consumer = WholeConsumer(whole.name, members, whole.divisions)
    backup = Backup(end.database.name, end.location.positions_table, taken_at, consumer)
    replace_file(path, format_backup(backup))
    return backup


def read_now(reader: RowReader) -> int:
    """Spanner's clock."""
    ((now,),) = reader.execute_sql("SELECT CURRENT_TIMESTAMP")
    return to_micros(now)


# Restore.


def load_backup(path: Path) -> Backup:
    """The backup in a file. Raises ConfigurationError and CheckpointError."""
    return parse_backup(read_text_file(path), str(path))


def restore(
    end: End, backup: Backup, replaces: bool, accepts_loss: bool, dry_run: bool = False
) -> dict[str, int]:
    """Stores a consumer as it was, in one transaction; up to where rows are lost by table, if
    ``accepts_loss``.

    Raises LeaseHeldError while an instance runs, ConfigurationError where there is such a consumer
    and it is not to be replaced, ClearedError for rows that were cleared since the backup, and
    ConsumerMovedError for a name that was moved away.
    """

    def look(reader: RowReader, rows: StoredRows) -> dict[str, int]:
        check_replaceable(rows, backup.consumer.name, replaces)
        lost = find_lost(reader, end, backup.consumer)
        if lost and not accepts_loss:
            raise ClearedError(
                f"rows that consumer '{backup.consumer.name}' had not delivered as of the backup"
                f" may have been cleared since ({describe_lost(lost)}): backfill these tables"
                " instead, or use --accept-loss"
            )
        return lost

    def write(transaction: Transaction) -> dict[str, int]:
        rows = end.open_rows(transaction)
        lost = look(transaction, rows)
        there = WholeConsumer(backup.consumer.name, rows.read_group(backup.consumer.name), {})
        remove_whole(rows, there)
        raised = raise_ends(backup.consumer, read_now(transaction))
        write_whole(rows, raised, backup.consumer.name)
        return lost

    if dry_run:
        with end.open_snapshot() as (snapshot, rows):
            return look(snapshot, rows)
    create_own_tables(end.database, end.location.positions_table)
    return run_optimistically(end.database, write)


def check_replaceable(rows: StoredRows, consumer: str, replaces: bool) -> None:
    """Raises an error for a consumer that is there and may not be replaced."""
    group = rows.read_group(consumer)
    for each in group:
        rows.check_ended(each)
    if group and not replaces:
        raise ConfigurationError(
            f"consumer '{consumer}' is there: restoring it would move its positions; use --replace"
            " to do that"
        )


def raise_ends(whole: WholeConsumer, now: int) -> WholeConsumer:
    """Rows may have been handed over up to now since the backup: a window that comes again has to
    reach as far (rule 8)."""
    members = tuple(
        replace(
            each,
            positions={
                table: StoredPosition(stored.position, max(now, stored.position))
                for table, stored in each.positions.items()
            },
        )
        for each in whole.members
    )
    return replace(whole, members=members)
