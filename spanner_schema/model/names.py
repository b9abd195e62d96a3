"""Names in a schema: compared without regard to case, looked up, and checked to be free."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from spanner_schema.model.errors import DuplicateNameError, MissingObjectError, NameNotFoundError
from spanner_schema.model.schema import Column, Dialect, Schema, Table
from spanner_schema.model.suggestions import suggest_name

NAME_LENGTH_MAX = {Dialect.GOOGLESQL: 128, Dialect.POSTGRESQL: 63}
"""In bytes. PostgreSQL's parser cuts longer names off, without an error."""
TABLE_NAME_CHARACTERS_MAX = 2 * NAME_LENGTH_MAX[Dialect.GOOGLESQL] + 1
"""Of a table in a named schema: both names, and the dot between them."""
DEFAULT_SCHEMA = "public"
"""How the PostgreSQL dialect calls the schema of the objects that are in no named one."""
OWN_PREFIXES = ("SpannerWatcher",)
"""Tables with these prefixes keep the product's own state: nobody is shown them, and a glob never
selects them."""


def same_name(left: str, right: str) -> bool:
    """True when Spanner takes two names for one: it ignores case."""
    return left.casefold() == right.casefold()


def split_name(name: str) -> tuple[str, str]:
    """The named schema of an object, empty for the default one, and its name in it."""
    schema, _, last = name.rpartition(".")
    return schema, last


def join_name(schema: str | None, name: str) -> str:
    """The name of an object by its named schema, if any, and its name in it."""
    return f"{schema}.{name}" if schema else name


def drop_default_schema(name: str) -> str:
    """A name without ``public.``, as the PostgreSQL dialect may write the default schema. Spanner:
    no named schema of either dialect is called so."""
    schema, last = split_name(name)
    return last if same_name(schema, DEFAULT_SCHEMA) else name


def require_table(schema: Schema, name: str) -> Table:
    """The table of this name. Raises NameNotFoundError."""
    table = schema.table(name)
    if table is None:
        raise NameNotFoundError("Table", name)
    return table


def require_column(table: Table, name: str) -> Column:
    """The column of this name. Raises NameNotFoundError."""
    column = table.column(name)
    if column is None:
        raise NameNotFoundError("Column", name, table.name)
    return column


def check_name_is_free(schema: Schema, name: str) -> None:
    """Raises DuplicateNameError: tables, indexes, change streams and views share their names."""
    lookups = (schema.find_table, schema.index, schema.change_stream)
    if any(look_up(name) for look_up in lookups) or any(
        same_name(item.name, name) for item in schema.verbatim if item.kind != "ROLE"
    ):
        raise DuplicateNameError("Object", name)


def is_own_table(name: str) -> bool:
    """True for a table, perhaps of a named schema, in which the product keeps its own state."""
    return split_name(name)[1].startswith(OWN_PREFIXES)


def list_user_tables(schema: Schema) -> list[str]:
    """The names of the tables without those of the product's own."""
    return [table.name for table in schema.tables if not is_own_table(table.name)]


def find_named_table(schema: Schema, name: str) -> Table:
    """The table that a user names. Raises MissingObjectError, with what may be meant."""
    table = schema.table(name)
    if table is None:
        raise make_unknown_table_error(schema, name)
    return table


def make_unknown_table_error(schema: Schema, name: str) -> MissingObjectError:
    """The error for a table that the user named and the schema does not have."""
    advice = suggest_name(name, list_user_tables(schema), "the tables are")
    return MissingObjectError(f"table {name} does not exist; {advice}")


def list_names(schema: Schema) -> Iterator[str]:
    """The names that a new object must not have."""
    for items in (schema.tables, schema.indexes, schema.change_streams, schema.verbatim):
        yield from (item.name for item in items)


def is_taken(schema: Schema, name: str) -> bool:
    """True when the schema has an object of this name."""
    return any(same_name(taken, name) for taken in list_names(schema))


def choose_free_column(table: Table, name: str) -> str:
    """The name of a new column: with the first number that no column of the table has."""
    return next(
        free for free in (f"{name}{number}" for number in count(2)) if table.column(free) is None
    )


def choose_free_name(schema: Schema, owner: str, suffix: str) -> str:
    """The name of a new object of the table ``owner``: that name and the suffix, else with the
    first number that makes it free. It stands in the same named schema, and is never too long."""
    named_schema, last = split_name(owner)
    length_max = NAME_LENGTH_MAX[schema.dialect]
    numbers = (str(number) if number > 1 else "" for number in count(1))
    for end in (suffix + number for number in numbers):
        short = last.encode()[: length_max - len(end)].decode(errors="ignore")
        name = join_name(named_schema, short + end)
        if not is_taken(schema, name):
            break
    return name
