"""UPDATE ... SET message.field = value: the fields of a column, gathered in one new value."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.proto_calls import FieldValues
from emulator.sql.protos import build, of_type
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import Column, Table


class FieldUpdates:
    """The fields that one UPDATE sets. ``alias`` is the name of its table."""

    def __init__(self, table: Table, alias: str, scope: Scope, context: Context) -> None:
        self._table = table
        self._alias = alias
        self._scope = scope
        self._context = context
        self._by_column: dict[str, FieldValues] = {}

    def find(self, node: exp.Expr) -> tuple[Column, list[str]] | None:
        """The column and the path of fields that SET names; None unless it is a message."""
        names = path_names(node)
        if len(names) > 1 and names[0].casefold() == self._alias.casefold():
            names = names[1:]
        column = self._table.column(names[0]) if len(names) > 1 else None
        if column is None or column.type.code is not TypeCode.PROTO:
            return None
        if column.generated is not None:
            raise errors.invalid_argument(
                f"Cannot write into generated column `{self._table.name}.{column.name}`."
            )
        return column, names[1:]

    def add(self, place: tuple[Column, list[str]], value: Typed) -> None:
        """One more field. Raises INVALID_ARGUMENT for one that is set twice."""
        column, names = place
        fields = self._by_column.get(column.name)
        if fields is None:
            fields = self._by_column[column.name] = FieldValues(column.type, self._context)
        fields.add(names, value)

    def assignments(self) -> list[tuple[str, str]]:
        """Columns, and what they become."""
        assignments = []
        for name, fields in self._by_column.items():
            owner = self._scope.resolve(name, None)
            arguments = (owner.sql, *of_type(fields.type, self._context.protos))
            text = build("fn_update_fields", arguments, fields.paths, fields.values)
            assignments.append((name, text))
        return assignments


def path_names(node: exp.Expr) -> list[str]:
    """The parts of a path; none of anything else."""
    if isinstance(node, exp.Column):
        return [part.name for part in node.parts]
    if isinstance(node, exp.Dot):
        outer = path_names(node.this)
        return [*outer, node.expression.name] if outer else []
    return []
