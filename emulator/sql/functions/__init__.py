"""Spanner's functions where SQLite has none, or others: registered on every connection."""

from __future__ import annotations

import logging

import apsw
import grpc

from emulator.errors import SpannerError, out_of_range
from emulator.sql.functions import (
    aggregates,
    arrays,
    bits,
    casts,
    collation,
    compression,
    extremes,
    formatting,
    intervals,
    json,
    mathematics,
    network,
    numbers,
    postgres_aggregates,
    postgres_arrays,
    postgres_casts,
    postgres_formats,
    postgres_intervals,
    postgres_json,
    postgres_json_members,
    postgres_numbers,
    postgres_patterns,
    postgres_text,
    postgres_times,
    protos,
    regular_expressions,
    text,
    time,
    windows,
)
from emulator.sql.functions.served import Function

LOG = logging.getLogger("emulator")

UNFORESEEN = (ArithmeticError, ValueError)
"""What Python raises for values that are too large, too long or malformed."""

GOOGLESQL = (
    *(text, regular_expressions, network, numbers, mathematics, bits, arrays, time),
    compression,
)
POSTGRESQL = (
    *(postgres_text, postgres_numbers, postgres_patterns, postgres_times, postgres_intervals),
    *(postgres_json, postgres_json_members, postgres_formats),
)
"""Modules with plain functions, in the order in which their overloads are tried."""
MODULES = (
    *GOOGLESQL,
    *POSTGRESQL,
    *(casts, collation, json, intervals, protos, postgres_casts, postgres_arrays),
)

SEEING_NULL = {
    **json.SEEING_NULL,
    **formatting.SEEING_NULL,
    **numbers.SEEING_NULL,
    **protos.SEEING_NULL,
    **postgres_text.SEEING_NULL,
    **postgres_json.SEEING_NULL,
}
NULL_SAFE = {"fn_array", "fn_array_to_string"} | set(SEEING_NULL)
"""Functions that see NULL arguments; of all others NULL gives NULL."""


def register(connection: apsw.Connection) -> None:
    """Adds every function; all but the random ones are deterministic."""
    scalars: dict[str, Function] = {}
    for module in MODULES:
        scalars |= module.FUNCTIONS
    scalars |= SEEING_NULL
    for name, function in scalars.items():
        chosen = function if name in NULL_SAFE else strict(function)
        deterministic = name not in text.RANDOM
        connection.create_scalar_function(name, chosen, deterministic=deterministic)
        connection.create_scalar_function(f"safe_{name}", safe(chosen), deterministic=deterministic)
    for name, factory in (aggregates.AGGREGATES | postgres_aggregates.AGGREGATES).items():
        connection.create_aggregate_function(name, factory)
    for name, factory in extremes.AGGREGATES.items():
        connection.create_aggregate_function(name, factory)
    for name, factory in windows.WINDOW_AGGREGATES.items():
        connection.create_window_function(name, factory)


def strict(function: Function) -> Function:
    """NULL in, NULL out."""

    def call(*arguments: object) -> object:
        if None in arguments:
            return None
        try:
            return function(*arguments)
        except UNFORESEEN as error:
            LOG.warning("A function of SQL did not foresee its arguments", exc_info=error)
            raise out_of_range(
                "A function was called with arguments outside of the range that it is defined for"
            ) from error

    return call


def safe(function: Function) -> Function:
    """NULL where the function refuses: the SAFE_ forms."""

    def call(*arguments: object) -> object:
        try:
            return function(*arguments)
        except SpannerError as error:
            if error.code is not grpc.StatusCode.OUT_OF_RANGE:
                raise
            return None

    return call
