"""The rows of information_schema in the PostgreSQL dialect.

What GoogleSQL's INFORMATION_SCHEMA has is taken from there, by the names of the columns: schemas
have a name (public), and a truth is YES or NO.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from emulator.catalog import constraints, objects, privileges, routines, tables
from emulator.catalog.pg_catalog import PG_CONTENTS, split_name
from emulator.catalog.privileges import Fields
from emulator.values.columns import View
from emulator.values.postgres_tables import POSTGRES_VIEWS
from emulator.values.system_tables import VIEWS, Row
from emulator.values.types import BOOL
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Column, Dialect, Schema, Table
from spanner_schema.syntax import sequences
from spanner_schema.syntax.placements import list_read_functions
from spanner_schema.syntax.render import render_type
from spanner_schema.syntax.views import list_views, read_view

Fill = Callable[[Schema], Iterator[Row]]
PUBLIC = "public"
COMMIT_TIMESTAMP = "spanner.commit_timestamp"
SPANNER = "spanner"
"""The schema of the read functions of change streams."""
SYSTEM_TYPES = {TypeCode.PG_OID: "oid", TypeCode.STRUCT: "struct"}
OWNERS = ("public", "information_schema", "pg_catalog", "spanner_sys")


def spell(type_: Type) -> str:
    """A type as the dialect writes it; that of a system table may be none of its columns'."""
    if type_.element is not None and type_.vector_length is None:
        return f"{spell(type_.element)}[]"
    if type_.code in SYSTEM_TYPES:
        return SYSTEM_TYPES[type_.code]
    return render_type(type_, Dialect.POSTGRESQL)


def kind_of(type_: Type) -> str:
    """A type as the column data_type tells it."""
    return "ARRAY" if type_.element is not None else spell(Type(type_.code))


def adapted(name: str, fill: Fill) -> Callable[[Schema], Iterator[Fields]]:
    """The rows of one of GoogleSQL's tables, by their columns."""
    columns = VIEWS[f"INFORMATION_SCHEMA.{name}"]

    def rows(schema: Schema) -> Iterator[Fields]:
        for row in fill(schema):
            fields: Fields = {}
            for (column, type_), value in zip(columns, row, strict=True):
                shown = value
                if column.endswith("SCHEMA") or column == "SCHEMA_NAME":
                    shown = value or PUBLIC
                elif type_ == BOOL:
                    shown = tables.yes_or_no(bool(value))
                fields[column.lower()] = shown
            yield fields

    return rows


def schemata(schema: Schema) -> Iterator[Fields]:
    """The schemas."""
    for name in (*OWNERS, *schema.named_schemas):
        yield {"catalog_name": "", "schema_name": name}


def table_rows(schema: Schema) -> Iterator[Fields]:
    """User tables and views, then the system's."""
    for fields in adapted("TABLES", tables.tables)(schema):
        owner = str(fields["table_schema"])
        if owner in {"INFORMATION_SCHEMA", "SPANNER_SYS"}:
            continue
        table = owner_of(schema, owner, str(fields["table_name"]))
        policy = table.row_deletion_policy if table is not None else None
        if policy is not None:
            interval = policy.interval or f"{policy.days} days"
            rule = f"INTERVAL '{interval}' ON {policy.column}"
            fields["row_deletion_policy_expression"] = rule
        yield fields
    for view in POSTGRES_VIEWS:
        owner, name = view.lower().split(".")
        yield table_place(owner, name) | {"table_type": "VIEW"}


def table_place(owner: str, name: str) -> Fields:
    """The columns that name a table."""
    return {"table_catalog": "", "table_schema": owner, "table_name": name}


def column_rows(schema: Schema) -> Iterator[Fields]:
    """The columns of user tables, then those of the system's."""
    for table in schema.tables:
        for number, column in enumerate(table.columns, 1):
            yield table_place(*split_name(table.name)) | column_fields(column, number)
    for view, columns in POSTGRES_VIEWS.items():
        owner, name = view.lower().split(".")
        for number, (column_name, type_) in enumerate(columns, 1):
            row = column_fields(Column(column_name, type_), number)
            yield table_place(owner, name) | row | {"spanner_state": None}


def user_view_columns(user_views: Mapping[str, View]) -> Iterator[Row]:
    """The columns of the database's own views."""
    rows = (
        table_place(*split_name(name)) | column_fields(Column(column_name, type_), number)
        for name, listed in user_views.items()
        for number, (column_name, type_) in enumerate(listed, 1)
    )
    return in_order("INFORMATION_SCHEMA.COLUMNS", rows)


def column_fields(column: Column, number: int) -> Fields:
    """A row of columns, without the table."""
    type_, identity = column.type, column.identity
    generated = column.generated is not None
    fields: Fields = {
        "column_name": column.name,
        "ordinal_position": number,
        "column_default": column.default,
        "is_nullable": tables.yes_or_no(not column.not_null),
        "data_type": kind_of(type_),
        "character_maximum_length": type_.length if type_.code is TypeCode.STRING else None,
        "is_identity": tables.yes_or_no(identity is not None),
        "is_generated": "ALWAYS" if generated else "NEVER",
        "generation_expression": column.generated,
        "spanner_type": spanner_type(column),
        "is_stored": tables.yes_or_no(column.stored) if generated else None,
        "spanner_state": "COMMITTED",
        "is_hidden": tables.yes_or_no(column.hidden),
        "on_update_expression": column.on_update,
    }
    if type_.code in PRECISIONS:
        fields["numeric_precision"], fields["numeric_precision_radix"] = PRECISIONS[type_.code]
    if type_.code is TypeCode.INT64:
        fields["numeric_scale"] = 0
    if identity is not None:
        low, high = identity.skip_range or (None, None)
        fields |= {
            "identity_generation": "BY DEFAULT",
            "identity_kind": "BIT_REVERSED_POSITIVE_SEQUENCE",
            "identity_start_with_counter": text_of(identity.start_counter),
            "identity_skip_range_min": text_of(low),
            "identity_skip_range_max": text_of(high),
        }
    return fields


PRECISIONS = {TypeCode.INT64: (64, 2), TypeCode.FLOAT64: (53, 2), TypeCode.FLOAT32: (24, 2)}
"""numeric_precision and its radix."""


def text_of(number: int | None) -> str | None:
    """A number as text."""
    return None if number is None else str(number)


def index_rows(schema: Schema) -> Iterator[Fields]:
    """Primary keys and secondary indexes."""
    for fields in adapted("INDEXES", tables.indexes)(schema):
        if fields["filter"]:
            fields["is_null_filtered"] = "YES"
        yield fields


def spanner_type(column: Column) -> str:
    """The type of a column, as the dialect writes it."""
    return COMMIT_TIMESTAMP if column.allow_commit_timestamp else spell(column.type)


def owner_of(schema: Schema, owner: str, name: str) -> Table | None:
    """The table of a row."""
    return schema.table(name if owner == PUBLIC else f"{owner}.{name}")


def referential_constraints(schema: Schema) -> Iterator[Fields]:
    """What foreign keys refer to; there is no other match than of whole keys."""
    rows = adapted("REFERENTIAL_CONSTRAINTS", constraints.referential_constraints)
    for fields in rows(schema):
        yield fields | {"match_option": "NONE"}


def catalog_name(schema: Schema) -> Iterator[Fields]:
    """The catalog, which has no name here."""
    yield {"catalog_name": ""}


def view_rows(schema: Schema) -> Iterator[Fields]:
    """The database's own views."""
    for item in list_views(schema):
        view = read_view(item.text, schema.dialect)
        yield table_place(*split_name(item.name)) | {
            "view_definition": view.query,
            "security_type": view.security,
        }


def sequence_rows(schema: Schema) -> Iterator[Fields]:
    """The sequences; those of IDENTITY columns are not listed."""
    for name, sequence in sequences.read_sequences(schema).items():
        owner, last = split_name(name)
        yield {
            "sequence_catalog": "",
            "sequence_schema": owner,
            "sequence_name": last,
            "data_type": "bigint",
            "numeric_precision": 64,
            "numeric_precision_radix": 2,
            "numeric_scale": 0,
            "cycle_option": "NO",
            "sequence_kind": sequences.BIT_REVERSED,
            "counter_start_value": sequence.start_with_counter,
            "skip_range_min": sequence.skip_range_min,
            "skip_range_max": sequence.skip_range_max,
        }


def role_rows(schema: Schema) -> Iterator[Fields]:
    """The roles."""
    for name, system in routines.role_rows(schema):
        yield {"role_name": name, "spanner_is_system": tables.yes_or_no(bool(system))}


def split_routine(name: str) -> tuple[str, str]:
    """The name of a read function as schema and function."""
    return SPANNER, split_name(name)[1]


def grant_rows(
    fill: Callable[[Schema, privileges.Split], Iterator[Fields]],
) -> Callable[[Schema], Iterator[Fields]]:
    """The rows of a table of privileges."""
    split = split_routine if fill is privileges.routine_grants else split_name
    return lambda schema: fill(schema, split)


def routine_rows(schema: Schema) -> Iterator[Fields]:
    """The read functions of the change streams."""
    for function in list_read_functions(schema):
        yield privileges.routine_fields(*split_routine(function.write(Dialect.POSTGRESQL))) | {
            "routine_type": "FUNCTION",
            "routine_body": "EXTERNAL",
            "security_type": "INVOKER",
        }


READ_PARAMETERS = (
    ("start_timestamp", "timestamp with time zone"),
    ("end_timestamp", "timestamp with time zone"),
    ("partition_token", "character varying"),
    ("heartbeat_milliseconds", "bigint"),
    ("read_options", "character varying[]"),
)
"""What the read function of a change stream takes, in this order."""


def parameter_rows(schema: Schema) -> Iterator[Fields]:
    """The arguments of the read functions."""
    for function in list_read_functions(schema):
        for number, (name, kind) in enumerate(READ_PARAMETERS, start=1):
            yield privileges.routine_fields(*split_routine(function.write(Dialect.POSTGRESQL))) | {
                "ordinal_position": number,
                "parameter_mode": "IN",
                "is_result": "NO",
                "parameter_name": name,
                "data_type": "ARRAY" if kind.endswith("[]") else kind,
                "spanner_type": kind,
            }


def in_order(view: str, rows: Iterable[Fields]) -> Iterator[Row]:
    """Rows in the order of a table's columns; what they do not tell is NULL."""
    names = [name for name, _ in POSTGRES_VIEWS[view]]
    for fields in rows:
        yield tuple(fields.get(name) for name in names)


def fill_table(view: str, fill: Callable[[Schema], Iterator[Fields]]) -> Fill:
    """The rows of a table as tuples."""
    return lambda schema: in_order(view, fill(schema))


INFORMATION: dict[str, Callable[[Schema], Iterator[Fields]]] = {
    "SCHEMATA": schemata,
    "INFORMATION_SCHEMA_CATALOG_NAME": catalog_name,
    "DATABASE_OPTIONS": adapted("DATABASE_OPTIONS", tables.database_options),
    "TABLES": table_rows,
    "COLUMNS": column_rows,
    "INDEXES": index_rows,
    "INDEX_COLUMNS": adapted("INDEX_COLUMNS", partial(tables.index_columns, show=spanner_type)),
    "REFERENTIAL_CONSTRAINTS": referential_constraints,
    "VIEWS": view_rows,
    "SEQUENCES": sequence_rows,
    "ENABLED_ROLES": role_rows,
    "APPLICABLE_ROLES": grant_rows(privileges.role_grants),
    **{name: grant_rows(fill) for name, fill in privileges.PRIVILEGES.items()},
    "ROUTINES": routine_rows,
    "PARAMETERS": parameter_rows,
    **{
        name: adapted(name, fill)
        for name, fill in {
            "TABLE_CONSTRAINTS": constraints.table_constraints,
            "KEY_COLUMN_USAGE": constraints.key_column_usage,
            "CONSTRAINT_TABLE_USAGE": constraints.constraint_table_usage,
            "CONSTRAINT_COLUMN_USAGE": constraints.constraint_column_usage,
            "CHECK_CONSTRAINTS": constraints.check_constraints,
            "COLUMN_COLUMN_USAGE": routines.column_column_usage,
            "LOCALITY_GROUP_OPTIONS": objects.locality_group_option_rows,
            "SPANNER_STATISTICS": objects.statistics_rows,
            "PLACEMENTS": objects.placement_rows,
            "PLACEMENT_OPTIONS": objects.placement_option_rows,
            "CHANGE_STREAMS": objects.change_streams,
            "CHANGE_STREAM_OPTIONS": objects.change_stream_options,
            "CHANGE_STREAM_TABLES": objects.change_stream_tables,
            "CHANGE_STREAM_COLUMNS": objects.change_stream_columns,
        }.items()
    },
}
POSTGRES_CONTENTS: dict[str, Fill] = {
    f"{owner}.{name}": fill_table(f"{owner}.{name}", fill)
    for owner, contents in (("INFORMATION_SCHEMA", INFORMATION), ("PG_CATALOG", PG_CONTENTS))
    for name, fill in contents.items()
}
