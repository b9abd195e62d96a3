"""Privileges: what they refer to exists."""

from __future__ import annotations

from emulator.errors import failed_precondition, invalid_argument, not_found
from spanner_schema.model import steps
from spanner_schema.model.schema import Grant, Schema
from spanner_schema.syntax import views
from spanner_schema.syntax.grants import (
    INFO_READER,
    PRIVILEGE_STATEMENTS,
    PUBLIC,
    ROLE,
    SYS_READER,
    SYSTEM_ROLES,
    TABLE,
)


def grants_after(schema: Schema, step: steps.Step) -> tuple[Grant, ...]:
    """The privileges in the schema after a step: a role or an object that is gone has none."""
    if isinstance(step, steps.OtherStatement) and step.kind in PRIVILEGE_STATEMENTS:
        for grant in schema.grants:
            refuse_unknown_role(schema, grant)
    if isinstance(step, steps.DropTable):
        return tuple(g for g in schema.grants if g.name.casefold() != step.name.casefold())
    if isinstance(step, steps.DropVerbatim) and step.kind == ROLE:
        for grant in schema.grants:
            if step.name.casefold() in {grant.role.casefold(), grant.name.casefold()}:
                raise failed_precondition(
                    f"Cannot drop role {step.name}: it has privileges. Revoke them first."
                )
    return schema.grants


def refuse_unknown_role(schema: Schema, grant: Grant) -> None:
    """The roles, tables and columns of a GRANT exist. Spanner: only ``public`` of the system's
    roles is granted privileges, and only the others have members."""
    roles = {item.name.casefold() for item in schema.verbatim if item.kind == ROLE}
    named = [(grant.role, roles | {PUBLIC})]
    if grant.kind == ROLE:
        named.append((grant.name, roles | {INFO_READER, SYS_READER}))
    for role, known in named:
        if role.casefold() in set(SYSTEM_ROLES) - known:
            raise invalid_argument(f"Cannot grant to or from the system role {role}.")
        if role.casefold() not in known:
            raise not_found(f"Role not found: {role}")
    if grant.kind == TABLE:
        table = schema.table(grant.name)
        if table is None and views.find_view(schema, grant.name) is not None:
            return
        if table is None:
            raise not_found(f"Table not found: {grant.name}")
        for column in grant.columns:
            if table.column(column) is None:
                raise not_found(f"Column not found in table {table.name}: {column}")
