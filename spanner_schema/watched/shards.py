"""The expression of a computed shard: a hash of columns, modulo the number of shards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from spanner_schema.model.column_types import COLUMN_TYPES, TypeCode
from spanner_schema.model.errors import PlanError
from spanner_schema.model.schema import Column, Dialect, Table
from spanner_schema.syntax.render import quote_column, render_type
from spanner_schema.watched.value_bounds import find_bounds

WITHOUT_IMMUTABLE_TEXT = frozenset({TypeCode.BYTES, TypeCode.TIMESTAMP})
"""Types of the PostgreSQL dialect. A timestamp as text depends on the time zone."""

VALUES_MAX = 2_000_000
"""A list that is longer is not asked for."""
CASE = re.compile(
    r"""\s*+CASE\s++WHEN\s++(?:"(?:[^"]|"")++"|\S++)\s++THEN\s++NULL(?:::\w++)?\s++"""
    r"""ELSE\s++(.*\S)\s++END\s*+\Z""",
    re.I | re.S,
)


def shard_expression(
    table: Table,
    key: Sequence[str] | None,
    shards: int,
    signed: bool = False,
    dialect: Dialect = Dialect.GOOGLESQL,
) -> str:
    """An expression that has exactly the values 0 to ``shards`` - 1, and is never NULL.

    Spanner: MOD keeps the sign of its first operand, so the modulus is added before a second MOD;
    ``signed`` omits that, which gives 2 * ``shards`` - 1 values around 0.
    Raises PlanError for a key that cannot be hashed.
    """
    columns = choose_hashed_columns(table, key, dialect)
    if dialect is Dialect.POSTGRESQL:
        fingerprint = f"spanner.farm_fingerprint({write_postgresql_key(table, columns)})"
        remainder, non_negative = f"mod({fingerprint}, {shards})", "mod({0} + {1}, {1})"
    else:
        fingerprint = f"FARM_FINGERPRINT({write_googlesql_key(columns)})"
        remainder, non_negative = f"MOD({fingerprint}, {shards})", "MOD({0} + {1}, {1})"
    return remainder if signed else non_negative.format(remainder, shards)


def write_googlesql_key(columns: Sequence[Column]) -> str:
    """The columns as one STRING, never NULL."""
    if len(columns) == 1:
        return replace_null(columns[0], write_text(columns[0]), "''")
    # Each part begins with its length, so that ('ab', 'c') and ('a', 'bc') differ.
    return join_parts([write_part(column) for column in columns])


def write_postgresql_key(table: Table, columns: Sequence[Column]) -> str:
    """The columns as one text, never NULL. Raises PlanError for a type that has none."""
    names = [quote_column(column.name, Dialect.POSTGRESQL) for column in columns]
    if len(columns) == 1 and columns[0].type.code is TypeCode.BYTES:
        return f"coalesce({names[0]}, ''::bytea)"
    texts = []
    for column, name in zip(columns, names, strict=True):
        text = COLUMN_TYPES[column.type.code].postgresql_text
        if text is None:
            raise PlanError(
                f"the key column {table.name}.{column.name} has type"
                f" {render_type(column.type, Dialect.POSTGRESQL)}, which has no immutable text in"
                " the PostgreSQL dialect: choose other columns with --shard-key"
            )
        texts.append(text.format(name))
    if len(texts) == 1:
        return texts[0] if columns[0].not_null else f"coalesce({texts[0]}, '')"
    return join_parts([f"coalesce(length({t})::text || ':' || {t}, '-')" for t in texts])


CHAIN_MAX = 4


def join_parts(parts: Sequence[str]) -> str:
    """Texts joined to one. Spanner nests an operator in the next one, and no expression more than
    20 deep: many are joined by halves."""
    if len(parts) <= CHAIN_MAX:
        return " || ".join(parts)
    middle = len(parts) // 2
    halves = (join_parts(parts[:middle]), join_parts(parts[middle:]))
    return " || ".join(f"({half})" for half in halves)


def choose_hashed_columns(
    table: Table, key: Sequence[str] | None, dialect: Dialect
) -> list[Column]:
    """The columns to hash: the given ones, else the primary key without commit timestamps."""
    keys = [part.column for part in table.primary_key]
    names = list(key) if key else keys
    columns = []
    for name in names:
        column = table.column(name)
        if column is None:
            raise PlanError(
                f"table {table.name} has no column {name}: --shard-key needs existing columns"
            )
        if column.allow_commit_timestamp:
            if key:
                raise PlanError(
                    f"{table.name}.{column.name} holds commit timestamps, which Spanner does not"
                    " allow in a generated column: choose other columns with --shard-key"
                )
            continue
        if column.type.code is TypeCode.PROTO and column.name in keys:
            # DDL names an ENUM as it names a PROTO, which cannot be in a key.
            column = replace(column, type=replace(column.type, code=TypeCode.ENUM))
        if not can_hash(column.type.code, dialect):
            raise PlanError(
                f"the key column {table.name}.{column.name} has type"
                f" {render_type(column.type, dialect)}, which cannot be hashed into shards:"
                " choose other columns with --shard-key"
            )
        columns.append(column)
    if not columns:
        raise PlanError(
            f"table {table.name} has no primary key column to hash into shards:"
            " choose columns with --shard-key"
        )
    return columns


def can_hash(code: TypeCode, dialect: Dialect) -> bool:
    """Whether columns of a type can be hashed; ``WITHOUT_IMMUTABLE_TEXT`` has an error of its
    own."""
    described = COLUMN_TYPES[code]
    if dialect is Dialect.GOOGLESQL:
        return described.text is not None
    return described.postgresql_text is not None or code in WITHOUT_IMMUTABLE_TEXT


def write_text(column: Column) -> str:
    """A column as STRING, of a type that ``can_hash``."""
    text = COLUMN_TYPES[column.type.code].text
    assert text is not None
    return text.format(quote_column(column.name))


def write_part(column: Column) -> str:
    """A column as one part of several: 'length:text', or '-' for NULL."""
    text = write_text(column)
    return replace_null(column, f"CAST(LENGTH({text}) AS STRING) || ':' || {text}", "'-'")


def replace_null(column: Column, text: str, replacement: str) -> str:
    """The text, with a replacement for NULL if the column may be NULL."""
    return text if column.not_null else f"COALESCE({text}, {replacement})"


@lru_cache(maxsize=16_384)
def shard_values(expression: str) -> tuple[int, ...] | None:
    """All values that a shard expression may have, and perhaps others between them; None where they
    do not follow from its text."""
    bounds = find_bounds(expression)
    if bounds is None or bounds.empty or bounds.greatest - bounds.least >= VALUES_MAX:
        return None
    return tuple(range(bounds.least, bounds.greatest + 1))


def strip_case(expression: str) -> str:
    """The ELSE branch of the processed strategy's CASE, else the expression itself."""
    match = CASE.match(expression)
    return match.group(1) if match else expression
