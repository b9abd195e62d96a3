"""What depends on a column, an index or a table, so that Spanner does not drop it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from spanner_schema.model.names import same_name, split_name
from spanner_schema.model.schema import Dialect, Index, Schema, Table, Verbatim
from spanner_schema.model.steps import DropColumn, DropIndex, DropTable, Step
from spanner_schema.syntax.references import find_referenced_columns
from spanner_schema.syntax.tokens import Token, TokenKind, tokenize

READERS = frozenset({"VIEW", "SEARCH INDEX", "VECTOR INDEX", "PROPERTY GRAPH", "FUNCTION"})
"""Kinds of objects, kept as text, that name columns of tables."""
FORCE_INDEX = re.compile(r"""FORCE_INDEX\s*=\s*["'`]?([\w.]+)""", re.I)
NAMES = frozenset({TokenKind.WORD, TokenKind.QUOTED})


def list_dependents(step: Step, schema: Schema) -> list[str]:
    """What must go, or change, before the step can run, in words; empty for steps that drop
    nothing, and for what is not there."""
    if isinstance(step, DropColumn):
        table = schema.table(step.table)
        column = table.column(step.column) if table is not None else None
        return list(list_users(schema, table, column.name)) if table and column else []
    if isinstance(step, DropIndex):
        index = schema.index(step.name)
        return list(list_hints(schema, index)) if index is not None else []
    if isinstance(step, DropTable):
        table = schema.table(step.name)
        return list(list_table_users(schema, table)) if table is not None else []
    return []


def name_dropped(step: Step) -> str:
    """What a step drops, as messages call it."""
    if isinstance(step, DropColumn):
        return f"column {step.table}.{step.column}"
    if isinstance(step, DropIndex):
        return f"index {step.name}"
    return f"table {step.name}" if isinstance(step, DropTable) else "it"


def list_users(schema: Schema, table: Table, column: str) -> Iterator[str]:
    """What uses a column."""
    if has_name((part.column for part in table.primary_key), column):
        yield f"the primary key of {table.name}"
    for index in schema.indexes_of(table.name):
        used = (*(part.column for part in index.parts), *index.storing, *index.where_not_null)
        if has_name(used, column):
            yield f"index {index.name}"
    for other in table.columns:
        expression = other.generated or ""
        if has_name(find_referenced_columns(expression, table, schema.dialect), column):
            yield f"generated column {table.name}.{other.name}"
    for check in table.checks:
        if has_name(find_referenced_columns(check.expression, table, schema.dialect), column):
            yield f"constraint {check.label or 'without a name'} of {table.name} (CHECK)"
    if table.row_deletion_policy and same_name(table.row_deletion_policy.column, column):
        yield f"the row deletion policy of {table.name}"
    yield from list_foreign_keys(schema, table, column)
    for stream in schema.change_streams:
        for watched in stream.watches:
            if same_name(watched.table, table.name) and has_name(watched.columns or (), column):
                yield f"change stream {stream.name}"
    yield from list_texts(schema, table, column)


def list_foreign_keys(schema: Schema, table: Table, column: str | None) -> Iterator[str]:
    """The foreign keys that use a column, or, of others, that reference the table."""
    for other in schema.tables:
        for key in other.foreign_keys:
            references = same_name(key.referenced_table, table.name)
            if column is None:
                uses = references and other is not table
            else:
                uses = other is table and has_name(key.columns, column)
                uses |= references and has_name(key.referenced_columns, column)
            if uses:
                yield f"foreign key {key.label or 'without a name'} of {other.name}"


def list_hints(schema: Schema, index: Index) -> Iterator[str]:
    """The views that are read through an index."""
    last = split_name(index.name)[1]
    for item in list_readers(schema):
        hinted = FORCE_INDEX.findall(item.text)
        if has_name((split_name(name)[1] for name in hinted), last):
            yield f"{describe(item)} (FORCE_INDEX)"


def list_table_users(schema: Schema, table: Table) -> Iterator[str]:
    """What uses a table."""
    for other in schema.tables:
        if other.interleave is not None and same_name(other.interleave.parent, table.name):
            yield f"table {other.name}, which is interleaved in it"
    yield from (f"index {index.name}" for index in schema.indexes_of(table.name))
    yield from list_foreign_keys(schema, table, None)
    for stream in schema.change_streams:
        if has_name((watched.table for watched in stream.watches), table.name):
            yield f"change stream {stream.name}"
    yield from list_texts(schema, table, None)


def list_texts(schema: Schema, table: Table, column: str | None) -> Iterator[str]:
    """The objects whose text names a table and, if one is given, a column of it."""
    for item in list_readers(schema):
        if reads(item, table, column, schema.dialect):
            yield describe(item)


def list_readers(schema: Schema) -> Iterator[Verbatim]:
    """The objects whose text names columns of tables."""
    return (item for item in schema.verbatim if item.kind in READERS)


def describe(item: Verbatim) -> str:
    """An object as messages call it."""
    return f"{item.kind.lower()} {item.name}"


def has_name(names: Iterable[str], name: str) -> bool:
    """True if a name is among them."""
    return any(same_name(each, name) for each in names)


def reads(item: Verbatim, table: Table, column: str | None, dialect: Dialect) -> bool:
    """True if the text of an object names a table and, if one is given, a column of it: one that
    stands alone, or behind the table's name or alias."""
    tokens = list(tokenize(item.text, dialect))
    qualifiers = set(find_qualifiers(tokens, split_name(table.name)[1]))
    if not qualifiers or column is None:
        return bool(qualifiers)
    for number, token in enumerate(tokens):
        if token.kind not in NAMES or not same_name(token.value, column):
            continue
        before = tokens[number - 1].text.upper()
        if before == "." and tokens[number - 2].value.casefold() not in qualifiers:
            continue
        if before != "AS":
            return True
    return False


def find_qualifiers(tokens: Sequence[Token], table: str) -> Iterator[str]:
    """The name and the aliases of a table in a text, in lower case; none where it is not named."""
    for number, token in enumerate(tokens):
        if token.kind not in NAMES or not same_name(token.value, table):
            continue
        yield token.value.casefold()
        rest = tokens[number + 1 : number + 3]
        alias = rest[1] if rest and rest[0].text.upper() == "AS" and len(rest) > 1 else rest[0]
        if alias.kind in NAMES:
            yield alias.value.casefold()
