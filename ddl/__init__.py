"""Spanner's DDL as values: read, written, planned and applied.

The public names are those of ``__all__``; each is loaded when it is first used, because most of the
project needs the schema alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddl.advice import Advice as Advice
    from ddl.advice import advise as advise
    from ddl.apply import apply_plan as apply_plan
    from ddl.apply import plan_rollback as plan_rollback
    from ddl.apply import read_schema as read_schema
    from ddl.apply import roll_back as roll_back
    from ddl.changelog import make_history_table as make_history_table
    from ddl.errors import ApplyError as ApplyError
    from ddl.errors import DdlError as DdlError
    from ddl.errors import DdlSyntaxError as DdlSyntaxError
    from ddl.errors import PlanError as PlanError
    from ddl.errors import SchemaError as SchemaError
    from ddl.evolve import apply_step as apply_step
    from ddl.files import write_files as write_files
    from ddl.lint import LintContext as LintContext
    from ddl.lint import LintFinding as LintFinding
    from ddl.lint import lint_schema as lint_schema
    from ddl.options import WatchOptions as WatchOptions
    from ddl.ownership import Ownership as Ownership
    from ddl.ownership import TakeOver as TakeOver
    from ddl.parse import parse_schema as parse_schema
    from ddl.parse import parse_script as parse_script
    from ddl.parse import parse_statement as parse_statement
    from ddl.plan import Plan as Plan
    from ddl.plan import PlanStatement as PlanStatement
    from ddl.plan import make_plan as make_plan
    from ddl.record import read_ownership as read_ownership
    from ddl.render import render_schema as render_schema
    from ddl.render import render_step as render_step
    from ddl.reverse import reverse_step as reverse_step
    from ddl.schema import Dialect as Dialect
    from ddl.schema import Schema as Schema
    from ddl.selection import select_tables as select_tables
    from ddl.status import TableStatus as TableStatus
    from ddl.status import list_statuses as list_statuses
    from ddl.strategies import Modulo as Modulo
    from ddl.strategies import Strategy as Strategy

MODULES = {
    "Advice": "advice",
    "ApplyError": "errors",
    "DdlError": "errors",
    "DdlSyntaxError": "errors",
    "Dialect": "schema",
    "LintContext": "lint",
    "LintFinding": "lint",
    "Modulo": "strategies",
    "Ownership": "ownership",
    "Plan": "plan",
    "PlanError": "errors",
    "PlanStatement": "plan",
    "Schema": "schema",
    "SchemaError": "errors",
    "Strategy": "strategies",
    "TableStatus": "status",
    "TakeOver": "ownership",
    "WatchOptions": "options",
    "advise": "advice",
    "apply_plan": "apply",
    "apply_step": "evolve",
    "lint_schema": "lint",
    "list_statuses": "status",
    "make_history_table": "changelog",
    "make_plan": "plan",
    "parse_schema": "parse",
    "parse_script": "parse",
    "parse_statement": "parse",
    "plan_rollback": "apply",
    "read_ownership": "record",
    "read_schema": "apply",
    "render_schema": "render",
    "render_step": "render",
    "reverse_step": "reverse",
    "roll_back": "apply",
    "select_tables": "selection",
    "write_files": "files",
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
