"""Spanner's DDL as values: read, written, planned and applied.

The public names are those of ``__all__``; each is loaded when it is first used, because most of the
project needs the schema alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddl.migration.apply import apply_plan as apply_plan
    from ddl.migration.apply import plan_rollback as plan_rollback
    from ddl.migration.apply import read_schema as read_schema
    from ddl.migration.apply import roll_back as roll_back
    from ddl.migration.files import write_files as write_files
    from ddl.migration.plan import Plan as Plan
    from ddl.migration.plan import PlanStatement as PlanStatement
    from ddl.migration.plan import make_plan as make_plan
    from ddl.rules.evolve import apply_step as apply_step
    from ddl.rules.evolve import parse_schema as parse_schema
    from ddl.rules.evolve import reverse_step as reverse_step
    from ddl.tracking.changelog import make_history_table as make_history_table
    from ddl.tracking.lint import LintContext as LintContext
    from ddl.tracking.lint import LintFinding as LintFinding
    from ddl.tracking.lint import lint_schema as lint_schema
    from ddl.tracking.status import TableStatus as TableStatus
    from ddl.tracking.status import list_statuses as list_statuses
    from spanner_schema.model.advice import Advice as Advice
    from spanner_schema.model.advice import advise as advise
    from spanner_schema.model.errors import ApplyError as ApplyError
    from spanner_schema.model.errors import DdlError as DdlError
    from spanner_schema.model.errors import DdlSyntaxError as DdlSyntaxError
    from spanner_schema.model.errors import PlanError as PlanError
    from spanner_schema.model.errors import SchemaError as SchemaError
    from spanner_schema.model.options import WatchOptions as WatchOptions
    from spanner_schema.model.schema import Dialect as Dialect
    from spanner_schema.model.schema import Schema as Schema
    from spanner_schema.model.selection import select_tables as select_tables
    from spanner_schema.model.strategies import Modulo as Modulo
    from spanner_schema.model.strategies import Strategy as Strategy
    from spanner_schema.syntax.parse import parse_script as parse_script
    from spanner_schema.syntax.parse import parse_statement as parse_statement
    from spanner_schema.syntax.render import render_schema as render_schema
    from spanner_schema.syntax.render import render_step as render_step
    from spanner_schema.watched.ownership import Ownership as Ownership
    from spanner_schema.watched.ownership import TakeOver as TakeOver
    from spanner_schema.watched.records import read_ownership as read_ownership

MODULES = {
    "Advice": "spanner_schema.model.advice",
    "ApplyError": "spanner_schema.model.errors",
    "DdlError": "spanner_schema.model.errors",
    "DdlSyntaxError": "spanner_schema.model.errors",
    "Dialect": "spanner_schema.model.schema",
    "LintContext": "ddl.tracking.lint",
    "LintFinding": "ddl.tracking.lint",
    "Modulo": "spanner_schema.model.strategies",
    "Ownership": "spanner_schema.watched.ownership",
    "Plan": "ddl.migration.plan",
    "PlanError": "spanner_schema.model.errors",
    "PlanStatement": "ddl.migration.plan",
    "Schema": "spanner_schema.model.schema",
    "SchemaError": "spanner_schema.model.errors",
    "Strategy": "spanner_schema.model.strategies",
    "TableStatus": "ddl.tracking.status",
    "TakeOver": "spanner_schema.watched.ownership",
    "WatchOptions": "spanner_schema.model.options",
    "advise": "spanner_schema.model.advice",
    "apply_plan": "ddl.migration.apply",
    "apply_step": "ddl.rules.evolve",
    "lint_schema": "ddl.tracking.lint",
    "list_statuses": "ddl.tracking.status",
    "make_history_table": "ddl.tracking.changelog",
    "make_plan": "ddl.migration.plan",
    "parse_schema": "ddl.rules.evolve",
    "parse_script": "spanner_schema.syntax.parse",
    "parse_statement": "spanner_schema.syntax.parse",
    "plan_rollback": "ddl.migration.apply",
    "read_ownership": "spanner_schema.watched.records",
    "read_schema": "ddl.migration.apply",
    "render_schema": "spanner_schema.syntax.render",
    "render_step": "spanner_schema.syntax.render",
    "reverse_step": "ddl.rules.evolve",
    "roll_back": "ddl.migration.apply",
    "select_tables": "spanner_schema.model.selection",
    "write_files": "ddl.migration.files",
}
"""The module of each public name."""

__all__ = sorted(MODULES)  # noqa: PLE0605 (the list is the table above)


def __getattr__(name: str) -> object:
    """A public name, from its module. Raises AttributeError."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(MODULES[name]), name)
    globals()[name] = value
    return value
