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
    from ddl.migration.record import read_ownership as read_ownership
    from ddl.model.advice import Advice as Advice
    from ddl.model.advice import advise as advise
    from ddl.model.errors import ApplyError as ApplyError
    from ddl.model.errors import DdlError as DdlError
    from ddl.model.errors import DdlSyntaxError as DdlSyntaxError
    from ddl.model.errors import PlanError as PlanError
    from ddl.model.errors import SchemaError as SchemaError
    from ddl.model.options import WatchOptions as WatchOptions
    from ddl.model.schema import Dialect as Dialect
    from ddl.model.schema import Schema as Schema
    from ddl.model.selection import select_tables as select_tables
    from ddl.model.strategies import Modulo as Modulo
    from ddl.model.strategies import Strategy as Strategy
    from ddl.rules.evolve import apply_step as apply_step
    from ddl.rules.evolve import parse_schema as parse_schema
    from ddl.rules.evolve import reverse_step as reverse_step
    from ddl.syntax.parse import parse_script as parse_script
    from ddl.syntax.parse import parse_statement as parse_statement
    from ddl.syntax.render import render_schema as render_schema
    from ddl.syntax.render import render_step as render_step
    from ddl.tracking.changelog import make_history_table as make_history_table
    from ddl.tracking.lint import LintContext as LintContext
    from ddl.tracking.lint import LintFinding as LintFinding
    from ddl.tracking.lint import lint_schema as lint_schema
    from ddl.tracking.ownership import Ownership as Ownership
    from ddl.tracking.ownership import TakeOver as TakeOver
    from ddl.tracking.status import TableStatus as TableStatus
    from ddl.tracking.status import list_statuses as list_statuses

MODULES = {
    "Advice": "model.advice",
    "ApplyError": "model.errors",
    "DdlError": "model.errors",
    "DdlSyntaxError": "model.errors",
    "Dialect": "model.schema",
    "LintContext": "tracking.lint",
    "LintFinding": "tracking.lint",
    "Modulo": "model.strategies",
    "Ownership": "tracking.ownership",
    "Plan": "migration.plan",
    "PlanError": "model.errors",
    "PlanStatement": "migration.plan",
    "Schema": "model.schema",
    "SchemaError": "model.errors",
    "Strategy": "model.strategies",
    "TableStatus": "tracking.status",
    "TakeOver": "tracking.ownership",
    "WatchOptions": "model.options",
    "advise": "model.advice",
    "apply_plan": "migration.apply",
    "apply_step": "rules.evolve",
    "lint_schema": "tracking.lint",
    "list_statuses": "tracking.status",
    "make_history_table": "tracking.changelog",
    "make_plan": "migration.plan",
    "parse_schema": "rules.evolve",
    "parse_script": "syntax.parse",
    "parse_statement": "syntax.parse",
    "plan_rollback": "migration.apply",
    "read_ownership": "migration.record",
    "read_schema": "migration.apply",
    "render_schema": "syntax.render",
    "render_step": "syntax.render",
    "reverse_step": "rules.evolve",
    "roll_back": "migration.apply",
    "select_tables": "model.selection",
    "write_files": "migration.files",
}
"""The module of each public name."""

__all__ = sorted(MODULES)  # noqa: PLE0605 (the list is the table above)


def __getattr__(name: str) -> object:
    """A public name, from its module. Raises AttributeError."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
    globals()[name] = value
    return value
