"""How large tables and indexes are: the source of SPANNER_SYS.TABLE_SIZES_STATS_1HOUR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from emulator.engine.clock import wall_micros
from emulator.storage.sqlite import Storage, current_table, history_table, index_name
from emulator.values.forms import timestamp_from_micros
from spanner_schema.model.schema import Schema

READ = "SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE"
"""The pages of each table and index of SQLite; it reads the whole file."""
HOUR_MICROS = 3_600_000_000


def list_sizes(storage: Storage, schema: Schema) -> Iterator[dict[str, object]]:
    """The columns for each table, with its old versions, and each index. The sizes are those of
    now: Spanner shows the average of an hour, and of the last one that ended."""
    reader = storage.borrow()
    try:
        pages = Counter(
            {str(name): int(str(size)) for name, size in reader.connection.execute(READ)}
        )
    finally:
        storage.give_back(reader)
    end = timestamp_from_micros(wall_micros() // HOUR_MICROS * HOUR_MICROS)
    parts: dict[str, tuple[str, ...]] = {
        table.name: (current_table(table.name), history_table(table.name))
        for table in schema.tables
    }
    parts |= {index.name: (index_name(index.name),) for index in schema.indexes}
    for name, each in parts.items():
        size = float(sum(pages[unquote(part)] for part in each))
        yield {"INTERVAL_END": end, "TABLE_NAME": name, "USED_BYTES": size, "USED_SSD_BYTES": size}


def unquote(name: str) -> str:
    """A quoted name of SQLite without its quotes."""
    return name[1:-1].replace('""', '"')
