"""The options of the Spark source from texts, and which of them go together."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from watcher.model.errors import ConfigurationError
from watcher.replica.cuts.modes import LATEST as LATEST_ROWS
from watcher.settings.fields import (
    EARLIEST,
    check_directed_reads,
    describe_validation_error,
    unknown_option,
)
from watcher.settings.spark import OF_TABLE, CaptureName, SourceOptions
from watcher.settings.table_specs import (
    OF_STREAMS,
    check_named_once,
    check_table_spec,
    is_for_streams,
)


def parse_source_options(texts: Mapping[str, str]) -> SourceOptions:
    """Validates Spark's options, whose names ignore case. Raises ConfigurationError."""
    known = {to_camel(name).lower(): to_camel(name) for name in SourceOptions.model_fields}
    values = {}
    for name, text in texts.items():
        if name.lower() not in known:
            raise unknown_option(name, known.values())
        values[known[name.lower()]] = text
    try:
        options = SourceOptions.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(describe_validation_error(error)) from None
    check_combinations(options)
    return options


def check_combinations(options: SourceOptions) -> None:
    """Checks what single fields cannot. Raises ConfigurationError."""
    check_database(options)
    if (options.table is None) == (options.tables is None):
        raise ConfigurationError(
            "use either the option 'table' (one table with its own columns) or 'tables' (several"
            " tables, an envelope for each change)"
        )
    check_arrow_rows(options)
    check_polling(options)
    check_where(options)
    if options.change_columns and (options.envelope is not None or options.arrow_rows):
        raise ConfigurationError(
            "'changeColumns' is for columns of tables and for 'tables', whose rows have room for"
            " them: leave out 'envelope' and 'arrowRows', or it"
        )
    if options.reads_changes and "snapshot_timestamp" in options.model_fields_set:
        raise ConfigurationError(
            "'snapshotTimestamp' reads whole tables, 'startingTimestamp' and 'endingTimestamp' read"
            " changes: use one or the other"
        )
    if options.data_boost and options.reads_changes:
        raise ConfigurationError(
            "'dataBoost' reads whole tables, which Spanner divides into partitions; changes between"
            " two timestamps are read through an index, which it does not divide: leave out"
            " 'dataBoost', or 'startingTimestamp' and 'endingTimestamp'"
        )
    if not options.streamed:
        for name in ("stream", "placements", "operations", "transaction_tag", "whole_rows"):
            if name in options.model_fields_set:
                raise ConfigurationError(
                    f"'{to_camel(name)}' needs 'capture' = '{CaptureName.CHANGE_STREAM}'"
                )


def check_database(options: SourceOptions) -> None:
    """Checks that a database is named once. Raises ConfigurationError, AddressError."""
    apart = ("project", "instance", "database_role")
    given = [to_camel(name) for name in apart if getattr(options, name) is not None]
    if "/" in options.database and given:
        raise ConfigurationError(
            f"'database' is an address, which says all of it: leave out {', '.join(given)}"
        )
    if "/" not in options.database:
        for name in ("project", "instance"):
            if getattr(options, name) is None:
                raise ConfigurationError(
                    f"option '{name}' is missing: name project, instance and database, or use the"
                    " address of the database, spanner://..., as 'database'"
                )
    check_directed_reads(options, options.address)


def check_where(options: SourceOptions) -> None:
    """Raises ConfigurationError where a table has two conditions, of which one would count."""
    for table, spec in options.table_options.items():
        own = options.table is not None and table.casefold() == options.table.casefold()
        if own and spec.where is not None and options.where is not None:
            raise ConfigurationError(
                f"'where' and 'tableOptions' of {table} both have a condition: write one of both,"
                " joined by AND"
            )


def check_polling(options: SourceOptions) -> None:
    """Checks what says how tables are polled. Raises ConfigurationError."""
    for name in OF_TABLE:
        if name in options.model_fields_set and options.table is None:
            raise ConfigurationError(
                f"'{to_camel(name)}' says how one table is polled: with 'tables', use"
                " 'tableOptions'"
            )
    for name in OF_TABLE:
        if name in options.model_fields_set and options.streamed:
            raise ConfigurationError(
                f"'{to_camel(name)}' is for polling: leave out 'capture', or it"
            )
    check_named_once(options.table_options, "'tableOptions'")
    for table, spec in options.table_options.items():
        if options.streamed and not is_for_streams(spec, options.arrow_rows):
            raise ConfigurationError(
                f"'tableOptions' of {table} is for polling: leave out 'capture', or use only"
                f" {', '.join(map(to_camel, OF_STREAMS))} there"
            )
    for table, spec in options.specs.items():
        check_table_spec(spec, f"the shard of {table}")


def check_arrow_rows(options: SourceOptions) -> None:
    """Checks what goes with ``arrowRows``. Raises ConfigurationError."""
    if options.deleted_columns and not options.arrow_rows:
        raise ConfigurationError("'deletedColumns' needs 'arrowRows' = 'true'")
    if options.copy_mode != LATEST_ROWS and not options.arrow_rows:
        raise ConfigurationError("'copyMode' needs 'arrowRows' = 'true'")
    if options.starts_with_window and not options.arrow_rows:
        raise ConfigurationError("'startsWithWindow' needs 'arrowRows' = 'true'")
    if options.deleted_columns and options.streamed:
        raise ConfigurationError("'deletedColumns' is for polling: leave out 'capture', or it")
    if not options.arrow_rows:
        return
    if options.columns:
        raise ConfigurationError("'arrowRows' has columns of its own: leave out 'columns'")
    if options.tables is None or options.envelope is not None:
        raise ConfigurationError("'arrowRows' needs 'tables', and no 'envelope'")
    if options.starting_timestamp == EARLIEST:
        raise ConfigurationError(
            "'arrowRows' has no backfill: read whole tables with 'snapshotTimestamp', and their"
            " changes from there"
        )
