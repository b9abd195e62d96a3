"""Locality groups and the options of tables, columns and indexes that say where data is: they are
kept and change no answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from emulator.engine.schema_rules.change import SchemaChange
from emulator.errors import failed_precondition, invalid_argument, not_found
from spanner_schema.model import steps
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import Schema
from spanner_schema.syntax.locality_groups import (
    DEFAULT,
    KIND,
    STORAGE,
    TIMESPAN,
    LocalityGroup,
    list_locality_groups,
    read_locality_group,
)

OPTION = "locality_group"
TABLE_OPTIONS = {
    *(OPTION, "columnar_policy", "fulltext_dictionary_table", "fulltext_dictionary_staleness"),
}
INDEX_OPTIONS = {OPTION, "columnar_policy"}
STORAGES = {"ssd", "hdd"}
DURATION = re.compile(r"\d+[smhd]")
QUOTES = "'\""


def check_locality_groups(change: SchemaChange) -> None:
    """Checks what a statement says of locality groups, and of options that name them."""
    step = change.step
    if isinstance(step, steps.CreateVerbatim) and step.item.kind == KIND:
        check_group(read_locality_group(step.item.text, change.after.dialect))
    if isinstance(step, steps.DropVerbatim) and step.kind == KIND:
        refuse_drop(change.before, step.name)
    for _, table in change.tables():
        for name, value in table.options:
            refuse_unknown_option(name, TABLE_OPTIONS)
            check_reference(change.after, name, value)
        for column in table.columns:
            for name, value in column.options:
                check_reference(change.after, name, value)
    for index in change.indexes():
        for name, value in index.options:
            refuse_unknown_option(name, INDEX_OPTIONS)
            check_reference(change.after, name, value)


def check_group(group: LocalityGroup) -> None:
    """The name and the options of a group that is new or altered."""
    if group.name.startswith("_"):
        raise failed_precondition(
            f"Invalid locality group name: {group.name}. The locality group name must not start"
            " with `_`."
        )
    for name, value in group.options:
        refuse_unknown_option(name, {STORAGE, TIMESPAN})
        text = value.strip(QUOTES)
        if name == STORAGE and text not in STORAGES:
            raise invalid_argument(
                f"Unexpected value for option: {STORAGE}. Supported option values are 'ssd' and"
                " 'hdd'."
            )
        if name == TIMESPAN and not DURATION.fullmatch(text):
            raise invalid_argument(f"Cannot parse {text} as a valid timestamp")


def refuse_unknown_option(name: str, known: set[str]) -> None:
    """Raises INVALID_ARGUMENT for an option that Spanner does not have there."""
    if name not in known:
        raise invalid_argument(f"Option: {name} is unknown.")


def check_reference(schema: Schema, name: str, value: str) -> None:
    """A locality group that is named is there."""
    if name != OPTION or value.upper() == "NULL":
        return
    group = value.strip(QUOTES)
    known = (DEFAULT, *(each.name for each in list_locality_groups(schema)))
    if not any(same_name(each, group) for each in known):
        raise not_found(f"Locality group not found: {group}")


def refuse_drop(schema: Schema, name: str) -> None:
    """A group stays as long as something is in it."""
    if any(same_name(each, name) for each in list_references(schema)):
        raise failed_precondition(f"Locality group {name} cannot be dropped as it is referenced.")


def list_references(schema: Schema) -> Iterator[str]:
    """The groups that tables, columns and indexes are in."""
    options = [*(table.options for table in schema.tables)]
    options += [column.options for table in schema.tables for column in table.columns]
    options += [index.options for index in schema.indexes]
    for each in options:
        yield from (value.strip(QUOTES) for name, value in each if name == OPTION)
