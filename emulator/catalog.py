"""INFORMATION_SCHEMA: what a schema says of itself, as tables of an SQLite in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import apsw

from ddl import sequences, views
from ddl.references import columns_in
from ddl.render import type_text
from ddl.schema import Column, Index, Schema, Table, Type, TypeCode
from emulator import errors
from emulator.sql.functions import register
from emulator.sql.types import BOOL, FLOAT64, INT64, STRING, TIMESTAMP, quote_name

Row = tuple[object, ...]
View = tuple[tuple[str, Type], ...]


def view(text: str) -> View:
    """Columns of a view from 'NAME TYPE, ...'; S is STRING, I INT64, B BOOL, and so on."""
    types = {
        "S": STRING,
        "I": INT64,
        "B": BOOL,
        "Y": Type(TypeCode.BYTES),
        "F": FLOAT64,
        "T": TIMESTAMP,
    }
    pairs = (each.split() for each in text.split(","))
    return tuple((name, types[code]) for name, code in pairs)


QUERY_STATS = view(
    "INTERVAL_END T, REQUEST_TAG S, QUERY_TYPE S, TEXT S, TEXT_TRUNCATED B, TEXT_FINGERPRINT I,"
    " EXECUTION_COUNT I, AVG_LATENCY_SECONDS F, AVG_ROWS F, AVG_ROWS_SCANNED F,"
    " AVG_CPU_SECONDS F, ALL_FAILED_EXECUTION_COUNT I, ALL_FAILED_AVG_LATENCY_SECONDS F,"
    " RUN_IN_RW_TRANSACTION_EXECUTION_COUNT I"
)

VIEWS: dict[str, View] = {
    "SPANNER_SYS.QUERY_STATS_TOP_MINUTE": QUERY_STATS,
    "SPANNER_SYS.QUERY_STATS_TOP_10MINUTE": QUERY_STATS,
    "SPANNER_SYS.QUERY_STATS_TOP_HOUR": QUERY_STATS,
    "INFORMATION_SCHEMA.SCHEMATA": view(
        "CATALOG_NAME S, SCHEMA_NAME S, SCHEMA_OWNER S, PROTO_BUNDLE Y"
    ),
    "INFORMATION_SCHEMA.DATABASE_OPTIONS": view(
        "CATALOG_NAME S, SCHEMA_NAME S, OPTION_NAME S, OPTION_TYPE S, OPTION_VALUE S"
    ),
    "INFORMATION_SCHEMA.TABLES": view(
        "TABLE_CATALOG S, TABLE_SCHEMA S, TABLE_NAME S, TABLE_TYPE S, PARENT_TABLE_NAME S,"
        " ON_DELETE_ACTION S, SPANNER_STATE S, INTERLEAVE_TYPE S, ROW_DELETION_POLICY_EXPRESSION S"
    ),
    "INFORMATION_SCHEMA.COLUMNS": view(
        "TABLE_CATALOG S, TABLE_SCHEMA S, TABLE_NAME S, COLUMN_NAME S, ORDINAL_POSITION I,"
        " COLUMN_DEFAULT S, DATA_TYPE S, IS_NULLABLE S, SPANNER_TYPE S, IS_GENERATED S,"
        " GENERATION_EXPRESSION S, IS_STORED S, IS_HIDDEN B, SPANNER_STATE S, IS_IDENTITY S,"
        " IDENTITY_GENERATION S, IDENTITY_KIND S, IDENTITY_START_WITH_COUNTER S,"
        " IDENTITY_SKIP_RANGE_MIN S, IDENTITY_SKIP_RANGE_MAX S, ON_UPDATE_EXPRESSION S"
    ),
    "INFORMATION_SCHEMA.COLUMN_OPTIONS": view(
        "TABLE_CATALOG S, TABLE_SCHEMA S, TABLE_NAME S, COLUMN_NAME S, OPTION_NAME S,"
        " OPTION_TYPE S, OPTION_VALUE S"
    ),
    "INFORMATION_SCHEMA.INDEXES": view(
        "TABLE_CATALOG S, TABLE_SCHEMA S, TABLE_NAME S, INDEX_NAME S, INDEX_TYPE S,"
        " PARENT_TABLE_NAME S, IS_UNIQUE B, IS_NULL_FILTERED B, INDEX_STATE S,"
        " SPANNER_IS_MANAGED B, FILTER S"
    ),
    "INFORMATION_SCHEMA.INDEX_COLUMNS": view(
        "TABLE_CATALOG S, TABLE_SCHEMA S, TABLE_NAME S, INDEX_NAME S, INDEX_TYPE S,"
        " COLUMN_NAME S, ORDINAL_POSITION I, COLUMN_ORDERING S, IS_NULLABLE S, SPANNER_TYPE S"
    ),
    "INFORMATION_SCHEMA.TABLE_CONSTRAINTS": view(
        "CONSTRAINT_CATALOG S, CONSTRAINT_SCHEMA S, CONSTRAINT_NAME S, TABLE_CATALOG S,"
        " TABLE_SCHEMA S, TABLE_NAME S, CONSTRAINT_TYPE S, IS_DEFERRABLE S,"
        " INITIALLY_DEFERRED S, ENFORCED S"
    ),
    "INFORMATION_SCHEMA.KEY_COLUMN_USAGE": view(
        "CONSTRAINT_CATALOG S, CONSTRAINT_SCHEMA S, CONSTRAINT_NAME S, TABLE_CATALOG S,"
        " TABLE_SCHEMA S, TABLE_NAME S, COLUMN_NAME S, ORDINAL_POSITION I,"
        " POSITION_IN_UNIQUE_CONSTRAINT I"
    ),
    "INFORMATION_SCHEMA.CONSTRAINT_TABLE_USAGE": view(
        "TABLE_CATALOG S, TABLE_SCHEMA S, TABLE_NAME S, CONSTRAINT_CATALOG S,"
        " CONSTRAINT_SCHEMA S, CONSTRAINT_NAME S"
    ),
    "INFORMATION_SCHEMA.CONSTRAINT_COLUMN_USAGE": view(
        "TABLE_CATALOG S, TABLE_SCHEMA S, TABLE_NAME S, COLUMN_NAME S, CONSTRAINT_CATALOG S,"
        " CONSTRAINT_SCHEMA S, CONSTRAINT_NAME S"
    ),
    "INFORMATION_SCHEMA.CHECK_CONSTRAINTS": view(
        "CONSTRAINT_CATALOG S, CONSTRAINT_SCHEMA S, CONSTRAINT_NAME S, CHECK_CLAUSE S,"
        " SPANNER_STATE S"
    ),
    "INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS": view(
        "CONSTRAINT_CATALOG S, CONSTRAINT_SCHEMA S, CONSTRAINT_NAME S,"
        " UNIQUE_CONSTRAINT_CATALOG S, UNIQUE_CONSTRAINT_SCHEMA S, UNIQUE_CONSTRAINT_NAME S,"
        " MATCH_OPTION S, UPDATE_RULE S, DELETE_RULE S, SPANNER_STATE S"
    ),
    "INFORMATION_SCHEMA.VIEWS": view(
        "TABLE_CATALOG S, TABLE_SCHEMA S, TABLE_NAME S, VIEW_DEFINITION S, SECURITY_TYPE S"
    ),
    "INFORMATION_SCHEMA.SEQUENCES": view("CATALOG S, SCHEMA S, NAME S, DATA_TYPE S"),
    "INFORMATION_SCHEMA.SEQUENCE_OPTIONS": view(
        "CATALOG S, SCHEMA S, NAME S, OPTION_NAME S, OPTION_TYPE S, OPTION_VALUE S"
    ),
    "INFORMATION_SCHEMA.CHANGE_STREAMS": view(
        "CHANGE_STREAM_CATALOG S, CHANGE_STREAM_SCHEMA S, CHANGE_STREAM_NAME S, ALL B"
    ),
    "INFORMATION_SCHEMA.CHANGE_STREAM_OPTIONS": view(
        "CHANGE_STREAM_CATALOG S, CHANGE_STREAM_SCHEMA S, CHANGE_STREAM_NAME S, OPTION_NAME S,"
        " OPTION_TYPE S, OPTION_VALUE S"
    ),
    "INFORMATION_SCHEMA.CHANGE_STREAM_TABLES": view(
        "CHANGE_STREAM_CATALOG S, CHANGE_STREAM_SCHEMA S, CHANGE_STREAM_NAME S, TABLE_CATALOG S,"
        " TABLE_SCHEMA S, TABLE_NAME S, ALL_COLUMNS B"
    ),
    "INFORMATION_SCHEMA.CHANGE_STREAM_COLUMNS": view(
        "CHANGE_STREAM_CATALOG S, CHANGE_STREAM_SCHEMA S, CHANGE_STREAM_NAME S, TABLE_CATALOG S,"
        " TABLE_SCHEMA S, TABLE_NAME S, COLUMN_NAME S"
    ),
}


def connection(
    schema: Schema,
    wanted: Sequence[str],
    user_views: Mapping[str, View] | None = None,
    system: Callable[[str], Iterable[Row]] | None = None,
) -> apsw.Connection:
    """A new SQLite in memory that holds these views, filled.

    ``user_views`` are the columns of the database's own views, by their names. ``system`` gives
    the rows of a table of SPANNER_SYS.
    """
    database = apsw.Connection(":memory:")
    register(database)
    for name in wanted:
        columns = VIEWS[name]
        listed = ", ".join(quote_name(column) for column, _ in columns)
        database.execute(f"CREATE TABLE {quote_name(name)} ({listed})")
        if name in CONTENTS:
            found = list(CONTENTS[name](schema))
        elif system is not None and name.startswith("SPANNER_SYS."):
            found = list(system(name))
        else:
            raise errors.unimplemented(name)
        marks = ", ".join("?" * len(columns))
        database.executemany(f"INSERT INTO {quote_name(name)} VALUES ({marks})", found)
        if name == "INFORMATION_SCHEMA.COLUMNS":
            rows = list(user_view_columns(user_views or {}))
            database.executemany(f"INSERT INTO {quote_name(name)} VALUES ({marks})", rows)
    return database


def split(name: str) -> tuple[str, str]:
    """A name as named schema and object."""
    schema, _, last = name.rpartition(".")
    return schema, last


def yes(value: bool) -> str:
    """YES or NO."""
    return "YES" if value else "NO"


def schemata(schema: Schema) -> Iterator[Row]:
    """The default schema, INFORMATION_SCHEMA, SPANNER_SYS and the named ones."""
    for name in ("", "INFORMATION_SCHEMA", "SPANNER_SYS", *schema.named_schemas):
        yield "", name, None, None


def database_options(schema: Schema) -> Iterator[Row]:
    """database_dialect and what ALTER DATABASE set."""
    dialect = {"googlesql": "GOOGLE_STANDARD_SQL"}.get(schema.dialect.value, "POSTGRESQL")
    yield "", "", "database_dialect", "STRING", dialect
    for name, value in schema.options.items():
        yield "", "", name, "STRING", value.strip("'\"")


def tables(schema: Schema) -> Iterator[Row]:
    """User tables, then the views of INFORMATION_SCHEMA."""
    for table in schema.tables:
        owner, name = split(table.name)
        parent, action, kind = None, None, None
        if table.interleave is not None:
            parent = split(table.interleave.parent)[1]
            kind = "IN PARENT" if table.interleave.enforced else "IN"
            action = table.interleave.on_delete.value if table.interleave.enforced else None
        policy = table.row_deletion_policy
        rule = f"OLDER_THAN({policy.column}, INTERVAL {policy.days} DAY)" if policy else None
        yield "", owner, name, "BASE TABLE", parent, action, "COMMITTED", kind, rule
    for item in schema.verbatim:
        if item.kind == "VIEW":
            yield "", *split(item.name), "VIEW", None, None, None, None, None
    for name in VIEWS:
        yield "", *split(name), "VIEW", None, None, None, None, None


def columns(schema: Schema) -> Iterator[Row]:
    """The columns of user tables, then those of the views."""
    for table in schema.tables:
        for number, column in enumerate(table.columns, 1):
            yield "", *split(table.name), *column_row(column, number)
    for name, listed in VIEWS.items():
        for number, (column_name, type_) in enumerate(listed, 1):
            column = Column(column_name, type_)
            row = column_row(column, number)
            yield "", *name.split(".", maxsplit=1), *row[:10], None, *row[11:]


def user_view_columns(user_views: Mapping[str, View]) -> Iterator[Row]:
    """The columns of the database's own views."""
    for name, listed in user_views.items():
        for number, (column_name, type_) in enumerate(listed, 1):
            yield "", *split(name), *column_row(Column(column_name, type_), number)


def column_row(column: Column, number: int) -> Row:
    """What COLUMNS says of a column, from its name on."""
    identity = column.identity
    skip = identity.skip_range if identity and identity.skip_range else (None, None)
    start = identity.start_counter if identity else None
    return (
        column.name,
        number,
        column.default,
        None,
        yes(not column.not_null),
        type_text(column.type),
        "ALWAYS" if column.generated is not None else "NEVER",
        column.generated,
        yes(column.stored) if column.generated is not None else None,
        int(column.hidden),
        "COMMITTED",
        yes(identity is not None),
        "BY DEFAULT" if identity else None,
        "BIT_REVERSED_POSITIVE_SEQUENCE" if identity else None,
        None if start is None else str(start),
        None if skip[0] is None else str(skip[0]),
        None if skip[1] is None else str(skip[1]),
        column.on_update,
    )


def column_options(schema: Schema) -> Iterator[Row]:
    """allow_commit_timestamp and other options."""
    for table in schema.tables:
        for column in table.columns:
            where = ("", *split(table.name), column.name)
            if column.allow_commit_timestamp:
                yield *where, "allow_commit_timestamp", "BOOL", "TRUE"
            for name, value in column.options:
                yield *where, name, "STRING", value.strip("'\"")


def primary_key(table: Table) -> Index:
    """The primary key as an index."""
    return Index("PRIMARY_KEY", table.name, table.primary_key, unique=True)


def all_indexes(schema: Schema) -> Iterator[tuple[Table, Index, str]]:
    """Every index with its table and INDEX_TYPE, the primary keys first."""
    for table in schema.tables:
        yield table, primary_key(table), "PRIMARY_KEY"
    for index in schema.indexes:
        found = schema.table(index.table)
        if found is not None:
            yield found, index, "INDEX"


def indexes(schema: Schema) -> Iterator[Row]:
    """Primary keys and secondary indexes."""
    for table, index, kind in all_indexes(schema):
        state = "READ_WRITE" if kind == "INDEX" else None
        where = " AND ".join(f"{name} IS NOT NULL" for name in index.where_not_null) or None
        yield (
            "",
            *split(table.name),
            split(index.name)[1],
            kind,
            split(index.interleave_in)[1] if index.interleave_in else "",
            int(index.unique),
            int(index.null_filtered),
            state,
            0,
            where,
        )


def index_columns(schema: Schema) -> Iterator[Row]:
    """Key parts with their order; stored columns have none."""
    for table, index, kind in all_indexes(schema):
        parts = [
            (p.column, n, "DESC" if p.descending else "ASC") for n, p in enumerate(index.parts, 1)
        ]
        stored = [(name, None, None) for name in index.storing]
        for name, number, order in [*parts, *stored]:
            column = table.column(name)
            if column is None:
                continue
            filtered = index.null_filtered or name in index.where_not_null
            nullable = yes(not column.not_null and not (filtered and number is not None))
            yield (
                "",
                *split(table.name),
                split(index.name)[1],
                kind,
                column.name,
                number,
                order,
                nullable,
                type_text(column.type),
            )


def constraint_rows(schema: Schema) -> Iterator[tuple[Table, str, str, tuple[str, ...]]]:
    """Table, name, type and columns of every constraint that has columns."""
    for table in schema.tables:
        last = split(table.name)[1]
        keys = tuple(part.column for part in table.primary_key)
        yield table, f"PK_{last}", "PRIMARY KEY", keys
        for number, key in enumerate(table.foreign_keys, 1):
            name = key.name or f"FK_{last}_{split(key.referenced_table)[1]}_{number}"
            yield table, name, "FOREIGN KEY", key.columns


def check_rows(schema: Schema) -> Iterator[tuple[Table, str, str]]:
    """Table, name and clause of every CHECK; NOT NULL is one, as in Spanner."""
    for table in schema.tables:
        last = split(table.name)[1]
        for number, check in enumerate(table.checks, 1):
            yield table, check.name or f"CK_{last}_{number}", check.expression
        for column in table.columns:
            if column.not_null:
                yield table, f"CK_IS_NOT_NULL_{last}_{column.name}", f"{column.name} IS NOT NULL"


def table_constraints(schema: Schema) -> Iterator[Row]:
    """PRIMARY KEY, FOREIGN KEY and CHECK."""
    found = [(table, name, kind) for table, name, kind, _ in constraint_rows(schema)]
    found += [(table, name, "CHECK") for table, name, _ in check_rows(schema)]
    for table, name, kind in found:
        owner = split(table.name)
        yield "", owner[0], name, "", *owner, kind, "NO", "NO", "YES"


def key_column_usage(schema: Schema) -> Iterator[Row]:
    """The columns of primary and foreign keys."""
    for table, name, kind, listed in constraint_rows(schema):
        owner = split(table.name)
        for number, column in enumerate(listed, 1):
            position = number if kind == "FOREIGN KEY" else None
            yield "", owner[0], name, "", *owner, column, number, position


def usages(schema: Schema) -> Iterator[tuple[Table, str, Table, tuple[str, ...]]]:
    """Table and name of every constraint, with the table and columns that it speaks of."""
    for table, name, kind, listed in constraint_rows(schema):
        if kind == "PRIMARY KEY":
            yield table, name, table, listed
    for table in schema.tables:
        for number, key in enumerate(table.foreign_keys, 1):
            target = schema.table(key.referenced_table)
            if target is not None:
                last = split(table.name)[1]
                name = key.name or f"FK_{last}_{split(target.name)[1]}_{number}"
                yield table, name, target, key.referenced_columns
    for table, name, clause in check_rows(schema):
        yield table, name, table, columns_in(clause, table)


def constraint_table_usage(schema: Schema) -> Iterator[Row]:
    """The tables that constraints speak of."""
    for table, name, target, _ in usages(schema):
        yield "", *split(target.name), "", split(table.name)[0], name


def constraint_column_usage(schema: Schema) -> Iterator[Row]:
    """The columns that constraints speak of."""
    for table, name, target, listed in usages(schema):
        for column in listed:
            yield "", *split(target.name), column, "", split(table.name)[0], name


def check_constraints(schema: Schema) -> Iterator[Row]:
    """The clauses of CHECK."""
    for table, name, clause in check_rows(schema):
        yield "", split(table.name)[0], name, clause, "COMMITTED"


def referential_constraints(schema: Schema) -> Iterator[Row]:
    """What foreign keys refer to."""
    for table in schema.tables:
        for number, key in enumerate(table.foreign_keys, 1):
            target = split(key.referenced_table)
            name = key.name or f"FK_{split(table.name)[1]}_{target[1]}_{number}"
            yield (
                "",
                split(table.name)[0],
                name,
                "",
                target[0],
                f"PK_{target[1]}",
                "SIMPLE",
                "NO ACTION",
                key.on_delete.value,
                "COMMITTED",
            )


def view_rows(schema: Schema) -> Iterator[Row]:
    """The database's own views."""
    for item in views.views(schema):
        read = views.read_view(item.text)
        yield "", *split(item.name), read.query, read.security


def sequence_rows(schema: Schema) -> Iterator[Row]:
    """The sequences; those of IDENTITY columns are not told."""
    for item in schema.verbatim:
        if item.kind == sequences.KIND:
            yield "", *split(item.name), "INT64"


def sequence_option_rows(schema: Schema) -> Iterator[Row]:
    """What is set of each sequence."""
    for item in schema.verbatim:
        if item.kind == sequences.KIND:
            for name, value in sequences.read_sequence(item.text).options().items():
                kind = "STRING" if name == "sequence_kind" else "INT64"
                yield "", *split(item.name), name, kind, value.strip("'")


def change_streams(schema: Schema) -> Iterator[Row]:
    """The change streams."""
    for stream in schema.change_streams:
        yield "", *split(stream.name), int(stream.for_all)


def change_stream_options(schema: Schema) -> Iterator[Row]:
    """Their options."""
    for stream in schema.change_streams:
        for name, value in stream.options:
            yield "", *split(stream.name), name, "STRING", value.strip("'\"")


def change_stream_tables(schema: Schema) -> Iterator[Row]:
    """The tables that they watch by name."""
    for stream in schema.change_streams:
        for watched in stream.watches:
            whole = int(watched.columns is None)
            yield "", *split(stream.name), "", *split(watched.table), whole


def change_stream_columns(schema: Schema) -> Iterator[Row]:
    """The columns that they watch by name."""
    for stream in schema.change_streams:
        for watched in stream.watches:
            for column in watched.columns or ():
                yield "", *split(stream.name), "", *split(watched.table), column


CONTENTS: dict[str, Callable[[Schema], Iterator[Row]]] = {
    f"INFORMATION_SCHEMA.{name}": fill
    for name, fill in {
        "SCHEMATA": schemata,
        "DATABASE_OPTIONS": database_options,
        "TABLES": tables,
        "COLUMNS": columns,
        "COLUMN_OPTIONS": column_options,
        "INDEXES": indexes,
        "INDEX_COLUMNS": index_columns,
        "TABLE_CONSTRAINTS": table_constraints,
        "KEY_COLUMN_USAGE": key_column_usage,
        "CONSTRAINT_TABLE_USAGE": constraint_table_usage,
        "CONSTRAINT_COLUMN_USAGE": constraint_column_usage,
        "CHECK_CONSTRAINTS": check_constraints,
        "REFERENTIAL_CONSTRAINTS": referential_constraints,
        "VIEWS": view_rows,
        "SEQUENCES": sequence_rows,
        "SEQUENCE_OPTIONS": sequence_option_rows,
        "CHANGE_STREAMS": change_streams,
        "CHANGE_STREAM_OPTIONS": change_stream_options,
        "CHANGE_STREAM_TABLES": change_stream_tables,
        "CHANGE_STREAM_COLUMNS": change_stream_columns,
    }.items()
}
