"""What is done with a step, by its type: beside each other, what it does to a schema, and the steps
that take it back."""

from __future__ import annotations

from functools import singledispatch

from spanner_schema.model.errors import PlanError, SchemaError
from spanner_schema.model.schema import Schema
from spanner_schema.model.steps import Step


@singledispatch
def apply_by_type(step: object, schema: Schema) -> Schema:
    """As ``evolve.apply_step``."""
    raise SchemaError(f"{type(step).__name__} cannot be applied to a schema")


@singledispatch
def reverse_by_type(step: object, before: Schema) -> tuple[Step, ...]:
    """As ``evolve.reverse_step``: a step for which nothing is registered cannot be taken back."""
    raise PlanError(f"{type(step).__name__} cannot be undone by a statement")
