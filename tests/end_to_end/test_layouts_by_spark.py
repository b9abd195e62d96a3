"""Layouts of copies that Spark writes: where rows lie after loads, merges and compactions, and who
reads them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from fixtures.changing_schemas import change_schema
from fixtures.copied_tables import (
    ODD_TEXTS,
    CopiedTable,
    copied_tables,
    layouts,
)
from fixtures.copy_histories import History, live
from fixtures.duckdb_reader import PYTHON, ReadByDuckDb
from fixtures.named_rows import KEY, make_rows
from fixtures.replicas import CONSUMER, assert_equal, read_delta
from fixtures.spark_formats import require_format
from fixtures.spark_replicas import replicate_by_spark
from google.cloud.spanner_v1.database import Database
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.replica.copies import DELETED_COLUMN, CopyState
from watcher.replica.cuts.cut import DELTA
from watcher.replica.formats import FORMATS, ICEBERG, PARQUET, open_copies
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.layout import Layout
from watcher.replica.parquet import VersionStore
from watcher.replica.spark.frames import FrameCopy
from watcher.replica.spark.iceberg import add_catalog

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

EXAMPLES = int(os.environ.get("COPY_EXAMPLES", "2"))
TABLE = "T"
KEPT = ("write", "mine")
"""How properties of Iceberg begin that a layout is made of, and one that is the owner's."""


class FrameHistory(History):
    """That of a copy that Spark writes."""

    def __init__(self, spark: SparkSession, format_: str, folder: str, table: CopiedTable) -> None:
        super().__init__(folder, table)
        self.acts = ("nothing", "restart", "rewrite")
        self.format = format_
        self._spark = spark
        self.frames = self.reopen()
        self.state: CopyState | None = None

    def reopen(self) -> FrameCopy:
        opened = make_open_copy(self._spark, self.format, self.place, CONSUMER)
        return opened(self._spark, TABLE, self.table.layout)

    def load(self, rows: pa.Table, end: int) -> None:
        self.state, _ = self.frames.load_frame(self._spark.createDataFrame(rows), end)

    def merge(self, rows: pa.Table, end: int) -> None:
        frame = self._spark.createDataFrame(rows)
        self.state = self.frames.merge_frame(frame, self.table.key, end)

    def act(self, kind: str) -> None:
        if kind == "restart":
            self.frames = self.reopen()
            self.state = self.frames.read_state()
        elif kind == "rewrite" and self.format == DELTA:
            self._spark.sql(f"OPTIMIZE delta.`{self.place}/{TABLE}`").collect()
        elif kind == "rewrite" and self.format == ICEBERG:
            strategy = "sort" if self.table.layout.sort_by else "binpack"
            catalog = add_catalog(self._spark, Path(self.place).as_uri())
            self._spark.sql(
                f"CALL `{catalog}`.system.rewrite_data_files(table => '{TABLE}',"
                f" strategy => '{strategy}', options => map('rewrite-all', 'true'))"
            ).collect()

    def check(self) -> None:
        """What Spark reads, and the product without it; others, where their table is."""
        version, schema = self.version, self.table.schema
        for reader in (self.frames, open_copies(self.format, self.place, CONSUMER)(TABLE)):
            batches = reader.scan(version, schema.names)
            self.expected.assert_equals([row for each in batches for row in each.to_pylist()])
        if self.format == DELTA:
            table = DeltaTable(f"{self.place}/{TABLE}")
            self.expected.assert_equals(read_delta(table).cast(schema).to_pylist())
            assert table.metadata().partition_columns == list(self.table.layout.partition_by)
        if self.format == ICEBERG:
            rows = StaticTable.from_metadata(self.metadata).scan().to_arrow().cast(schema)
            self.expected.assert_equals(rows.to_pylist())

    @property
    def version(self) -> int:
        """The newest version of Delta has rows of the newest window."""
        if self.format == DELTA:
            return DeltaTable(f"{self.place}/{TABLE}").version()
        assert self.state is not None
        return self.state.version

    @property
    def metadata(self) -> str:
        """The newest file of Iceberg's metadata."""
        folder = Path(self.place, TABLE, "metadata")
        number = (folder / "version-hint.text").read_text()
        return str(folder / f"v{number}.metadata.json")

    def list_files(self) -> Iterator[Path]:
        """The data files of the newest version of a copy that is sorted."""
        folder = Path(self.place, TABLE)
        if self.format == PARQUET:
            store = VersionStore(str(folder))
            yield from (folder / each.path for each in store.read(self.version).files)
        if self.format == ICEBERG:
            for task in StaticTable.from_metadata(self.metadata).scan().plan_files():
                yield Path(task.file.file_path.removeprefix("file:"))

    def check_order(self) -> None:
        """The rows of each file are in order, and in Iceberg of one partition by its own say."""
        for path in self.list_files():
            rows = pq.ParquetFile(path).read().to_pylist()
            order = [
                [(row[n] is None, row[n] or 0) for n in self.table.layout.sort_by] for row in rows
            ]
            assert order == sorted(order), (path, order)


@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_random_histories_keep_their_layout(
    spark: SparkSession, lake_format: str, request: pytest.FixtureRequest, data: st.DataObject
) -> None:
    """Odd texts, NULL and every type in partitions; restarts, compaction by the format itself."""
    table = data.draw(copied_tables())
    support = FORMATS[lake_format].layout
    layout = data.draw(layouts(table, support.transforms, r"\w+"))
    layout = replace(layout, sort_by=layout.sort_by if support.sorts else ())
    texts = ODD_TEXTS if lake_format == DELTA else ("", *ODD_TEXTS)
    table = replace(table, layout=layout, partition_texts=texts)
    with tempfile.TemporaryDirectory() as folder:
        history = FrameHistory(spark, lake_format, folder, table)
        live(data, history, ("nothing", "rewrite"))
        history.check()
        history.check_order()
        if lake_format != PARQUET and PYTHON.exists():
            read: ReadByDuckDb = request.getfixturevalue("read_by_duckdb")
            place = history.metadata if lake_format == ICEBERG else f"{folder}/{TABLE}"
            history.expected.assert_equals(read(lake_format, place).cast(table.schema).to_pylist())


def test_a_query_lays_tables_out_as_it_is_asked_to(
    spark: SparkSession, delta: Mapping[str, str], singers: Database, tmp_path: Path
) -> None:
    """Other partitions are refused then, before anything runs, and what the format cannot do."""
    assert delta
    layouts = {"singers": {"partition_by": ["lastname"]}}
    columns = ("SingerId", "FirstName", "LastName")
    for turn in range(2):
        with singers.batch() as batch:
            rows = [(n, f"f{turn}", ODD_TEXTS[(n + turn) % 5]) for n in range(turn, 10)]
            batch.insert_or_update("Singers", columns, rows)
        replicate_by_spark(spark, singers, tmp_path, format=DELTA, layouts=layouts)
    assert_equal(singers, tmp_path)
    table = DeltaTable(f"{tmp_path}/Singers")
    assert table.metadata().partition_columns == ["LastName"]
    values = pa.table(table.get_add_actions(flatten=True))["partition.LastName"].to_pylist()
    assert set(values) == set(ODD_TEXTS[:5])
    other = {"Singers": {"partition_by": ["FirstName"]}}
    with pytest.raises(ConfigurationError, match="was made with partition_by"):
        replicate_by_spark(spark, singers, tmp_path, format=DELTA, layouts=other)
    for refused in ({"sort_by": ["LastName"]}, {"partition_by": ["day(BirthDate)"]}):
        with pytest.raises(ConfigurationError, match="is not for Delta by Spark"):
            replicate_by_spark(spark, singers, tmp_path, format=DELTA, layouts={"Singers": refused})


def test_a_copy_keeps_its_layout_where_none_is_stated(
    spark: SparkSession, lake_format: str, singers: Database, tmp_path: Path
) -> None:
    """Through a restart, merges, and a load of other columns. In Parquet no file says an order."""
    support = FORMATS[lake_format].layout
    layout: dict[str, object] = {}
    if support.transforms:
        layout["partition_by"] = ["LastName"]
    if support.sorts:
        layout["sort_by"] = ["FirstName", "SingerId"]
    if support.sizes:
        layout["file_megabytes"] = 64
    stated: dict[str, Any] = {"layouts": {"Singers": layout}}
    described = []
    for turn, more in enumerate((stated, {}, {}, {})):
        if turn == 2:
            change_schema(singers, "ALTER TABLE Singers ADD COLUMN More INT64 DEFAULT (7)")
        with singers.batch() as batch:
            rows = [(n, f"f{n % 3}{turn}", f"l{n % 2}") for n in range(9, turn, -1)]
            batch.insert_or_update("Singers", ("SingerId", "FirstName", "LastName"), rows)
        replicate_by_spark(spark, singers, tmp_path, format=lake_format, **more)
        described.append(describe_layout(lake_format, tmp_path / "Singers"))
        assert_equal(singers, tmp_path)
    assert described == described[:1] * 4
    assert any(described[0].values()) == (lake_format != PARQUET)


def test_an_order_of_the_owners_stays_in_iceberg(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    """One that settings cannot state: in words that need quotes, too; and other properties."""
    require_format(request, ICEBERG)
    rows = make_rows({1: "a", 2: None, 3: "c"}, 0).drop_columns([DELETED_COLUMN])
    opened = make_open_copy(spark, ICEBERG, str(tmp_path), CONSUMER)
    opened(spark, TABLE).load_frame(spark.createDataFrame(rows), 100)
    name = f"`{add_catalog(spark, tmp_path.as_uri())}`.{TABLE}"
    spark.sql(f"ALTER TABLE {name} WRITE ORDERED BY bucket(4, Id) DESC NULLS FIRST, Name")
    values = "'write.target-file-size-bytes' = '1000000', 'write.distribution-mode' = 'hash'"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({values}, 'mine' = 'x')")
    before = describe_layout(ICEBERG, tmp_path / TABLE)
    copy = opened(spark, TABLE)
    assert copy.read_state() is not None
    copy.merge_frame(spark.createDataFrame(make_rows({2: "b"}, 1)), KEY, 101)
    assert describe_layout(ICEBERG, tmp_path / TABLE) == before
    copy.load_frame(spark.createDataFrame(rows), 102)
    assert describe_layout(ICEBERG, tmp_path / TABLE) == before


def describe_layout(format_: str, folder: Path) -> dict[str, object]:
    """What the format itself says of the layout of a table."""
    if format_ == DELTA:
        return {"partitions": DeltaTable(folder).metadata().partition_columns}
    if format_ == PARQUET:
        return {}
    number = (folder / "metadata/version-hint.text").read_text()
    table = StaticTable.from_metadata(str(folder / f"metadata/v{number}.metadata.json"))
    schema, order = table.schema(), table.sort_order().fields
    return {
        "partitions": [(each.name, str(each.transform)) for each in table.spec().fields],
        "order": [
            (schema.find_column_name(each.source_id), str(each.transform), str(each.direction))
            for each in order
        ],
        "properties": {
            n: v for n, v in table.properties.items() if n.startswith(("write", "mine"))
        },
    }


@pytest.mark.parametrize("text", ["", "x" * 250])
def test_a_text_that_no_partition_of_delta_can_have_is_refused(
    spark: SparkSession, delta: Mapping[str, str], tmp_path: Path, text: str
) -> None:
    assert delta
    copy = make_open_copy(spark, DELTA, str(tmp_path), CONSUMER)(spark, TABLE, Layout(("Name",)))
    rows = make_rows({1: "a"}, 0).drop_columns([DELETED_COLUMN])
    state, _ = copy.load_frame(spark.createDataFrame(rows), 100)
    with pytest.raises(ReplicaError, match="partitioned by Name"):
        copy.merge_frame(spark.createDataFrame(make_rows({2: text}, 1)), KEY, 101)
    assert copy.read_state() == state
