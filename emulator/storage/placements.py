"""Triggers that check the placement keys of rows."""

from __future__ import annotations

from emulator.storage.sqlite import current_table
from emulator.values.sqlite_text import quote_name, quote_text
from spanner_schema.model.schema import Schema, Table
from spanner_schema.syntax import placements


def triggers(table: Table, schema: Schema) -> dict[str, str]:
    """What refuses a row whose placement key names no placement."""
    key = table.placement_key
    if key is None:
        return {}
    column = quote_name(key.name)
    names = ", ".join(map(quote_text, placements.list_placement_names(schema)))
    refuse = f"SELECT RAISE(ABORT, 'placement!' || NEW.{column})"
    texts: dict[str, str] = {}
    for event in ("INSERT", f"UPDATE OF {column}"):
        name = quote_name(f"placement${event.partition(' ')[0]}${table.name}")
        texts[name] = (
            f"CREATE TRIGGER {name} BEFORE {event} ON {current_table(table.name)} "
            f"WHEN NEW.{column} NOT IN ({names}) BEGIN {refuse}; END"
        )
    return texts
