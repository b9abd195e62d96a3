"""The text of a DDL statement -> the step that it is; what this server has not is UNIMPLEMENTED."""

from __future__ import annotations

from emulator.engine import proto_bundle
from emulator.engine.schema_rules import placements
from emulator.engine.schema_rules.syntax import refuse_syntax
from emulator.errors import failed_precondition, unimplemented
from spanner_schema.model import steps
from spanner_schema.model.errors import DdlError
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax import locality_groups, models, search_indexes, vector_indexes
from spanner_schema.syntax.clauses import OPTION_WORDS
from spanner_schema.syntax.functions import KIND as FUNCTION
from spanner_schema.syntax.parse import parse_statement
from spanner_schema.syntax.placements import KIND as PLACEMENT
from spanner_schema.syntax.property_graphs import KIND as PROPERTY_GRAPH
from spanner_schema.syntax.protos import KIND as PROTO_BUNDLE
from spanner_schema.syntax.protos import list_bundle_types

RECORDED_KINDS = {
    "ROLE",
    "CHANGE STREAM",
    "VIEW",
    "SEQUENCE",
    PROTO_BUNDLE,
    PLACEMENT,
    vector_indexes.KIND,
    search_indexes.KIND,
    PROPERTY_GRAPH,
    locality_groups.KIND,
    models.KIND,
    FUNCTION,
}
POSTGRES_KINDS = {
    *("ROLE", "VIEW", "SEQUENCE"),
    *(search_indexes.KIND, vector_indexes.KIND, locality_groups.KIND),
}
"""Those of the PostgreSQL dialect."""
ALTERATIONS = {
    *("GRANT", "REVOKE", "ANALYZE", "ALTER SEQUENCE", "ALTER IDENTITY"),
    *(proto_bundle.ALTER, placements.ALTER, placements.ALTER_KEY, search_indexes.ALTER),
    *(locality_groups.ALTER, vector_indexes.ALTER, models.ALTER, "ALTER STATISTICS"),
}


def language(schema: Schema) -> tuple[Dialect, tuple[str, ...]]:
    """What statements over a schema are written in: its dialect, and the types of its bundle."""
    return schema.dialect, list_bundle_types(schema)


def parse_step(
    text: str, dialect: Dialect, type_names: tuple[str, ...], *, strict: bool = False
) -> steps.Step:
    """The step that a statement says. Raises INVALID_ARGUMENT with the place of the error."""
    try:
        step = parse_statement(text, dialect, type_names, strict=strict)
    except DdlError as error:
        raise refuse_syntax(text, error) from error
    if isinstance(step, steps.CreateVerbatim) and step.item.kind not in RECORDED_KINDS:
        raise unimplemented(f"CREATE {step.item.kind}")
    if dialect is Dialect.POSTGRESQL:
        refuse_missing(step)
    inner = step.step if isinstance(step, steps.AlterTableIfExists) else step
    if isinstance(inner, steps.OtherStatement) and inner.kind not in ALTERATIONS:
        raise unimplemented(inner.kind)
    return step


def refuse_missing(step: steps.Step) -> None:
    """Raises UNIMPLEMENTED for what the PostgreSQL dialect has of objects kept as text, and this
    server has not."""
    if isinstance(step, steps.OtherStatement) and step.kind == "ALTER VIEW":
        raise failed_precondition("Object type is not supported in <ALTER> statement.")
    what = name_missing(step)
    if what is not None:
        raise unimplemented(f"{what} in the PostgreSQL dialect")
    for name in list_storage_options(step):
        words = name.upper().replace("_", " ")
        raise unimplemented(f"The option {words} in the PostgreSQL dialect")


def name_missing(step: steps.Step) -> str | None:
    """What this server has not, of a step of the PostgreSQL dialect."""
    match step:
        case steps.OtherStatement() if step.kind not in ALTERATIONS:
            return step.kind
        case steps.CreateVerbatim() if step.item.kind not in POSTGRES_KINDS:
            return f"CREATE {step.item.kind}"
        case steps.CreateTable() if step.table.placement_key is not None:
            return "A PLACEMENT KEY"
        case _:
            return None


def list_storage_options(step: steps.Step) -> list[str]:
    """The options of tables, columns and indexes that a statement has."""
    match step:
        case steps.CreateTable():
            given = [step.table.options, *(column.options for column in step.table.columns)]
        case steps.CreateIndex():
            given = [step.index.options]
        case steps.AddColumn():
            given = [step.column.options]
        case _:
            given = []
    kept = OPTION_WORDS.values()
    return [name for options in given for name, _ in options if name not in kept]
