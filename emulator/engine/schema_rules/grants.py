"""Privileges: what they refer to exists."""

from __future__ import annotations

from ddl.model import steps
from ddl.model.schema import Grant, Schema
from ddl.syntax import views
from ddl.syntax.grants import change_grants
from emulator.errors import failed_precondition, not_found


def grants_after(schema: Schema, step: steps.Step) -> tuple[Grant, ...]:
    """The privileges after a step: a role or an object that is gone has none."""
    if isinstance(step, steps.OtherStatement) and step.kind in {"GRANT", "REVOKE"}:
        grants = change_grants(schema.grants, step.text, schema.dialect)
        for grant in grants:
            refuse_unknown_role(schema, grant)
        return grants
    if isinstance(step, steps.DropTable):
        return tuple(g for g in schema.grants if g.name.casefold() != step.name.casefold())
    if isinstance(step, steps.DropVerbatim) and step.kind == "ROLE":
        for grant in schema.grants:
            if step.name.casefold() in {grant.role.casefold(), grant.name.casefold()}:
                raise failed_precondition(
                    f"Cannot drop role {step.name}: it has privileges. Revoke them first."
                )
    return schema.grants


def refuse_unknown_role(schema: Schema, grant: Grant) -> None:
    """The roles, tables and columns of a GRANT exist."""
    roles = {item.name.casefold() for item in schema.verbatim if item.kind == "ROLE"} | {"public"}
    for role in (grant.role, *((grant.name,) if grant.kind == "ROLE" else ())):
        if role.casefold() not in roles:
            raise not_found(f"Role not found: {role}")
    if grant.kind == "TABLE":
        table = schema.table(grant.name)
        if table is None and views.find_view(schema, grant.name) is not None:
            return
        if table is None:
            raise not_found(f"Table not found: {grant.name}")
        for column in grant.columns:
            if table.column(column) is None:
                raise not_found(f"Column not found in table {table.name}: {column}")
