"""Changes that were given up, as lines of a file: the record that ``watch`` prints, its error, and
the change itself, which can be delivered again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from spanner_schema.model.column_types import Type
from watcher.captures.change_stream.record_values import decode_type
from watcher.captures.changes import to_json
from watcher.envelopes.change_stream import type_json
from watcher.envelopes.plain import Plain
from watcher.model.change import Change, Operation, Origin, Shape, Value, ValueCapture
from watcher.model.errors import ConfigurationError
from watcher.model.window import Window
from watcher.process.line_files import append_line, count_lines
from watcher.process.text_files import read_text_file
from watcher.spanner.json_values import decode_value

Letter = dict[str, Any]
ADDED = ("error", "change")
"""What a letter has beside the record."""


def append_dead_letter(path: Path, change: Change, error: str) -> None:
    """Adds a change and its error to the file, on the disk before this returns."""
    (message,) = Plain().encode(change)
    record = json.loads(message.value or b"")
    append_line(path, json.dumps(record | {"error": error, "change": describe_change(change)}))


def read_dead_letters(path: Path) -> Iterator[Letter]:
    """The letters of a file. Raises ConfigurationError with the line that is wrong."""
    return parse_dead_letters(path, read_text_file(path))


def count_dead_letters(path: Path) -> int:
    """How many a file has, if it is there. Raises ConfigurationError where it cannot be read."""
    return count_lines(path) if path.exists() else 0


def parse_dead_letters(path: Path, text: str) -> Iterator[Letter]:
    """As ``read_dead_letters``, of a text that was read from the file."""
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            letter = json.loads(line)
            if not isinstance(letter, dict):
                raise ValueError("not a JSON object")
            yield letter
        except ValueError as error:
            raise ConfigurationError(
                f"{path}:{number} is not a dead letter ({error}): fix or delete this line"
            ) from error


def extract_record(letter: Letter) -> Letter:
    """The change as ``watch`` prints it."""
    return {name: value for name, value in letter.items() if name not in ADDED}


def extract_change(letter: Letter) -> Change | None:
    """The change itself; None in a letter of release 1.0, which has the record alone. Raises
    ValueError, KeyError or TypeError for one that was edited."""
    stored = letter.get("change")
    if stored is None:
        return None
    columns = tuple((name, decode_type(described)) for name, described in stored["columns"])
    shape = Shape(
        letter["table"], columns, tuple(stored["primary_key"]), tuple(stored["positions"])
    )
    types = dict(columns)
    key, new, old = (decode_cells(stored[layer], types) for layer in ("key", "new", "old"))
    return Change(
        letter["id"],
        stored["database"],
        shape,
        Operation(letter["operation"]),
        stored["commit"],
        key or {},
        new,
        old,
        ValueCapture(stored["captured"]),
        Window(*stored["window"]),
        letter["shard"],
        None if stored["origin"] is None else Origin(**stored["origin"]),
    )


def describe_change(change: Change) -> Letter:
    """What ``extract_change`` needs beside the record; timestamps in microseconds since 1970."""
    shape = change.shape
    return {
        "database": change.database,
        "columns": [[name, describe_type(type_)] for name, type_ in shape.columns],
        "primary_key": shape.primary_key,
        "positions": shape.positions,
        "commit": change.commit_timestamp,
        "key": encode_cells(change.key),
        "new": encode_cells(change.new_values),
        "old": encode_cells(change.old_values),
        "captured": change.captured,
        "window": [change.window.start, change.window.end],
        "origin": None if change.origin is None else asdict(change.origin),
    }


def describe_type(type_: Type) -> Letter:
    """A type as records of change streams describe it."""
    if type_.element is not None:
        return {"code": "ARRAY", "array_element_type": describe_type(type_.element)}
    named = {} if type_.proto_name is None else {"proto_type_fqn": type_.proto_name}
    return cast("Letter", type_json(type_)) | named


def encode_cells(cells: Mapping[str, Value] | None) -> Letter | None:
    """Cells as JSON."""
    return None if cells is None else {name: to_json(value) for name, value in cells.items()}


def decode_cells(stored: Letter | None, types: Mapping[str, Type]) -> dict[str, Value] | None:
    """Cells of JSON."""
    if stored is None:
        return None
    return {name: decode_value(value, types[name]) for name, value in stored.items()}
