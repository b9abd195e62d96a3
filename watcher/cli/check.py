"""``spanner-watcher check``."""

from __future__ import annotations

from watcher.cli import actions
from watcher.cli.options import (
    ConfigOption,
    ConsumerOption,
    JsonOption,
    OptionalDatabaseOption,
    StreamOption,
    TablesOption,
)


def command(
    config: ConfigOption = None,
    database: OptionalDatabaseOption = None,
    table: TablesOption = None,
    stream: StreamOption = None,
    consumer: ConsumerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Check whether tables are ready to be watched.

    Checks configuration, access, schema and indexes, and says what to fix. Changes nothing.

    Exits with 0 if everything is ready, 1 if something is not, 2 if the configuration is wrong.
    """
    flags = {
        "database": database,
        "tables": tuple(table) if table else None,
        "consumer": consumer,
        "capture": "change-stream" if stream is not None else None,
        "stream.name": stream,
    }
    actions.check.check_readiness(config, flags, json_output)
