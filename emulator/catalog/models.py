"""The rows of INFORMATION_SCHEMA about models."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.values.system_tables import Row
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import Column, Schema
from spanner_schema.syntax.models import list_models
from spanner_schema.syntax.render import render_type

OPTION_TYPES = {"default_batch_size": "INT64", "endpoints": "ARRAY<STRING>", "required": "BOOL"}
"""Those that are no STRING."""


def model_rows(schema: Schema) -> Iterator[Row]:
    """The models."""
    for model in list_models(schema):
        yield "", *split_name(model.name), int(model.remote)


def model_option_rows(schema: Schema) -> Iterator[Row]:
    """The options that are set for each model."""
    for model in list_models(schema):
        for option in model.options:
            yield "", *split_name(model.name), *describe_option(*option)


def model_column_rows(schema: Schema) -> Iterator[Row]:
    """The columns of each model."""
    for name, kind, position, column in list_columns(schema):
        yield "", *name, kind, column.name, position, render_type(column.type), 1


def model_column_option_rows(schema: Schema) -> Iterator[Row]:
    """The options that are set for each column of a model."""
    for name, kind, _, column in list_columns(schema):
        for option in column.options:
            yield "", *name, kind, column.name, *describe_option(*option)


def list_columns(schema: Schema) -> Iterator[tuple[tuple[str, str], str, int, Column]]:
    """The model, the kind, the position and the definition of each column."""
    for model in list_models(schema):
        for kind, columns in model.columns:
            for position, column in enumerate(columns, start=1):
                yield split_name(model.name), kind, position, column


def describe_option(name: str, value: str) -> tuple[str, str, str]:
    """The name, the type and the value of an option."""
    kind = OPTION_TYPES.get(name, "STRING")
    return name, kind, value.upper() if kind == "BOOL" else value.strip("'\"")
