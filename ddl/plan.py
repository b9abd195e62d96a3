"""A plan: ordered statements, each with its reason and its cost, for one schema and no other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace

from ddl.evolve import apply_step
from ddl.names import list_names
from ddl.options import Strategy, WatchOptions
from ddl.render import render_schema, render_step
from ddl.reverse import reverse_step
from ddl.schema import Index, Schema
from ddl.steps import CreateIndex, SetColumnOptions, Step
from ddl.tracking import list_required_steps


@dataclass(frozen=True, slots=True)
class PlanStatement:
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
    statements: tuple[PlanStatement, ...]

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


SINGLE_TABLE_STRATEGIES = frozenset({Strategy.AUTOMATIC, Strategy.PROCESSED, Strategy.MANUAL})
"""Strategies whose steps touch nothing but the table and its index."""

OptionsFor = Callable[[str], WatchOptions]


def make_plan(schema: Schema, tables: Iterable[str], options: WatchOptions | OptionsFor) -> Plan:
    """Plans the migration that makes tables watchable.

    ``options`` hold for all tables, or are asked for each. Every step is tried on the schema first.
    Raises PlanError or SchemaError; nothing is changed.
    """
    statements: list[PlanStatement] = []
    whole, behind = schema, list[Step]()
    names = {name.casefold() for name in list_names(schema)}
    indexes = group_indexes(schema)
    for table in tables:
        chosen = options if isinstance(options, WatchOptions) else options(table)
        found = None
        if chosen.strategy in SINGLE_TABLE_STRATEGIES:
            found = plan_table(isolate_table(schema, table, indexes), table, chosen)
            if {name.casefold() for name in list_new_indexes(found)} & names:
                found = None  # a name is taken by another table's object: look at all of them
        if found is None:
            for step in behind:
                whole = apply_step(whole, step)
            behind.clear()
            found = plan_table(whole, table, chosen)
        names |= {name.casefold() for name in list_new_indexes(found)}
        behind += [step for step, _ in found]
        statements += [statement for _, statement in found]
    return Plan(fingerprint(schema), tuple(statements))


def plan_table(
    schema: Schema, table: str, options: WatchOptions
) -> list[tuple[Step, PlanStatement]]:
    """The steps for one table, tried on the schema, with what is said of each."""
    now, found = schema, []
    for wanted in list_required_steps(schema, table, options):
        undo = tuple(render_step(s, now.dialect) for s in reverse_step(wanted.step, now))
        now = apply_step(now, wanted.step)
        cost = describe_cost(wanted.step, wanted.backfill)
        sql = render_step(wanted.step, now.dialect)
        found.append(
            (wanted.step, PlanStatement(table, sql, wanted.reason, wanted.backfill, cost, undo))
        )
    return found


def isolate_table(schema: Schema, table: str, indexes: dict[str, tuple[Index, ...]]) -> Schema:
    """The part of a schema that a table's own steps see; all of it for a table that is not there.

    Thousands of tables are planned one by one so, instead of each against all.
    """
    found = schema.table(table)
    if found is None:
        return schema
    return replace(
        schema, tables=(found,), indexes=indexes.get(found.name.casefold(), ()), verbatim=()
    )


def group_indexes(schema: Schema) -> dict[str, tuple[Index, ...]]:
    """The indexes of every table, by its name without regard to case."""
    found: dict[str, tuple[Index, ...]] = {}
    for index in schema.indexes:
        key = index.table.casefold()
        found[key] = (*found.get(key, ()), index)
    return found


def list_new_indexes(steps: list[tuple[Step, PlanStatement]]) -> set[str]:
    """The names of new indexes."""
    return {step.index.name for step, _ in steps if isinstance(step, CreateIndex)}


def describe_cost(step: Step, backfill: bool) -> str:
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
