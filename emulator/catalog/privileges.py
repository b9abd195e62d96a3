"""What information_schema tells of privileges in both dialects: rows by the names of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emulator.values.system_tables import VIEWS, Row
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import Grant, Schema
from spanner_schema.syntax.grants import CHANGE_STREAM, FUNCTION, ROLE, TABLE, VIEW

Fields = dict[str, object]
Split = Callable[[str], tuple[str, str]]
"""A name as schema and object; a dialect may have a name for the schema without one."""


def grants_of(schema: Schema, *kinds: str) -> Iterator[Grant]:
    """The privileges on some kinds of objects."""
    return (grant for grant in schema.grants if grant.kind in kinds)


def grant_fields(grant: Grant) -> Fields:
    """What all tables of privileges tell."""
    return {"grantee": grant.role, "privilege_type": grant.privilege, "is_grantable": "NO"}


def place_fields(kind: str, owner: str, name: str) -> Fields:
    """The columns that name an object: its catalog, its schema, and its name."""
    return {f"{kind}_catalog": "", f"{kind}_schema": owner, f"{kind}_name": name}


def role_grants(schema: Schema, _split: Split) -> Iterator[Fields]:
    """Which roles are members of which."""
    for grant in grants_of(schema, ROLE):
        yield {"grantee": grant.role, "role_name": grant.name, "is_grantable": "NO"}


def table_grants(schema: Schema, split: Split) -> Iterator[Fields]:
    """Privileges on whole tables and views."""
    for grant in grants_of(schema, TABLE, VIEW):
        if not grant.columns:
            yield place_fields("table", *split(grant.name)) | grant_fields(grant)


def column_grants(schema: Schema, split: Split) -> Iterator[Fields]:
    """Privileges on columns: those that are named, and all of a table's."""
    for grant in grants_of(schema, TABLE):
        table = schema.table(grant.name)
        everything = [column.name for column in table.columns] if table is not None else []
        for name in grant.columns or everything if grant.privilege != "DELETE" else ():
            place = place_fields("table", *split(grant.name)) | {"column_name": name}
            yield place | grant_fields(grant)


def stream_grants(schema: Schema, split: Split) -> Iterator[Fields]:
    """Privileges on change streams."""
    for grant in grants_of(schema, CHANGE_STREAM):
        yield place_fields("change_stream", *split(grant.name)) | grant_fields(grant)


def routine_grants(schema: Schema, split: Split) -> Iterator[Fields]:
    """Privileges on the read functions of change streams."""
    for grant in grants_of(schema, FUNCTION):
        yield routine_fields(*split(grant.name)) | grant_fields(grant)


def routine_fields(owner: str, name: str) -> Fields:
    """The columns that name a read function."""
    return place_fields("specific", owner, name) | place_fields("routine", owner, name)


PRIVILEGES: dict[str, Callable[[Schema, Split], Iterator[Fields]]] = {
    **dict.fromkeys(("TABLE_PRIVILEGES", "ROLE_TABLE_GRANTS"), table_grants),
    **dict.fromkeys(("COLUMN_PRIVILEGES", "ROLE_COLUMN_GRANTS"), column_grants),
    **dict.fromkeys(("CHANGE_STREAM_PRIVILEGES", "ROLE_CHANGE_STREAM_GRANTS"), stream_grants),
    **dict.fromkeys(("ROUTINE_PRIVILEGES", "ROLE_ROUTINE_GRANTS"), routine_grants),
}
"""The tables of both dialects."""


def fill_googlesql(
    view: str, fill: Callable[[Schema, Split], Iterator[Fields]]
) -> Callable[[Schema], Iterator[Row]]:
    """The rows of one of GoogleSQL's tables; what they do not tell is NULL."""
    names = [name.lower() for name, _ in VIEWS[f"INFORMATION_SCHEMA.{view}"]]

    def rows(schema: Schema) -> Iterator[Row]:
        for fields in fill(schema, split_name):
            yield tuple(fields.get(name) for name in names)

    return rows


GOOGLESQL_PRIVILEGES = {
    name: fill_googlesql(name, fill)
    for name, fill in {**PRIVILEGES, "ROLE_GRANTEES": role_grants}.items()
}
