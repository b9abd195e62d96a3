"""The Python data source that Spark finds under the name ``spanner-changes``."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from watcher.model.errors import WatcherError
from watcher.runners.spark.batch import make_batch_reader
from watcher.runners.spark.catalog_tables import (
    attach_options,
    detach_options,
    find_table_options,
    merge_options,
)
from watcher.runners.spark.format_name import FORMAT
from watcher.runners.spark.resolution import resolve_batch_scan, resolve_scan
from watcher.runners.spark.spark_versions import PLANS_FROM_START
from watcher.runners.spark.startless import StartlessReader
from watcher.runners.spark.streaming import ChangesReader, RefusedReader
from watcher.runners.spark.worker_errors import lead_with_sentence
from watcher.settings.spark import SourceOptions
from watcher.settings.spark_parsing import parse_source_options


class SpannerChanges(DataSource):
    """Changes of tables as a stream; changes or whole tables as a batch.

    Options: see ``watcher.settings.spark.SourceOptions``.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    @lead_with_sentence
    def schema(self) -> StructType:
        """The table's columns in Spark's types, ``_commit_timestamp``, ``_shard_id`` and
        ``_change_id``; for several tables the envelope."""
        given = dict(self.options)
        of_table = find_table_options(given)
        options = parse_source_options(of_table or merge_options({}, given))
        schema = resolve_batch_scan(options).name_columns(options.columns)
        return schema if of_table is None else attach_options(schema, of_table)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of one streaming query."""
        try:
            options, columns = self._read_options(schema)
            scan = resolve_scan(options).select_columns(columns)
        except WatcherError as error:
            return RefusedReader(error)
        return ChangesReader(scan) if PLANS_FROM_START else StartlessReader(scan)

    @lead_with_sentence
    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of one batch: changes when a start or an end is given, else a snapshot."""
        options, columns = self._read_options(schema)
        scan = resolve_batch_scan(options)
        return make_batch_reader(scan.select_columns(columns))

    def _read_options(self, schema: StructType) -> tuple[SourceOptions, StructType]:
        """The options, of the query and of the table in Spark's catalog, and the columns."""
        columns, stored = detach_options(schema)
        return parse_source_options(merge_options(stored, dict(self.options))), columns
