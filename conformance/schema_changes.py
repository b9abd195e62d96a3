"""Schema changes of a run, each with its way back; no row that is watched changes by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddl.model.schema import (
    ChangeStream,
    Column,
    Index,
    KeyPart,
    Table,
    Type,
    TypeCode,
)
from ddl.model.steps import (
    AddColumn,
    AlterChangeStream,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropIndex,
    DropTable,
)

Step = (
    AddColumn | DropColumn | CreateIndex | DropIndex | CreateTable | DropTable | AlterChangeStream
)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A step and its way back. ``sign``: what the database's DDL has in it once it is done."""

    sign: str
    step: Step
    back: Step


STRING, INT64 = Type(TypeCode.STRING), Type(TypeCode.INT64)
EXTRA = SchemaChange(
    "Extra", AddColumn("Events", Column("Extra", STRING)), DropColumn("Events", "Extra")
)
"""The blow ``change_schema``."""
NOTE = SchemaChange(
    "Note",
    AddColumn("Accounts", Column("Note", STRING, not_null=True, default="'none'")),
    DropColumn("Accounts", "Note"),
)
RANK = SchemaChange(
    "Rank", AddColumn("Entries", Column("Rank", INT64)), DropColumn("Entries", "Rank")
)
INDEX = SchemaChange(
    "EventsByVersion",
    CreateIndex(Index("EventsByVersion", "Events", (KeyPart("Version"),))),
    DropIndex("EventsByVersion"),
)
ASIDE = SchemaChange(
    "Aside",
    CreateTable(Table("Aside", (Column("Id", INT64), Column("Text", STRING)), (KeyPart("Id"),))),
    DropTable("Aside"),
)


def list_changes(stream: str | None, value_captures: Sequence[str]) -> tuple[SchemaChange, ...]:
    """The changes of a run with churn. A change stream changes, too: its retention, and what it
    captures where there is a choice."""
    changes = [NOTE, RANK, INDEX, ASIDE]
    if stream is not None:
        changes.append(alter_stream(stream, "retention_period", "2d", "1d"))
        if len(value_captures) > 1:
            changes.append(alter_stream(stream, "value_capture_type", *value_captures[:2]))
    return tuple(changes)


def alter_stream(stream: str, option: str, value: str, before: str) -> SchemaChange:
    """An option of a change stream."""

    def set_option(text: str) -> AlterChangeStream:
        return AlterChangeStream(
            ChangeStream(stream, options=((option, f"'{text}'"),)), frozenset({"options"})
        )

    return SchemaChange(f"{option} = '{value}'", set_option(value), set_option(before))
