"""Positions in a file, for a watcher that may not write to the database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from watcher.captures.progress import BackfillProgress
from watcher.consumers.positions.content import Content, WholePositions
from watcher.model.errors import CheckpointError
from watcher.process.private_files import locked_beside, read_own, replace_file
from watcher.spanner.timestamps import format_timestamp, to_micros

FILE_VERSION = 1
OLD_BACKFILLS = ".backfills"
"""What the file of backfills of earlier releases ended in."""


class FilePositions(WholePositions):
    """Positions in a JSON file, replaced as a whole; a lock file keeps other processes out.

    Clearing does not see them, so nothing must be cleared behind them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def _change(self) -> Iterator[Content]:
        with locked_beside(self._path):
            content = self._read()
            yield content
            replace_file(self._path, format_content(content))
            self._old_backfills.unlink(missing_ok=True)

    @property
    def _old_backfills(self) -> Path:
        return self._path.with_name(self._path.name + OLD_BACKFILLS)

    def _read(self) -> Content:
        content, complete = Content(), False
        text = read_own(self._path)
        if text is not None:
            content, complete = self._parse(text)
        # One that a crash has left beside a file of this release is older than that.
        old = None if complete else read_own(self._old_backfills)
        if old is not None:
            for consumer, tables in json.loads(old).items():
                for table, text in tables.items():
                    content.backfills[consumer, table] = BackfillProgress.from_text(text)
        return content

    def _parse(self, text: str) -> tuple[Content, bool]:
        """The content, and whether backfills are in it."""
        try:
            stored = json.loads(text)
            version = stored["version"]
            content = Content(
                {
                    (r["consumer"], r["table"]): to_micros(datetime.fromisoformat(r["position"]))
                    for r in stored["positions"]
                },
                {
                    (r["consumer"], r["table"]): BackfillProgress.from_text(r["progress"])
                    for r in stored.get("backfills", ())
                },
                {
                    (r["consumer"], r["table"]): to_micros(datetime.fromisoformat(r["end"]))
                    for r in stored.get("planned_ends", ())
                },
                {r["consumer"]: r["selection"] for r in stored.get("selections", ())},
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self._path} is not a file of positions ({error}); name another file or fix it"
            ) from error
        if version != FILE_VERSION:
            raise CheckpointError(
                f"{self._path} has version {version}; this release reads version {FILE_VERSION}"
            )
        return content, "backfills" in stored


def format_content(content: Content) -> str:
    """The content as it is stored."""
    positions = [
        {"consumer": c, "table": t, "position": format_timestamp(micros)}
        for (c, t), micros in sorted(content.positions.items())
    ]
    backfills = [
        {"consumer": c, "table": t, "progress": progress.to_text()}
        for (c, t), progress in sorted(content.backfills.items(), key=lambda item: item[0])
    ]
    ends = [
        {"consumer": c, "table": t, "end": format_timestamp(micros)}
        for (c, t), micros in sorted(content.planned_ends.items())
    ]
    selections = [
        {"consumer": consumer, "selection": text}
        for consumer, text in sorted(content.selections.items())
    ]
    stored = {
        "positions": positions,
        "backfills": backfills,
        "planned_ends": ends,
        "selections": selections,
    }
    return json.dumps({"version": FILE_VERSION, **stored})
