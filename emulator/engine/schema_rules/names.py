"""Names: how they may look, which are reserved, and that each is used once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ddl.rules.limits import NAME_CHARACTERS_MAX
from emulator.catalog.constraint_names import name_check, name_foreign_key
from emulator.engine.schema_rules.change import SchemaChange
from emulator.errors import failed_precondition, invalid_argument, not_found, unimplemented
from emulator.sql.aggregates import AGGREGATE_CALLS
from emulator.sql.calls import SPECIAL
from emulator.sql.signatures import SIGNATURES
from spanner_schema.model import steps
from spanner_schema.model.names import join_name, same_name, split_name
from spanner_schema.model.schema import Check, ForeignKey, Schema, Table, Verbatim
from spanner_schema.syntax.placements import list_read_functions

OBJECT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
RESERVED_PREFIXES = ("PK_", "CK_IS_NOT_NULL_")
RESERVED_SCHEMAS = frozenset(
    {
        *("information_schema", "definition_schema", "spanner_sys", "spanner_placement", "spanner"),
        *("pg_information_schema", "pg_catalog", "pg", "public", "default"),
        *("safe", "aead", "kll_quantiles", "keys", "hll_count", "net", "ml"),
    }
)
RESERVED_SCHEMA_PREFIXES = ("spanner_", "pg_")
OBJECT_KINDS = {"SEQUENCE": "Sequence", "PROPERTY GRAPH": "Property Graph", "MODEL": "Model"}
"""Objects, kept as text, whose names are like those of tables; what messages call them."""
UNNAMED_KINDS = frozenset({"ROLE", "PROTO BUNDLE", "LOCALITY GROUP"})
"""Objects whose names are a matter of their own, or that have none."""


def name_constraints(schema: Schema, step: steps.Step) -> steps.Step:
    """The step with names for its constraints that have none. Two are never given the same."""
    taken = set(list_global_names(schema))
    if isinstance(step, steps.AddForeignKey):
        return replace(step, foreign_key=label_foreign_key(step.table, step.foreign_key, taken))
    if isinstance(step, steps.AddCheck):
        return replace(step, check=label_check(step.table, step.check, taken))
    if isinstance(step, steps.CreateTable):
        table = step.table
        keys = tuple(label_foreign_key(table.name, key, taken) for key in table.foreign_keys)
        checks = tuple(label_check(table.name, check, taken) for check in table.checks)
        return replace(step, table=replace(table, foreign_keys=keys, checks=checks))
    return step


def label_foreign_key(table: str, key: ForeignKey, taken: set[str]) -> ForeignKey:
    """A foreign key with a name, which is added to the names that are taken."""
    if key.name is not None:
        return key
    name = name_foreign_key(table, key.referenced_table, taken)
    taken.add(name)
    return replace(key, generated_name=name)


def label_check(table: str, check: Check, taken: set[str]) -> Check:
    """A CHECK with a name, which is added to the names that are taken."""
    if check.name is not None:
        return check
    name = name_check(table, taken)
    taken.add(name)
    return replace(check, generated_name=name)


def list_global_names(schema: Schema) -> Iterator[str]:
    """The names that tables, indexes, change streams, views, sequences and constraints share."""
    for items in (schema.tables, schema.indexes, schema.change_streams):
        yield from (item.name for item in items)
    yield from (item.name for item in schema.verbatim if item.kind not in UNNAMED_KINDS)
    for table in schema.tables:
        yield from table.synonyms
        owner = split_name(table.name)[0]
        # A constraint is in the schema of its table, also where its name does not say so.
        yield from (join_name(owner, split_name(name)[1]) for name in list_constraint_names(table))


def list_constraint_names(table: Table) -> Iterator[str]:
    """The names of the constraints of a table."""
    yield from (key.label for key in table.foreign_keys)
    yield from (check.label for check in table.checks)


def check_names(change: SchemaChange) -> None:
    """Checks the names of everything that a step creates."""
    refuse_repeated_names(change)
    refuse_repeated_functions(change.after)
    step = change.step
    match step:
        case steps.AddSynonym(_, synonym) | steps.RenameTables(_, str(synonym)):
            check_synonym(change.after, synonym)
        case steps.CreateTable(table):
            check_object_name("Table", table.name)
            for synonym in table.synonyms:
                check_synonym(change.after, synonym)
            refuse_second_synonym(table)
            check_constraint_names(table, None)
            refuse_missing_schema(change.after, table.name)
        case steps.CreateIndex(index):
            check_index_name(index.name, index.table)
        case steps.CreateChangeStream(stream):
            check_object_name("Change Stream", stream.name)
            if "." in stream.name:
                refuse_missing_schema(change.after, stream.name)
                raise unimplemented(f"A Change Stream in a named schema ({stream.name})")
        case steps.CreateNamedSchema(name):
            check_schema_name(name)
        case steps.CreateVerbatim(item):
            check_kept_name(change.after, item)
        case _:
            pass
    if isinstance(step, steps.DropNamedSchema):
        refuse_drop_of_used_schema(change.before, step.name)
    for old, table in change.tables():
        check_constraint_names(table, old)
        check_column_names(table, old)


def check_kept_name(schema: Schema, item: Verbatim) -> None:
    """The name of an object that the schema keeps as text."""
    if item.kind == "PLACEMENT":
        check_placement_name(item.name)
    elif item.kind in {"VIEW", "FUNCTION"}:
        refuse_function_name(item)
    elif item.kind in OBJECT_KINDS:
        check_object_name(OBJECT_KINDS[item.kind], item.name)
    if item.kind in {"VIEW", "FUNCTION"} or item.kind in OBJECT_KINDS:
        refuse_missing_schema(schema, item.name)


def refuse_repeated_names(change: SchemaChange) -> None:
    """No two objects have the same name; the error gives it as the new one writes it."""
    names = list(list_global_names(change.after))
    counts = Counter(name.casefold() for name in names)
    if len(counts) == len(names):
        return
    known = set(list_global_names(change.before))
    repeated = [name for name in names if counts[name.casefold()] > 1]
    name = next((name for name in repeated if name not in known), repeated[0])
    raise failed_precondition(f"Duplicate name in schema: {name}.")


def refuse_repeated_functions(schema: Schema) -> None:
    """The function of a stream's placement may have the name of another stream's function."""
    seen: set[str] = set()
    for function in list_read_functions(schema):
        if function.name.casefold() in seen:
            raise failed_precondition(f"Duplicate name in schema: READ_{function.name}.")
        seen.add(function.name.casefold())


def check_object_name(kind: str, name: str) -> None:
    """A letter, then letters, digits and underscores; not too long."""
    last = split_name(name)[1]
    if not OBJECT_NAME.match(last) or len(last) > NAME_CHARACTERS_MAX:
        raise invalid_argument(f"{kind} name not valid: {name}.")


def check_synonym(schema: Schema, synonym: str) -> None:
    """A synonym is called as a table may be."""
    check_object_name("Synonym", synonym)
    refuse_missing_schema(schema, synonym)


def refuse_second_synonym(table: Table) -> None:
    """A table has one synonym at most."""
    if len(table.synonyms) > 1:
        raise invalid_argument(
            f"Cannot add a synonym to table {table.name} because the table already has a synonym"
            f" {table.synonyms[0]}."
        )


def check_constraint_names(table: Table, old: Table | None) -> None:
    """The names of the new constraints of a table."""
    known = set(list_constraint_names(old)) if old is not None else set()
    named = [("Foreign Key", key.name) for key in table.foreign_keys]
    named += [("Check Constraint", check.name) for check in table.checks]
    for kind, name in named:
        if name is None or name in known:
            continue
        check_object_name(kind, name)
        for prefix in RESERVED_PREFIXES:
            if name.upper().startswith(prefix):
                raise invalid_argument(
                    f"Invalid {kind} name: {name}. Prefix {prefix} cannot be used."
                )


def check_column_names(table: Table, old: Table | None) -> None:
    """The names of the new columns of a table."""
    for column in table.columns:
        if old is not None and old.column(column.name) is not None:
            continue
        if column.name.startswith("_") or len(column.name) > NAME_CHARACTERS_MAX:
            raise invalid_argument(f"Column name not valid: {column.name}.")


def check_index_name(name: str, table: str) -> None:
    """An index is in the schema of its table; two names are reserved."""
    check_object_name("Index", name)
    if not same_name(split_name(name)[0], split_name(table)[0]):
        raise failed_precondition(
            f"Index {name} does not match the schema of the indexed table {table}."
        )
    if name.upper() == "PRIMARY_KEY":
        raise invalid_argument("Cannot use reserved name PRIMARY_KEY for a secondary index")
    if name.startswith("Dir_"):
        raise invalid_argument(f"Index name not valid: {name}.")


def check_schema_name(name: str) -> None:
    """The names of Spanner's own schemas are reserved."""
    check_object_name("Schema", name)
    folded = name.casefold()
    if folded in RESERVED_SCHEMAS or folded.startswith(RESERVED_SCHEMA_PREFIXES):
        raise invalid_argument(f"Schema name not valid: {name}.")


def refuse_drop_of_used_schema(schema: Schema, name: str) -> None:
    """A named schema is dropped when nothing is left in it."""
    kinds = {
        "tables": [table.name for table in schema.tables],
        "views": [item.name for item in schema.verbatim if item.kind == "VIEW"],
        "indexes": [index.name for index in schema.indexes]
        + [item.name for item in schema.verbatim if item.kind.endswith(" INDEX")],
        "sequences": [item.name for item in schema.verbatim if item.kind == "SEQUENCE"],
        "functions": [item.name for item in schema.verbatim if item.kind == "FUNCTION"],
        "property graphs": [i.name for i in schema.verbatim if i.kind == "PROPERTY GRAPH"],
    }
    prefix = f"{name.casefold()}."
    lines = []
    for kind, names in kinds.items():
        inside = [each for each in names if each.casefold().startswith(prefix)]
        if inside:
            lines.append(f"\nDependent {kind}: {', '.join(inside)}")
    if lines:
        raise failed_precondition(
            f"Cannot drop schema {name} while it has dependencies.{''.join(lines)}"
        )


def refuse_missing_schema(schema: Schema, name: str) -> None:
    """An object is created in a named schema that exists."""
    owner, _ = split_name(name)
    if owner and not any(same_name(each, owner) for each in schema.named_schemas):
        raise not_found(f"Schema not found: {owner}")


def check_placement_name(name: str) -> None:
    """A placement is in no named schema."""
    if "." in name:
        raise invalid_argument(f"Placement name not valid: {name}.")
    check_object_name("Placement", name)


def refuse_function_name(item: Verbatim) -> None:
    """A view or a function may not be called as a function of Spanner is."""
    upper = item.name.upper()
    if upper in SIGNATURES or upper in SPECIAL or upper in AGGREGATE_CALLS:
        raise failed_precondition(
            f"Cannot create a {item.kind.capitalize()} with the same name as builtin function"
            f" `{item.name}`. This may be supported in a future release."
        )
