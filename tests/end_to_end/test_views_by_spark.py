"""``where``, ``columns`` and masks of copies that Spark writes, against what the tests have
written. ``verify`` compares after each run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import change_schema
from fixtures.copy_views import (
    CAPTURES,
    KEY,
    MASKS,
    OTHER_KEY,
    STREAM,
    WHERE,
    People,
    check,
    compare,
)
from fixtures.spark_replicas import replicate_by_spark
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.replica_window import CutReport

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def copy(
    spark: SparkSession,
    people: People,
    folder: Path,
    format_: str,
    capture: str = "poll",
    key: str = KEY,
    **table: Any,
) -> list[CutReport]:
    """The key is in a file: Java began before the variables of the test."""
    folder.mkdir(exist_ok=True)
    file = folder.parent / f"{key[:4]}.key"
    file.write_text(key)
    spec = {"where": WHERE, "masks": MASKS, "excludeColumns": ["Age"]} | table
    options: Mapping[str, object] = {
        "idleSeconds": 0,
        "tableOptions": {"People": {n: v for n, v in spec.items() if v}},
        "maskKey": {"file": str(file)},
    }
    more = {} if capture == "poll" else {"stream": "S"}
    common: dict[str, Any] = {"format": format_, "options": options, "load_rows": 7, **more}
    return replicate_by_spark(spark, people.database, folder, ("People",), **common)


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_copy_has_the_rows_of_its_condition_and_masks(
    spark: SparkSession, people: People, tmp_path: Path, capture: str, lake_format: str
) -> None:
    """Rows enter and leave, in loads and windows, and by the deletes of a change stream."""
    if capture != "poll":
        change_schema(people.database, STREAM.format(capture))
    people.write(40)
    people.put(1, City="Bern", Age=18)
    people.put(2, City="Bern", Age=17)
    for number in range(3):
        reports = copy(spark, people, tmp_path / "copy", lake_format, capture)
        assert any(report.loaded for report in reports) == (number == 0)
        check(people, tmp_path / "copy")
        people.write(15, deletes=capture != "poll")
        for key, age in ((1, None), (2, 18)):
            people.put(key, City="Bern", Age=age)


def test_another_condition_mask_or_key_loads_the_table_again(
    spark: SparkSession, people: People, tmp_path: Path, lake_format: str
) -> None:
    folder = tmp_path / "copy"
    people.write(30)
    copy(spark, people, folder, lake_format)
    changes: tuple[dict[str, Any], ...] = (
        {"where": "City = 'Basel'"},
        {"where": None, "masks": MASKS | {"City": "redact"}},
        {"key": OTHER_KEY},
        {"masks": None, "where": None},
    )
    for change in changes:
        people.put(1)
        (report, *_) = copy(spark, people, folder, lake_format, **change)
        assert list(report.loaded) == ["People"]
        changed = compare(people, folder)
        assert changed.equal, changed.to_json()
        people.put(2)
        reports = copy(spark, people, folder, lake_format, **change)
        assert not any(report.loaded for report in reports)
        assert compare(people, folder).equal


def test_what_no_change_tells_of_is_refused(
    spark: SparkSession, people: People, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="names LastModified, which clearing writes"):
        copy(spark, people, tmp_path / "copy", "parquet", where="LastModified > '2026-01-01'")
    assert not list((tmp_path / "copy").iterdir())
