"""The Python data source that Spark finds under the name ``spanner-changes``."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from watcher.errors import NotWatchableError
from watcher.runners.spark.batch import make_batch_reader
from watcher.runners.spark.resolution import resolve_scan, resolve_snapshot_scan
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.spark_versions import PLANS_FROM_START
from watcher.runners.spark.startless import StartlessReader
from watcher.runners.spark.streaming import ChangesReader
from watcher.settings.spark import SourceOptions, parse_source_options

FORMAT = "spanner-changes"


class SpannerChanges(DataSource):
    """Changes of tables as a stream; changes or whole tables as a batch.

    Options: see ``watcher.settings.spark.SourceOptions``.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The table's columns in Spark's types, ``_commit_timestamp``, ``_shard_id`` and
        ``_change_id``; for several tables the envelope."""
        options = parse_source_options(dict(self.options))
        return self._resolve_batch(options).spark_schema

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of one streaming query."""
        scan = resolve_scan(parse_source_options(dict(self.options))).select_columns(schema)
        return ChangesReader(scan) if PLANS_FROM_START else StartlessReader(scan)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of one batch: changes when a start or an end is given, else a snapshot."""
        options = parse_source_options(dict(self.options))
        return make_batch_reader(self._resolve_batch(options).select_columns(schema))

    def _resolve_batch(self, options: SourceOptions) -> Scan:
        """Spark does not say here whether this is a stream, which needs an index, or a batch,
        for which a commit timestamp is enough."""
        try:
            return resolve_scan(options)
        except NotWatchableError as error:
            if options.reads_changes:
                raise
            try:
                return resolve_snapshot_scan(options)
            except NotWatchableError:
                raise error from None
