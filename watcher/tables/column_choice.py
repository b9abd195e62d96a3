"""Which columns of a table are read: the chosen ones among those that can be decoded."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache

from spanner_schema.model.column_types import COLUMN_TYPES, Type, TypeCode
from spanner_schema.model.schema import Column, Dialect, Table
from spanner_schema.syntax.references import find_sources
from spanner_schema.syntax.render import render_type
from watcher.model.errors import ConfigurationError, NotWatchableError
from watcher.model.log_events.reading import COLUMNS_LEFT_OUT
from watcher.spanner.results.supported_types import is_supported
from watcher.tables.masks import Mask, MaskKind, fits

LOG = logging.getLogger("watcher.columns")

Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """``include`` None is every column, without those that are HIDDEN unless ``hidden``;
    ``exclude`` is left out of it. Names are compared without regard to case."""

    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """Columns of the type numeric that are read as text."""
    hidden: bool = False
    masks: tuple[Mask, ...] = ()

    def choose_type(self, column: Column) -> Type:
        """The type that a column is read as."""
        if column.name.casefold() not in {each.casefold() for each in self.texts}:
            return column.type
        if column.type.element is not None:
            return Type(TypeCode.ARRAY, element=Type(TypeCode.STRING))
        return Type(TypeCode.STRING)

    def includes(self, name: str) -> bool:
        """Whether a column is chosen."""
        folded = name.casefold()
        included = self.include is None or folded in {each.casefold() for each in self.include}
        return included and folded not in {each.casefold() for each in self.exclude}

    def keep_existing(self, table: Table) -> ColumnChoice:
        """The choice without the columns that a table does not have, or has of another type: an
        earlier schema may not know yet, or a later one not any more, what is configured."""

        def is_there(name: str) -> bool:
            return table.column(name) is not None

        def is_numeric(name: str) -> bool:
            column = table.column(name)
            return column is not None and TypeCode.PG_NUMERIC in list_codes(column.type)

        return ColumnChoice(
            None if self.include is None else tuple(filter(is_there, self.include)),
            tuple(filter(is_there, self.exclude)),
            tuple(filter(is_numeric, self.texts)),
            masks=tuple(each for each in self.masks if is_there(each.column)),
        )


EVERYTHING = ColumnChoice()


def choose_columns(table: Table, choice: ColumnChoice, always: Collection[str]) -> Columns:
    """The columns of a table that are read: the chosen ones, its key and ``always``, in the order
    of the table. What cannot be decoded is left out, with one log line.

    Raises ConfigurationError for a column that does not exist, cannot be decoded, or is excluded
    but must be read; NotWatchableError when the key cannot be decoded.
    """
    required = {part.column.casefold() for part in table.primary_key}
    check_key(table, required)
    required |= {name.casefold() for name in always}
    check_choice(table, choice, required)
    named = required | {name.casefold() for name in choice.include or ()}
    shown = [
        c for c in table.columns if choice.hidden or not c.hidden or c.name.casefold() in named
    ]
    chosen = [c for c in shown if c.name.casefold() in required or choice.includes(c.name)]
    unreadable = tuple(column for column in chosen if not is_supported(column.type))
    if unreadable:
        report_left_out(table.name, unreadable)
    return tuple((c.name, choice.choose_type(c)) for c in chosen if is_supported(c.type))


def check_key(table: Table, key: Collection[str]) -> None:
    """Raises NotWatchableError when a column of the key cannot be decoded."""
    for column in table.columns:
        if column.name.casefold() in key and not is_supported(column.type):
            raise NotWatchableError(
                f"the key column {table.name}.{column.name} has type"
                f" {render_full_type(column.type)}, which cannot be read; the table cannot be"
                " watched"
            )


def check_choice(table: Table, choice: ColumnChoice, required: Collection[str]) -> None:
    """Raises ConfigurationError for a name in the choice that cannot be used."""
    for name in (*(choice.include or ()), *choice.exclude, *choice.texts):
        if table.column(name) is None:
            raise explain_unknown_column(table, name)
    for name in choice.include or ():
        column = table.column(name)
        if column is not None and not is_supported(column.type):
            raise ConfigurationError(
                f"column {table.name}.{column.name} has type"
                f" {render_full_type(column.type)}, which cannot be read; remove it from columns"
            )
    for name in choice.texts:
        column = table.column(name)
        if column is not None and TypeCode.PG_NUMERIC not in list_codes(column.type):
            raise ConfigurationError(
                f"column {table.name}.{column.name} has type {render_full_type(column.type)}: only"
                " numerics of the PostgreSQL dialect are read as text; remove it from text_columns"
            )
    for name in choice.exclude:
        if name.casefold() in required:
            raise ConfigurationError(
                f"column {table.name}.{name} is always read: it is part of the key, the commit"
                " timestamp, or says what a change is; remove it from exclude_columns"
            )


def choose_masks(
    table: Table,
    choice: ColumnChoice,
    read: Collection[str],
    always: Collection[str],
    dialect: Dialect,
) -> tuple[Mask, ...]:
    """The masks of a table's columns, as the schema spells them. ``read`` are the columns that are
    read, ``always`` those that are in any case, besides the key. Raises ConfigurationError for a
    column that does not exist, must be delivered as it is, or cannot be masked so; and for one that
    is computed from a masked column, and would show it."""
    required = {part.column.casefold() for part in table.primary_key}
    required |= {name.casefold() for name in always}
    masks: dict[str, Mask] = {}
    for mask in choice.masks:
        column = table.column(mask.column)
        if column is None:
            raise explain_unknown_column(table, mask.column)
        name = f"{table.name}.{column.name}"
        if column.name.casefold() in required:
            raise ConfigurationError(
                f"column {name} cannot be masked: it is part of the key, the commit timestamp, the"
                " shard, or says what a change is; mask other columns, or do not watch the table"
            )
        if not fits(mask.kind, column.type):
            raise ConfigurationError(
                f"column {name} has type {render_full_type(column.type)}, which '{mask.kind}' does"
                f" not mask: use '{MaskKind.NULL}', or exclude_columns"
            )
        masks[column.name] = replace(mask, column=column.name)
    check_computed(table, masks, required | {name.casefold() for name in read}, dialect)
    return tuple(masks.values())


def check_computed(
    table: Table, masks: Collection[str], shown: Collection[str], dialect: Dialect
) -> None:
    """Raises ConfigurationError for a column that would show what is masked: it is computed from
    it, perhaps through other columns. ``shown`` are the columns that are delivered, in small
    letters."""
    for column in table.columns:
        if column.name in masks or column.name.casefold() not in shown:
            continue
        for source in find_sources(column, table, dialect):
            if source in masks:
                raise ConfigurationError(
                    f"column {table.name}.{column.name} is computed from {source}, which is masked:"
                    " mask it, too, or add it to exclude_columns"
                )


def list_codes(type_: Type) -> tuple[TypeCode, ...]:
    """The code of a type, and that of an array's elements."""
    return (type_.code, *(list_codes(type_.element) if type_.element is not None else ()))


def explain_unknown_column(table: Table, name: str) -> ConfigurationError:
    """The error for a column that does not exist, with the most similar one that does."""
    names = {column.name.casefold(): column.name for column in table.columns}
    near = difflib.get_close_matches(name.casefold(), names, n=1, cutoff=0.5)
    hint = f"did you mean '{names[near[0]]}'?" if near else f"it has: {', '.join(names.values())}"
    return ConfigurationError(f"table {table.name} has no column '{name}'; {hint}")


def render_full_type(type_: Type) -> str:
    """A type as messages show it: PROTO<a.b.C>."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return f"ARRAY<{render_full_type(type_.element)}>"
    if type_.code in (TypeCode.PROTO, TypeCode.ENUM):
        return f"{type_.code.value}<{type_.proto_name}>"
    only_postgres = COLUMN_TYPES[type_.code].googlesql is None
    dialect = Dialect.POSTGRESQL if only_postgres else Dialect.GOOGLESQL
    return type_.proto_name or render_type(type_, dialect)


@lru_cache(maxsize=1024)
def report_left_out(table: str, columns: tuple[Column, ...]) -> None:
    """Logs once for each table and process, and again when its columns change: the schema is read
    many times."""
    names = ", ".join(column.name for column in columns)
    types = ", ".join(dict.fromkeys(render_full_type(column.type) for column in columns))
    COLUMNS_LEFT_OUT.log(LOG, table=table, columns=names, types=types)
