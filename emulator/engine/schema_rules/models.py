"""Models: their options and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from emulator.engine.schema_rules.change import SchemaChange
from emulator.engine.schema_rules.locality_groups import refuse_unknown_option
from emulator.errors import SpannerError, failed_precondition, invalid_argument
from spanner_schema.model import steps
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Column
from spanner_schema.syntax.models import INPUT, KIND, Model, read_model
from spanner_schema.syntax.render import render_type

ENDPOINT, ENDPOINTS, BATCH = "endpoint", "endpoints", "default_batch_size"
OPTIONS = {ENDPOINT: re.compile(r"(['\"]).*\1"), ENDPOINTS: re.compile(r"\[.*\]", re.DOTALL)}
OPTIONS |= {BATCH: re.compile(r"-?\d+")}
REQUIRED = "required"
BATCH_MAX, COLUMNS_MAX, FIELDS_MAX, DEPTH_MAX = 10, 1_024, 10, 5
TYPES = {TypeCode.BOOL, TypeCode.BYTES, TypeCode.FLOAT32, TypeCode.FLOAT64, TypeCode.INT64}
TYPES |= {TypeCode.STRING, TypeCode.ARRAY, TypeCode.STRUCT}


def check_models(change: SchemaChange) -> None:
    """Checks a model that is new or altered."""
    step = change.step
    if not isinstance(step, steps.CreateVerbatim) or step.item.kind != KIND:
        return
    model = read_model(step.item.text)
    check_options(model)
    if not model.remote:
        raise failed_precondition(f"Model {model.name} must specify REMOTE attribute.")
    if not model.columns:
        raise failed_precondition(
            f"Schema discovery is not available. Please use explicit {INPUT} clause for model"
            f" {model.name}."
        )
    names: dict[str, str] = {}
    for kind, columns in model.columns:
        if len(columns) > COLUMNS_MAX:
            raise failed_precondition(
                f"Model {model.name} has too many {kind.title()}s; the limit is {COLUMNS_MAX}."
            )
        check_columns(model, columns, names)


def check_options(model: Model) -> None:
    """The endpoint, or several, and a size of batches."""
    options = dict(model.options)
    for name, value in model.options:
        refuse_unknown_option(name, set(OPTIONS))
        if not OPTIONS[name].fullmatch(value):
            raise unexpected_value(name)
    if len(options) < len(model.options):
        names = [name for name, _ in model.options]
        repeated = next(name for name in names if names.count(name) > 1)
        raise invalid_argument(f"Duplicate option: {repeated}.")
    if ENDPOINT in options and ENDPOINTS in options:
        raise failed_precondition(
            f"Model {model.name} has invalid endpoint option. Option cannot be specified together"
            " with endpoints."
        )
    if ENDPOINT not in options and ENDPOINTS not in options:
        raise failed_precondition(
            f"Model {model.name} has invalid endpoints option. Option is required."
        )
    size = int(options.get(BATCH, "1"))
    if not 1 <= size <= BATCH_MAX:
        raise failed_precondition(
            f"Model {model.name} has invalid default_batch_size option: {size}. Must be between 1"
            f" and {BATCH_MAX}."
        )


def check_columns(model: Model, columns: tuple[Column, ...], names: dict[str, str]) -> None:
    """Columns of one kind: a name, which is added to the ``names`` of the model, and a type."""
    for column in columns:
        other = names.get(column.name.casefold())
        if other == column.name:
            raise failed_precondition(f"Duplicate name in schema: {model.name}.{column.name}.")
        if other is not None:
            raise failed_precondition(
                f"Schema object names differ only in case: {column.name}, {other}."
            )
        names[column.name.casefold()] = column.name
        where = f" Used in Model {model.name} column {column.name}."
        for problem in list_problems(column):
            raise failed_precondition(problem + where)
        for name, value in column.options:
            refuse_unknown_option(name, {REQUIRED})
            if value.lower() not in {"true", "false"}:
                raise unexpected_value(name)


def unexpected_value(name: str) -> SpannerError:
    """An option of another type."""
    return invalid_argument(f"Unexpected value for option: {name}.")


def list_problems(column: Column) -> Iterator[str]:
    """What the columns of a model may not be."""
    if column.not_null:
        yield "NOT NULL constraint is not supported in models."
    if column.hidden:
        yield "HIDDEN attribute is not supported in models."
    if column.generated is not None or column.identity is not None:
        yield "Generated columns are not supported in models."
    if column.default is not None:
        yield "Default values are not supported in models."
    for type_ in list_types(column.type):
        if type_.code not in TYPES:
            yield f"Type {render_type(type_)} is not supported in model columns."
        if type_.length is not None:
            yield "Length is not supported in model columns. Please use MAX."
        if type_.element is not None and type_.element.code is TypeCode.ARRAY:
            yield "Array of arrays type is not supported by the schema."
        if len(type_.fields) > FIELDS_MAX:
            yield f"The number of struct field exceeds the limit: {FIELDS_MAX}."
    if measure_depth(column.type) > DEPTH_MAX:
        yield f"DDL parser exceeded complex type nesting limit of {DEPTH_MAX}."


def list_types(type_: Type) -> Iterator[Type]:
    """A type and those in it."""
    yield type_
    for inner in (type_.element, *(field.type for field in type_.fields)):
        if inner is not None:
            yield from list_types(inner)


def measure_depth(type_: Type) -> int:
    """How many arrays and structs are in each other."""
    inner = [each for each in (type_.element, *(f.type for f in type_.fields)) if each is not None]
    return 1 + max(map(measure_depth, inner)) if inner else 0
