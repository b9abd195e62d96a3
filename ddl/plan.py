"""A plan: ordered statements, each with its reason and its cost, for one schema and no other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from ddl.evolve import apply
from ddl.options import WatchOptions
from ddl.render import render, render_schema
from ddl.reverse import reverse
from ddl.schema import Schema
from ddl.steps import CreateIndex, SetColumnOptions, Step
from ddl.tracking import wanted_steps


@dataclass(frozen=True, slots=True)
class Statement:
    """A DDL statement. ``long_running`` ones write data in the background (a backfill); ``cost``
    says what it costs, ``undo`` what takes it back."""

    table: str
    sql: str
    reason: str
    long_running: bool
    cost: str
    undo: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """``fingerprint`` is that of the schema which the plan was made for."""

    fingerprint: str
    statements: tuple[Statement, ...]

    @property
    def down(self) -> tuple[str, ...]:
        """The statements that take the plan back, in their order."""
        return tuple(sql for statement in reversed(self.statements) for sql in statement.undo)

    @property
    def empty(self) -> bool:
        """True when there is nothing to do."""
        return not self.statements

    def as_json(self) -> dict[str, object]:
        """For ``--json``."""
        return asdict(self)


def fingerprint(schema: Schema) -> str:
    """A digest of everything that a schema is made of."""
    return hashlib.sha256("\n".join(render_schema(schema)).encode()).hexdigest()


OptionsFor = Callable[[str], WatchOptions]


def make_plan(schema: Schema, tables: Iterable[str], options: WatchOptions | OptionsFor) -> Plan:
    """Plans the migration that makes tables watchable.

    ``options`` hold for all tables, or are asked for each. Every step is tried on the schema first.
    Raises PlanError or SchemaError; nothing is changed.
    """
    now, statements = schema, []
    for table in tables:
        chosen = options if isinstance(options, WatchOptions) else options(table)
        for wanted in wanted_steps(now, table, chosen):
            undo = tuple(render(step) for step in reverse(wanted.step, now))
            now = apply(now, wanted.step)
            statements.append(
                Statement(
                    table,
                    render(wanted.step),
                    wanted.reason,
                    wanted.backfill,
                    cost_of(wanted.step, wanted.backfill),
                    undo,
                )
            )
    return Plan(fingerprint(schema), tuple(statements))


def cost_of(step: Step, backfill: bool) -> str:
    """What a statement costs, in words."""
    if isinstance(step, CreateIndex):
        entries = "rows whose shard and timestamp are not NULL" if step.index.null_filtered else ""
        return (
            f"reads the table once in the background, writes an entry for {entries or 'each row'};"
            " afterwards one more write for each change of a row"
        )
    if isinstance(step, SetColumnOptions):
        return "reads the column of every row once, to check that no value lies in the future"
    return "writes every row of the table once in the background" if backfill else "metadata only"
