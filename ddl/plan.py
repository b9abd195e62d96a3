"""A plan: ordered statements, each with its reason and its cost, for one schema and no other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from ddl.evolve import apply
from ddl.options import WatchOptions
from ddl.render import render, render_schema
from ddl.schema import Schema
from ddl.tracking import wanted_steps


@dataclass(frozen=True, slots=True)
class Statement:
    """A DDL statement. ``long_running`` ones write data in the background (a backfill)."""

    sql: str
    reason: str
    long_running: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """``fingerprint`` is that of the schema which the plan was made for."""

    fingerprint: str
    statements: tuple[Statement, ...]

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


def make_plan(schema: Schema, tables: Iterable[str], options: WatchOptions) -> Plan:
    """Plans the migration that makes tables watchable.

    Every step is tried on the schema first. Raises PlanError or SchemaError; nothing is changed.
    """
    now, statements = schema, []
    for table in tables:
        for wanted in wanted_steps(now, table, options):
            now = apply(now, wanted.step)
            statements.append(Statement(render(wanted.step), wanted.reason, wanted.backfill))
    return Plan(fingerprint(schema), tuple(statements))
