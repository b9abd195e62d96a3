"""The system tables of the PostgreSQL dialect, under the names by which the compiler finds them."""

from __future__ import annotations

from emulator.values.columns import View
from emulator.values.postgres_information import INFORMATION_TABLES
from emulator.values.postgres_pg_catalog import PG_CATALOG_TABLES
from emulator.values.statistics_tables import STATISTICS_TABLES

POSTGRES_VIEWS: dict[str, View] = {
    **INFORMATION_TABLES,
    **PG_CATALOG_TABLES,
    **{
        name: tuple((column.lower(), type_) for column, type_ in columns)
        for name, columns in STATISTICS_TABLES.items()
    },
}
