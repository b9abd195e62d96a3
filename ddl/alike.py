"""Statements that both dialects write alike, but for the quoting of names."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

from ddl import steps
from ddl.schema import Interleave, OnDelete

Quote = Callable[[str], str]


def on_delete_text(action: OnDelete) -> str:
    """ON DELETE ... or nothing for the default."""
    return f" ON DELETE {action.value}" if action is not OnDelete.NO_ACTION else ""


def interleave_text(interleave: Interleave, name: Quote) -> str:
    """INTERLEAVE IN ..."""
    word = "INTERLEAVE IN PARENT" if interleave.enforced else "INTERLEAVE IN"
    return f"{word} {name(interleave.parent)}{on_delete_text(interleave.on_delete)}"


def alter_column(table: str, column: str, action: str, name: Quote) -> str:
    """ALTER TABLE t ALTER COLUMN c action."""
    return f"ALTER TABLE {name(table)} ALTER COLUMN {name(column)} {action}"


@singledispatch
def render_alike(step: object, name: Quote) -> str | None:  # noqa: ARG001 (one signature)
    """The statement of a step; None for one that each dialect writes in its own way."""
    return None


@render_alike.register
def _(step: steps.DropTable, name: Quote) -> str:
    return f"DROP TABLE {'IF EXISTS ' if step.if_exists else ''}{name(step.name)}"


@render_alike.register
def _(step: steps.DropColumn, name: Quote) -> str:
    return f"ALTER TABLE {name(step.table)} DROP COLUMN {name(step.column)}"


@render_alike.register
def _(step: steps.SetDefault, name: Quote) -> str:
    action = "DROP DEFAULT" if step.expression is None else f"SET DEFAULT ({step.expression})"
    return alter_column(step.table, step.column, action, name)


@render_alike.register
def _(step: steps.SetOnUpdate, name: Quote) -> str:
    action = "DROP ON UPDATE" if step.expression is None else f"SET ON UPDATE ({step.expression})"
    return alter_column(step.table, step.column, action, name)


@render_alike.register
def _(step: steps.DropConstraint, name: Quote) -> str:
    return f"ALTER TABLE {name(step.table)} DROP CONSTRAINT {name(step.name)}"


@render_alike.register
def _(step: steps.SetOnDelete, name: Quote) -> str:
    return f"ALTER TABLE {name(step.table)} SET ON DELETE {step.on_delete.value}"


@render_alike.register
def _(step: steps.SetInterleave, name: Quote) -> str:
    return f"ALTER TABLE {name(step.table)} SET {interleave_text(step.interleave, name)}"


@render_alike.register
def _(step: steps.DropIndex, name: Quote) -> str:
    return f"DROP INDEX {'IF EXISTS ' if step.if_exists else ''}{name(step.name)}"


@render_alike.register
def _(step: steps.DropChangeStream, name: Quote) -> str:
    return f"DROP CHANGE STREAM {name(step.name)}"


@render_alike.register
def _(step: steps.CreateNamedSchema, name: Quote) -> str:
    return f"CREATE SCHEMA {'IF NOT EXISTS ' if step.if_not_exists else ''}{name(step.name)}"


@render_alike.register
def _(step: steps.DropNamedSchema, name: Quote) -> str:
    return f"DROP SCHEMA {'IF EXISTS ' if step.if_exists else ''}{name(step.name)}"


@render_alike.register
def _(step: steps.CreateVerbatim, name: Quote) -> str:  # noqa: ARG001
    return step.item.text


@render_alike.register
def _(step: steps.DropVerbatim, name: Quote) -> str:
    optional = "IF EXISTS " if step.if_exists else ""
    return f"DROP {step.kind} {optional}{name(step.name)}".rstrip()


@render_alike.register
def _(step: steps.OtherStatement, name: Quote) -> str:  # noqa: ARG001
    return step.text
