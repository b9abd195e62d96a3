"""Schema changes of a run, each with its way back; no row that is watched changes by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import ChangeStream, Column, Dialect, Index, KeyPart, Table
from spanner_schema.model.steps import (
    AddColumn,
    AlterChangeStream,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropIndex,
    DropTable,
)
from spanner_schema.syntax.render import render_step

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


def make_or_take_back(
    connect: Callable[[], Database], change: SchemaChange, dialect: Dialect, seconds_max: float
) -> str | None:
    """Makes a change, or takes it back where it was made; the statement, or None where the server
    does not answer or refuses it."""
    try:
        database = connect()
        database.reload()
        there = any(change.sign in text for text in database.ddl_statements)
        statement = render_step(change.back if there else change.step, dialect)
        database.update_ddl([statement]).result(seconds_max)
    except (GoogleAPICallError, RetryError, TimeoutError):
        return None
    return statement
