"""Schemas of public repositories, as they are stored: ``schemas/*.json`` of the case files, and
those beside this file."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spanner_schema.model.schema import Dialect


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a schema. ``kind``: ddl, dml or other."""

    kind: str
    sql: str
    descriptors: bytes | None = None


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A schema, and where it is from: repository and path."""

    name: str
    dialect: Dialect
    source: str
    statements: tuple[Statement, ...]


KEPT = Path(__file__).parent
"""Schemas that are in this repository."""


def list_names(*folders: Path) -> list[str]:
    """The names of all schemas of the folders."""
    return sorted({path.stem for each in folders for path in (each / "schemas").glob("*.json")})


def read_case(name: str, *folders: Path) -> SchemaCase:
    """A schema by its name, from the first folder that has it."""
    paths = [folder / "schemas" / f"{name}.json" for folder in folders]
    stored = json.loads(next(path for path in paths if path.exists()).read_text())
    statements = [
        Statement(
            each["kind"],
            each["sql"],
            b64decode(each["descriptors"]) if each.get("descriptors") else None,
        )
        for each in stored["statements"]
    ]
    return SchemaCase(name, Dialect(stored["dialect"]), stored["source"], tuple(statements))


def choose_names(known: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The names that contain one of the texts; all, if there are none. Raises KeyError for a text
    that no name contains."""
    for text in wanted:
        if not any(text in name for name in known):
            raise KeyError(text)
    return [name for name in known if not wanted or any(text in name for text in wanted)]
