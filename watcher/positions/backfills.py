"""How far each consumer's backfill of a table has come; kept beside its positions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

from google.cloud.spanner_v1 import KeySet, param_types
from google.cloud.spanner_v1.database import Database

from watcher.positions.file import replace_file
from watcher.positions.spanner import create_table
from watcher.sql import quoted


class Backfills(Protocol):
    """Keeps a text for a consumer and table while its backfill is under way."""

    def all(self, consumer: str) -> dict[str, str]:
        """The backfills that are under way, by table."""
        ...

    def save(self, consumer: str, table: str, progress: str | None) -> None:
        """Keeps the progress; None when the backfill is done."""
        ...


class MemoryBackfills:
    """Progress that ends with the process."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], str] = {}

    def all(self, consumer: str) -> dict[str, str]:
        """As ``Backfills.all``."""
        return {t: text for (c, t), text in self._kept.items() if c == consumer}

    def save(self, consumer: str, table: str, progress: str | None) -> None:
        """As ``Backfills.save``."""
        if progress is None:
            self._kept.pop((consumer, table), None)
        else:
            self._kept[consumer, table] = progress


class FileBackfills:
    """Progress in a JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self, consumer: str) -> dict[str, str]:
        """As ``Backfills.all``."""
        found: dict[str, str] = self._read().get(consumer, {})
        return found

    def save(self, consumer: str, table: str, progress: str | None) -> None:
        """As ``Backfills.save``."""
        kept = self._read()
        mine = kept.get(consumer, {})
        if progress is None:
            mine.pop(table, None)
        else:
            mine[table] = progress
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, json.dumps(kept | {consumer: mine}))

    def _read(self) -> dict[str, dict[str, str]]:
        if not self._path.exists():
            return {}
        found: dict[str, dict[str, str]] = json.loads(self._path.read_text())
        return found


class SpannerBackfills:
    """Progress in a table of a Spanner database."""

    def __init__(self, database: Database, positions_table: str) -> None:
        self._database = database
        self._name = positions_table.removesuffix("Positions") + "Backfills"

    def create(self) -> None:
        """Creates the table unless it is there."""
        create_table(
            self._database,
            self._name,
            "Consumer STRING(256) NOT NULL, WatchedTable STRING(256) NOT NULL,"
            " Progress STRING(MAX) NOT NULL",
            "Consumer, WatchedTable",
        )

    def all(self, consumer: str) -> dict[str, str]:
        """As ``Backfills.all``."""
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(
                f"SELECT WatchedTable, Progress FROM {quoted(self._name)}"  # noqa: S608 (quoted)
                " WHERE Consumer = @consumer",
                params={"consumer": consumer},
                param_types={"consumer": param_types.STRING},
            )
            return {row[0]: row[1] for row in rows}

    def save(self, consumer: str, table: str, progress: str | None) -> None:
        """As ``Backfills.save``."""
        with self._database.batch() as batch:
            if progress is None:
                batch.delete(self._name, KeySet(keys=[[consumer, table]]))
            else:
                columns = ("Consumer", "WatchedTable", "Progress")
                batch.insert_or_update(self._name, columns, [(consumer, table, progress)])
