"""A plan: ordered statements with reasons and costs, valid for one schema only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

from ddl.evolve import apply_step
from ddl.names import list_names
from ddl.options import WatchOptions
from ddl.ownership import NOBODY, Ownership, TakeOver
from ddl.render import render_schema, render_step
from ddl.reverse import reverse_step
from ddl.schema import Schema
from ddl.steps import AlterIndexStoring, CreateIndex, SetColumnOptions, Step
from ddl.strategies import Strategy
from ddl.tracking import list_required_steps, list_take_overs


@dataclass(frozen=True, slots=True)
class PlanStatement:
    """A DDL statement of a plan.

    ``long_running`` is true if Spanner reads or writes rows in the background (a backfill);
    ``cost`` describes that in words. ``undo`` holds the statements that reverse it.
    """

    table: str
    sql: str
    reason: str
    long_running: bool
    cost: str
    undo: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Statements in order. ``fingerprint`` identifies the schema that they were planned for,
    ``taken_over`` says which values of applications may be lost from then on."""

    fingerprint: str
    statements: tuple[PlanStatement, ...]
    taken_over: tuple[TakeOver, ...] = ()

    @property
    def down(self) -> tuple[str, ...]:
        """The statements that undo the plan, in their order."""
        return tuple(sql for statement in reversed(self.statements) for sql in statement.undo)

    @property
    def empty(self) -> bool:
        """True if there is nothing to do."""
        return not self.statements and not self.taken_over

    def as_json(self) -> dict[str, object]:
        """The plan as values that JSON can hold."""
        return asdict(self)


def fingerprint(schema: Schema) -> str:
    """A digest of the whole schema."""
    return hashlib.sha256("\n".join(render_schema(schema)).encode()).hexdigest()


SINGLE_TABLE_STRATEGIES = frozenset({Strategy.AUTOMATIC, Strategy.PROCESSED, Strategy.MANUAL})
"""Strategies whose steps change nothing but the table and its index."""

OptionsFor = Callable[[str], WatchOptions]
NOTHING: Mapping[str, Ownership] = MappingProxyType({})


def make_plan(
    schema: Schema,
    tables: Iterable[str],
    options: WatchOptions | OptionsFor,
    owned: Mapping[str, Ownership] = NOTHING,
) -> Plan:
    """Plans the migration that makes tables watchable as asked for.

    ``options`` are the same for all tables, or a function of a table's name. ``owned`` says what
    is ours by the record of a database (``ddl.read_ownership``), by table. Every step is tried
    on the schema first. Raises PlanError or SchemaError; nothing is changed.
    """
    statements: list[PlanStatement] = []
    taken: list[TakeOver] = []
    by_name = {name.casefold(): each for name, each in owned.items()}
    whole, pending = schema, list[Step]()
    names = {name.casefold() for name in list_names(schema)}
    for table in tables:
        table_options = options if isinstance(options, WatchOptions) else options(table)
        ownership = by_name.get(table.casefold(), NOBODY)
        taken += list_take_overs(schema, table, table_options, ownership)
        planned_steps = None
        if table_options.strategy in SINGLE_TABLE_STRATEGIES:
            planned_steps = plan_table(
                isolate_table(schema, table), table, table_options, ownership
            )
            if list_new_indexes(planned_steps) & names:
                planned_steps = None  # another table's object has the name: plan against all
        if planned_steps is None:
            for step in pending:
                whole = apply_step(whole, step)
            pending.clear()
            planned_steps = plan_table(whole, table, table_options, ownership)
        names |= list_new_indexes(planned_steps)
        pending += [step for step, _ in planned_steps]
        statements += [statement for _, statement in planned_steps]
    return Plan(fingerprint(schema), tuple(statements), tuple(taken))


def plan_table(
    schema: Schema, table: str, options: WatchOptions, ownership: Ownership = NOBODY
) -> list[tuple[Step, PlanStatement]]:
    """The steps for one table, tried on the schema, each with its statement."""
    current, planned_steps = schema, []
    for required in list_required_steps(schema, table, options, ownership):
        step, backfill = required.step, required.backfill
        undo = tuple(render_step(s, current.dialect) for s in reverse_step(step, current))
        current = apply_step(current, step)
        sql, cost = render_step(step, current.dialect), describe_cost(step, backfill)
        statement = PlanStatement(table, sql, required.reason, backfill, cost, undo)
        planned_steps.append((step, statement))
    return planned_steps


def isolate_table(schema: Schema, table: str) -> Schema:
    """The part of a schema that a table's own steps need; all of it for an unknown table.

    This keeps planning fast with thousands of tables: each is planned against itself alone.
    """
    isolated = schema.table(table)
    if isolated is None:
        return schema
    return replace(schema, tables=(isolated,), indexes=schema.indexes_of(table), verbatim=())


def list_new_indexes(steps: list[tuple[Step, PlanStatement]]) -> set[str]:
    """The names of the indexes that the steps create, in lower case."""
    return {step.index.name.casefold() for step, _ in steps if isinstance(step, CreateIndex)}


def describe_cost(step: Step, backfill: bool) -> str:
    """What a statement costs Spanner, in words."""
    if isinstance(step, CreateIndex):
        filters = step.index.null_filtered or step.index.where_not_null
        entries = "rows whose shard and timestamp are not NULL" if filters else ""
        return (
            f"reads the table once in the background, writes an entry for {entries or 'each row'};"
            " afterwards one more write for each change of a row"
        )
    if isinstance(step, AlterIndexStoring):
        return "reads the table once in the background, to write the column into each entry"
    if isinstance(step, SetColumnOptions):
        return "reads the column of every row once, to check that no value lies in the future"
    return "writes every row of the table once in the background" if backfill else "metadata only"
