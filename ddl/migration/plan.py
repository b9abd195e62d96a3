"""A plan: ordered statements with reasons and costs, valid for one schema only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

from ddl.migration.effects import describe_cost, describe_effects
from ddl.rules.evolve import apply_step, reverse_step
from ddl.rules.limits import (
    INDEXES_MAX,
    STATEMENT_BYTES_MAX,
    TABLES_MAX,
    check_index_key,
    check_names_and_keys,
    check_table_size,
)
from ddl.tracking.wanted_schema import list_required_steps, list_take_overs
from spanner_schema.model.errors import DdlError, PlanError, SchemaError
from spanner_schema.model.names import list_names
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Schema
from spanner_schema.model.steps import (
    AddColumn,
    CreateIndex,
    CreateTable,
    Step,
)
from spanner_schema.model.strategies import Strategy
from spanner_schema.syntax.render import render_schema, render_step
from spanner_schema.watched.ownership import NOBODY, Ownership, TakeOver


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
class LeftOutTable:
    """A table that cannot be planned, and why."""

    table: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Statements in order. ``fingerprint`` identifies the schema that they were planned for,
    ``taken_over`` says which values of applications may be lost from then on, ``left_out`` which
    tables the plan does without, ``notes`` what applications may notice."""

    fingerprint: str
    statements: tuple[PlanStatement, ...]
    taken_over: tuple[TakeOver, ...] = ()
    left_out: tuple[LeftOutTable, ...] = ()
    notes: tuple[str, ...] = ()

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
    return digest(render_schema(schema))


def digest(statements: Iterable[str]) -> str:
    """A digest of the statements that make a schema."""
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()


SINGLE_TABLE_STRATEGIES = frozenset({Strategy.AUTOMATIC, Strategy.PROCESSED, Strategy.MANUAL})
"""Strategies whose steps change nothing but the table and its index."""

OptionsFor = Callable[[str], WatchOptions]
NOTHING: Mapping[str, Ownership] = MappingProxyType({})


def make_plan(
    schema: Schema,
    tables: Iterable[str],
    options: WatchOptions | OptionsFor,
    owned: Mapping[str, Ownership] = NOTHING,
    strict: bool = True,
) -> Plan:
    """Plans the migration that makes tables watchable as asked for.

    ``options`` are the same for all tables, or a function of a table's name. ``owned`` says what
    is ours by the record of a database (``ddl.read_ownership``), by table. Every step is tried
    on the schema first. Raises PlanError or SchemaError; nothing is changed. Unless ``strict``, a
    table that cannot be planned is left out, while another one can be.
    """
    existing = render_schema(schema)
    planning = Planning(schema, owned, sum(len(statement.encode()) for statement in existing))
    left_out: list[tuple[str, DdlError]] = []
    names = list(tables)
    for table in names:
        try:
            planning.add(table, options if isinstance(options, WatchOptions) else options(table))
        except DdlError as error:
            if strict or len(names) == 1:
                raise
            left_out.append((table, error))
    if left_out and len(left_out) == len(names):
        raise refuse_all(left_out)
    refused = tuple(LeftOutTable(table, str(error)) for table, error in left_out)
    return Plan(
        digest(existing),
        tuple(planning.statements),
        tuple(planning.taken_over),
        refused,
        tuple(describe_effects(planning.steps, schema.dialect)),
    )


def refuse_all(left_out: Iterable[tuple[str, DdlError]]) -> PlanError:
    """The error where no table can be planned: every reason, with the tables that have it."""
    tables: dict[str, list[str]] = {}
    for table, error in left_out:
        tables.setdefault(str(error), []).append(table)
    reasons = (f"{', '.join(names)}: {reason}" for reason, names in tables.items())
    return PlanError(f"no table can be planned. {'; '.join(reasons)}")


class Planning:
    """The statements of a plan, table by table, and the schema that they lead to. ``size`` is that
    of the schema's statements, in bytes."""

    def __init__(self, schema: Schema, owned: Mapping[str, Ownership], size: int) -> None:
        self.statements: list[PlanStatement] = []
        self.taken_over: list[TakeOver] = []
        self.steps: list[Step] = []
        self._before, self._whole = schema, schema
        self._pending: list[Step] = []
        self._owned = {name.casefold(): each for name, each in owned.items()}
        self._names = {name.casefold() for name in list_names(schema)}
        self._room = {
            CreateTable: TABLES_MAX - len(schema.tables),
            CreateIndex: INDEXES_MAX - len(schema.indexes),
        }
        self._bytes = STATEMENT_BYTES_MAX - size

    def add(self, table: str, options: WatchOptions) -> None:
        """Plans one more table. Raises PlanError or SchemaError, and the plan stays as it was."""
        ownership = self._owned.get(table.casefold(), NOBODY)
        planned = self._plan_alone(table, options, ownership)
        if planned is None:
            planned = plan_table(self._apply_pending(), table, options, ownership)
        self._check_room(table, planned)
        self.taken_over += list_take_overs(self._before, table, options, ownership)
        self._names |= list_new_indexes(planned)
        self.steps += [step for step, _ in planned]
        self._pending += [step for step, _ in planned]
        self.statements += [statement for _, statement in planned]

    def _plan_alone(
        self, table: str, options: WatchOptions, ownership: Ownership
    ) -> list[tuple[Step, PlanStatement]] | None:
        """The steps against the table alone; None where they need the other tables."""
        if options.strategy not in SINGLE_TABLE_STRATEGIES:
            return None
        planned = plan_table(isolate_table(self._before, table), table, options, ownership)
        # Another table's object may have the name of a new index.
        return None if list_new_indexes(planned) & self._names else planned

    def _check_room(self, table: str, planned: list[tuple[Step, PlanStatement]]) -> None:
        """Counts what the steps add to the database. Raises PlanError."""
        room = dict(self._room)
        for step, _ in planned:
            if type(step) in room:
                room[type(step)] -= 1
        size = self._bytes - sum(len(statement.sql.encode()) for _, statement in planned)
        for what, left, most in (
            ("tables", room[CreateTable], TABLES_MAX),
            ("indexes", room[CreateIndex], INDEXES_MAX),
            ("bytes of DDL", size, STATEMENT_BYTES_MAX),
        ):
            if left < 0:
                raise PlanError(
                    f"table {table} needs more {what} than Spanner allows in a database, which is"
                    f" {most:,}: drop some, or watch fewer tables"
                )
        self._room, self._bytes = room, size

    def _apply_pending(self) -> Schema:
        """The schema after the statements so far."""
        for step in self._pending:
            self._whole = apply_step(self._whole, step)
        self._pending.clear()
        return self._whole


def plan_table(
    schema: Schema, table: str, options: WatchOptions, ownership: Ownership = NOBODY
) -> list[tuple[Step, PlanStatement]]:
    """The steps for one table, tried on the schema, each with its statement."""
    current, planned_steps = schema, []
    for required in list_required_steps(schema, table, options, ownership):
        step, backfill = required.step, required.backfill
        check_limits(current, table, step)
        undo = tuple(render_step(s, current.dialect) for s in reverse_step(step, current))
        current = apply_step(current, step)
        sql, cost = render_step(step, current.dialect), describe_cost(step, backfill, current)
        statement = PlanStatement(table, sql, required.reason, backfill, cost, undo)
        planned_steps.append((step, statement))
    return planned_steps


def check_limits(schema: Schema, table: str, step: Step) -> None:
    """Raises PlanError for a step that Spanner's limits do not allow, with what to do instead."""
    try:
        check_names_and_keys(step, schema.dialect)
    except SchemaError as error:
        raise PlanError(f"table {table} cannot be planned: {error} Choose a shorter one") from error
    try:
        owner, indexes = schema.table(table), len(schema.indexes_of(table))
        if isinstance(step, CreateIndex) and owner is not None:
            check_index_key(owner, step.index)
            check_table_size(owner, schema, indexes + 1)
        elif isinstance(step, AddColumn) and owner is not None:
            check_table_size(replace(owner, columns=(*owner.columns, step.column)), schema, indexes)
    except SchemaError as error:
        raise PlanError(
            f"table {table} cannot be given what watching needs, by a limit of Spanner: {error}"
            " --strategy change-stream adds nothing to the table"
        ) from error


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
