"""What a database role may do: fine-grained access control, by the grants of the schema.

Source: Spanner's documentation, "Fine-grained access control privileges" and "system roles". Not
judged: sequences and models.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from emulator.errors import SpannerError, permission_denied
from emulator.sql.statements import CompiledQuery, Delete, Insert, Statement
from emulator.values.requests import KeyDelete, Mutation, MutationKind
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import Grant, KeyPart, Schema, Table
from spanner_schema.syntax.grants import (
    CHANGE_STREAM,
    DELETE,
    EXECUTE,
    FUNCTION,
    INFO_READER,
    INSERT,
    PUBLIC,
    ROLE,
    SCHEMA,
    SELECT,
    SYS_READER,
    SYSTEM_ROLES,
    TABLE,
    UPDATE,
    USAGE,
    VIEW,
)
from spanner_schema.syntax.views import find_view, list_views

SYSTEM = "SPANNER_SYS."
TABLE_KINDS = {TABLE, VIEW}
IN_SCHEMA = {"ALL TABLES IN SCHEMA": TABLE, "ALL VIEWS IN SCHEMA": TABLE}
IN_SCHEMA["ALL CHANGE STREAMS IN SCHEMA"] = CHANGE_STREAM
EVERY_COLUMN: frozenset[str] = frozenset({"*"})
"""No column is called so."""
MUTATION_PRIVILEGES = {
    MutationKind.INSERT: (INSERT,),
    MutationKind.UPDATE: (UPDATE,),
    MutationKind.INSERT_OR_UPDATE: (INSERT, UPDATE),
    MutationKind.REPLACE: (INSERT, UPDATE, DELETE),
}
MODE_PRIVILEGES = {"insert": (INSERT,), "update": (INSERT, UPDATE), "ignore": (INSERT,)}

Reads = Mapping[str, frozenset[str]]
"""Tables and views with the columns that are read of them, in lower case."""


class Rights:
    """The privileges of a role, with those of the roles that it is a member of.

    Raises PERMISSION_DENIED, as Spanner words it, for a role that does not exist.
    """

    def __init__(self, schema: Schema, role: str) -> None:
        self.role = role
        self._schema = schema
        roles = {item.name.casefold() for item in schema.verbatim if item.kind == ROLE}
        if role.casefold() not in roles.union(SYSTEM_ROLES):
            raise permission_denied(f"Role not found: {role}.")
        self._roles = join_roles(schema.grants, role)
        self._columns: dict[tuple[str, str, str], frozenset[str]] = {}
        for grant in schema.grants:
            if grant.role.casefold() in self._roles:
                self._add(grant)

    def _add(self, grant: Grant) -> None:
        kind = IN_SCHEMA.get(grant.kind, TABLE if grant.kind in TABLE_KINDS else grant.kind)
        name = grant.name.casefold()
        key = (grant.privilege, kind, f"{name}." if grant.kind in IN_SCHEMA else name)
        columns = frozenset(column.casefold() for column in grant.columns) or EVERY_COLUMN
        self._columns[key] = self._columns.get(key, frozenset()) | columns

    @property
    def reads_whole_catalog(self) -> bool:
        """Whether INFORMATION_SCHEMA shows the role every object."""
        return INFO_READER in self._roles

    def columns(self, privilege: str, kind: str, name: str) -> frozenset[str]:
        """The columns, in lower case, for which the role has a privilege; or EVERY_COLUMN."""
        table = self._schema.find_table(name) if kind == TABLE else None
        folded = (table.name if table is not None else name).casefold()
        owner = f"{split_name(folded)[0] or 'default'}."
        found = (self._columns.get((privilege, kind, key), frozenset()) for key in (folded, owner))
        return frozenset().union(*found)

    def may(self, privilege: str, kind: str, name: str, columns: Collection[str] = ()) -> bool:
        """Whether the role has a privilege for columns of an object; without columns, for any."""
        owner = split_name(name)[0]
        if owner in self._schema.named_schemas and not self.may(USAGE, SCHEMA, owner):
            return False
        granted = self.columns(privilege, kind, name)
        if granted >= EVERY_COLUMN:
            return True
        return bool(granted) and {column.casefold() for column in columns} <= granted

    def require(self, privilege: str, kind: str, name: str, columns: Collection[str] = ()) -> None:
        """Raises PERMISSION_DENIED unless ``may``."""
        if not self.may(privilege, kind, name, columns):
            raise self._denied(kind, name)

    def _denied(self, kind: str, name: str) -> SpannerError:
        found = self._schema.table(name) or find_view(self._schema, name) if kind == TABLE else None
        shown = found.name if found is not None else name
        return permission_denied(
            f"Role {self.role} does not have required privileges on {kind.lower()} {shown}."
        )

    def require_statement(self, statement: Statement, reads: Reads) -> None:
        """Raises PERMISSION_DENIED unless the role may run a statement that reads these columns."""
        if isinstance(statement, CompiledQuery):
            if any(name.upper().startswith(SYSTEM) for name in statement.catalog):
                self._require_statistics()
            for view in statement.views:
                self.require(SELECT, TABLE, view)
        elif isinstance(statement, Insert):
            for privilege in MODE_PRIVILEGES[statement.mode]:
                self.require(privilege, TABLE, statement.table, statement.columns)
            updated = statement.on_conflict and statement.on_conflict.assignments
            if updated:
                self.require(UPDATE, TABLE, statement.table, [name for name, _ in updated])
        elif isinstance(statement, Delete):
            self.require(DELETE, TABLE, statement.table)
        else:
            changed = [name for name, _ in statement.assignments]
            self.require(UPDATE, TABLE, statement.table, changed)
        written = "" if isinstance(statement, CompiledQuery) else statement.table.casefold()
        for table, columns in reads.items():
            if columns or table != written:  # DML names its table without reading it
                self.require(SELECT, TABLE, table, columns)

    def _require_statistics(self) -> None:
        if SYS_READER not in self._roles:
            raise permission_denied(
                f"Role {self.role} does not have required privileges on schema SPANNER_SYS."
            )

    def require_mutation(self, mutation: Mutation) -> None:
        """Raises PERMISSION_DENIED unless the role may write this."""
        if isinstance(mutation, KeyDelete):
            self.require(DELETE, TABLE, mutation.table)
            return
        for privilege in MUTATION_PRIVILEGES[mutation.kind]:
            columns = () if privilege == DELETE else mutation.columns
            self.require(privilege, TABLE, mutation.table, columns)

    def require_change_stream(self, stream: str, function: str) -> None:
        """Raises PERMISSION_DENIED unless the role may read a change stream by its function."""
        self.require(SELECT, CHANGE_STREAM, stream)
        self.require(EXECUTE, FUNCTION, function)

    def limit_schema(self, schema: Schema) -> Schema:
        """What INFORMATION_SCHEMA shows to the role: objects and columns with any privilege."""
        tables = [t for each in schema.tables if (t := self._limit_table(each)) is not None]
        shown = {table.name: {column.name for column in table.columns} for table in tables}
        indexes = [
            index
            for index in schema.indexes
            if {part.column for part in index.parts} <= shown.get(index.table, set())
        ]
        streams = [
            stream
            for stream in schema.change_streams
            if self.columns(SELECT, CHANGE_STREAM, stream.name)
        ]
        views = {view.name for view in list_views(schema)}
        readable = {view for view in views if self.columns(SELECT, TABLE, view)}
        items = [
            item for item in schema.verbatim if item.name not in views or item.name in readable
        ]
        grants = [grant for grant in schema.grants if grant.role.casefold() in self._roles]
        return replace(
            schema,
            tables=tuple(tables),
            indexes=tuple(indexes),
            change_streams=tuple(streams),
            verbatim=tuple(items),
            grants=tuple(grants),
        )

    def _limit_table(self, table: Table) -> Table | None:
        granted = frozenset().union(
            *(self.columns(each, TABLE, table.name) for each in (SELECT, INSERT, UPDATE))
        )
        if granted >= EVERY_COLUMN or self.columns(DELETE, TABLE, table.name):
            return table
        columns = tuple(column for column in table.columns if column.name.casefold() in granted)
        if not columns:
            return None
        names = {column.name.casefold() for column in columns}
        key: tuple[KeyPart, ...] = tuple(
            part for part in table.primary_key if part.column.casefold() in names
        )
        return replace(table, columns=columns, primary_key=key, foreign_keys=(), checks=())


def join_roles(grants: Collection[Grant], role: str) -> frozenset[str]:
    """A role and those of which it is a member, directly or not, in lower case."""
    found, waiting = {PUBLIC}, [role.casefold()]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [
                grant.name.casefold()
                for grant in grants
                if grant.kind == ROLE and grant.role.casefold() == name
            ]
    return frozenset(found)
