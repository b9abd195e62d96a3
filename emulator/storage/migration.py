"""From the layout before a schema change to the layout after it, inside one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import apsw

from emulator.storage.archives import Archive, archive_table, is_empty
from emulator.storage.conversions import CONVERSIONS, register_conversions
from emulator.storage.layout import ColumnLayout, TableLayout
from emulator.storage.sqlite import current_table, history_table, run
from emulator.values.sqlite_text import quote_name

Layouts = Mapping[str, TableLayout]


@dataclass(frozen=True, slots=True)
class Backfill:
    """What fills a new column: ``defaults`` maps (table, column), in lower case, to SQL text.

    ``bindings`` holds the values of that text's parameters (``now_``, ``commit_``); ``micros`` is
    the commit timestamp of the schema change.
    """

    defaults: Mapping[tuple[str, str], str]
    bindings: Mapping[str, str]
    micros: int


def migrate(
    connection: apsw.Connection,
    old: Layouts,
    new: Layouts,
    backfill: Backfill,
    origins: Mapping[str, str],
) -> list[Archive]:
    """Changes tables, indexes and triggers; the caller's transaction makes it all or nothing.
    ``old`` and ``new`` may leave out what stays as it is; ``origins`` has the earlier names of
    tables that are renamed. Returns what it put away."""
    register_conversions(connection)
    both = old.keys() & new.keys() - origins.keys()
    rebuilt = {name for name in both if needs_rebuild(connection, old[name], new[name])}
    drop_objects(connection, old, new, rebuilt | origins.keys())
    gone = (old.keys() - new.keys()) | set(origins.values())
    by_name = {
        name: archive_table(connection, old[name].name, backfill.micros) for name in sorted(gone)
    }
    archives = list(by_name.values())
    for name, layout in new.items():
        if name in origins:
            origin = origins[name]
            fill_from_archive(connection, by_name[origin], old[origin], layout, backfill)
        elif name not in old:
            run(connection, layout.create(current_table(layout.name)))
            run(connection, layout.create_history(history_table(layout.name)))
        elif name in rebuilt and not keeps_values(old[name], layout):
            archives.append(replace_table(connection, old[name], layout, backfill))
        elif name in rebuilt:
            rebuild(connection, old[name], layout, backfill)
        else:
            add_columns(connection, old[name], layout)
    create_objects(connection, old, new, rebuilt | origins.keys())
    return archives


def needs_rebuild(connection: apsw.Connection, old: TableLayout, new: TableLayout) -> bool:
    """Whether the rows must be written anew; columns appended empty need none. Where there are no
    rows it is quicker: SQLite reads the whole schema again for each ALTER TABLE."""
    added = new.columns[len(old.columns) :]
    return (
        old.checks != new.checks
        or not same_columns(old, new)
        or any(c.default is not None or c.generated or "NOT NULL" in c.definition for c in added)
        or (bool(added) and is_empty(connection, current_table(old.name)))
    )


def keeps_values(old: TableLayout, new: TableLayout) -> bool:
    """Whether every value of the old columns is found in the new ones: an earlier schema can go on
    reading the table."""
    kept = {c.name: (c.kind, c.generated) for c in new.columns}
    return all(kept.get(c.name) == (c.kind, c.generated) for c in old.columns)


def same_columns(old: TableLayout, new: TableLayout) -> bool:
    """Whether the new columns begin with the old ones, unchanged."""
    first = new.columns[: len(old.columns)]
    return [(c.kind, c.definition) for c in old.columns] == [(c.kind, c.definition) for c in first]


def add_columns(connection: apsw.Connection, old: TableLayout, new: TableLayout) -> None:
    """Appends columns that are NULL in every row."""
    for column in new.columns[len(old.columns) :]:
        run(
            connection,
            f"ALTER TABLE {current_table(new.name)} ADD COLUMN {column.definition}",
            f"ALTER TABLE {history_table(new.name)} ADD COLUMN "
            f"{quote_name(column.name)} {column.storage_class}",
        )


def replace_table(
    connection: apsw.Connection, old: TableLayout, new: TableLayout, backfill: Backfill
) -> Archive:
    """Puts a table away and writes its rows anew; its history begins anew too: what was replaced
    before the change is read from the archive."""
    archive = archive_table(connection, old.name, backfill.micros)
    fill_from_archive(connection, archive, old, new, backfill)
    return archive


def fill_from_archive(
    connection: apsw.Connection,
    archive: Archive,
    old: TableLayout,
    new: TableLayout,
    backfill: Backfill,
) -> None:
    """Creates a table with the rows of one that was put away."""
    run(
        connection, new.create(current_table(new.name)), new.create_history(history_table(new.name))
    )
    if archive.has_rows:
        copy_rows(
            connection, archive.rows, current_table(new.name), *current_values(old, new, backfill)
        )


def current_values(
    old: TableLayout, new: TableLayout, backfill: Backfill
) -> tuple[list[str], list[str], Backfill]:
    """The columns to write into a table of current rows, and their values in the old one."""
    before = {c.name.casefold(): c for c in old.columns}
    plain = [c for c in new.columns if c.generated is None]
    columns = ['"$ts"', *(quote_name(c.name) for c in plain)]
    return columns, ['"$ts"', *(column_value(c, before, new, backfill) for c in plain)], backfill


def rebuild(
    connection: apsw.Connection, old: TableLayout, new: TableLayout, backfill: Backfill
) -> None:
    """Writes a table anew; constraints judge every row on the way."""
    reshape_table(
        connection,
        current_table(new.name),
        quote_name("n$" + new.name),
        new.create,
        *current_values(old, new, backfill),
    )
    extend_history(connection, old, new)


def extend_history(connection: apsw.Connection, old: TableLayout, new: TableLayout) -> None:
    """Replaced rows have nothing in the new columns: no schema that has these sees the rows."""
    history = history_table(new.name)
    if is_empty(connection, history):
        run(connection, f"DROP TABLE {history}", new.create_history(history))
        return
    existing = {c.name for c in old.columns}
    for column in new.columns:
        if column.name not in existing:
            name = f"{quote_name(column.name)} {column.storage_class}"
            run(connection, f"ALTER TABLE {history} ADD COLUMN {name}")


def reshape_table(
    connection: apsw.Connection,
    table: str,
    temporary: str,
    create: Callable[[str], str],
    columns: list[str],
    values: list[str],
    backfill: Backfill,
) -> None:
    """One table into its new shape, which then takes its name."""
    if is_empty(connection, table):
        run(connection, f"DROP TABLE {table}", create(table))
        return
    run(connection, create(temporary))
    copy_rows(connection, table, temporary, columns, values, backfill)
    run(connection, f"DROP TABLE {table}", f"ALTER TABLE {temporary} RENAME TO {table}")


def copy_rows(
    connection: apsw.Connection,
    table: str,
    target: str,
    columns: list[str],
    values: list[str],
    backfill: Backfill,
) -> None:
    """The rows of a table into another, under the same numbers."""
    connection.execute(
        f"INSERT INTO {target} (_rowid_, {', '.join(columns)}) "
        f"SELECT _rowid_, {', '.join(values)} FROM {table}",
        dict(backfill.bindings),
    )


def column_value(
    column: ColumnLayout,
    before: Mapping[str, ColumnLayout],
    table: TableLayout,
    backfill: Backfill,
) -> str:
    """The SQL text of a column's value in a row that exists already."""
    old = before.get(column.name.casefold())
    if old is not None:
        conversion = CONVERSIONS.get((old.kind, column.kind), "{}")
        return conversion.format(quote_name(old.name))
    if column.generated is not None:
        return column.generated
    default = backfill.defaults.get((table.name.casefold(), column.name.casefold()))
    return "NULL" if default is None else default


def refresh_indexes(connection: apsw.Connection, layouts: Layouts) -> None:
    """Creates anew what an earlier version of the server laid out in another way."""
    existing = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'index'"))
    for layout in layouts.values():
        for item, text in layout.objects.items():
            name = item.strip('"').replace('""', '"')
            if name in existing and existing[name] != text:
                run(connection, f"DROP INDEX {item}", text)


def drop_objects(
    connection: apsw.Connection, old: Layouts, new: Layouts, rebuilt: set[str]
) -> None:
    """Drops what vanishes or changes, triggers first: they refer to tables that may be dropped."""
    for name, layout in old.items():
        kept = new[name].objects if name in new and name not in rebuilt else {}
        for item, text in layout.objects.items():
            if kept.get(item) != text:
                kind = "TRIGGER" if text.startswith("CREATE TRIGGER") else "INDEX"
                run(connection, f"DROP {kind} IF EXISTS {item}")


def create_objects(
    connection: apsw.Connection, old: Layouts, new: Layouts, rebuilt: set[str]
) -> None:
    """Creates what is new or was dropped; indexes first, so that a violation shows early."""
    texts = []
    for name, layout in new.items():
        kept = old[name].objects if name in old and name not in rebuilt else {}
        texts += [text for item, text in layout.objects.items() if kept.get(item) != text]
    for text in sorted(texts, key=lambda text: text.startswith("CREATE TRIGGER")):
        run(connection, text)
