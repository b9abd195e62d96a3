"""``ddl status``."""

from __future__ import annotations

from watcher.cli import actions
from watcher.cli.options import (
    DialectOption,
    ExcludeOption,
    JsonOption,
    OptionalDatabaseOption,
    SchemaOption,
    TablesOption,
)


def command(
    tables: TablesOption = None,
    exclude: ExcludeOption = None,
    database: OptionalDatabaseOption = None,
    schema: SchemaOption = None,
    dialect: DialectOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show for each table whether it is watched.

    Shows the strategy, what is missing, and the rows in the index. Counts rows in databases of the
    GoogleSQL dialect.
    """
    actions.ddl.status.show_status(tables, exclude, database, schema, dialect, json_output)
