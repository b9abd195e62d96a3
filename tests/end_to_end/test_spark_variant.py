"""JSON as Spark's VARIANT: the same values as the texts, in columns, arrays, envelopes, streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.everything import rows, write
from fixtures.spark import batch, changes, drain, parquet
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, VariantType

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TO_TEXTS = "transform(Jss, each -> to_json(each)) AS Jss"


def parse_json_texts(value: Any) -> Any:
    """JSON texts as what they say."""
    if isinstance(value, list):
        return [parse_json_texts(item) for item in value]
    return None if value is None else ("json", json.loads(value))


def test_columns_and_arrays_hold_what_was_written(
    spark: SparkSession, everything: Database
) -> None:
    write(everything, rows())
    read = batch(spark, everything, table="Everything", jsonType="variant")
    assert read.schema["Js"].dataType == VariantType()
    assert read.schema["Jss"].dataType == ArrayType(VariantType())
    texts = read.selectExpr("Id", "to_json(Js) AS Js", TO_TEXTS, "St").collect()
    cells = {
        each["Id"]: (parse_json_texts(each["Js"]), parse_json_texts(each["Jss"]), each["St"])
        for each in texts
    }
    assert cells == {
        each["Id"]: (parse_json_texts(each["Js"]), parse_json_texts(each["Jss"]), each["St"])
        for each in rows()
    }


def test_a_json_null_is_not_a_missing_value(spark: SparkSession, everything: Database) -> None:
    with everything.batch() as mutations:
        mutations.insert("Everything", ("Id", "Js"), [(1, "null"), (2, None)])
    read = batch(spark, everything, table="Everything", jsonType="variant")
    flags = read.selectExpr("Id", "Js IS NULL AS missing", "is_variant_null(Js) AS empty").collect()
    assert {each["Id"]: (each["missing"], each["empty"]) for each in flags} == {
        1: (False, True),
        2: (True, False),
    }


def test_an_envelope_can_be_asked_by_path(
    spark: SparkSession, everything: Database, tmp_path: Path
) -> None:
    write(everything, rows())
    stream = changes(
        spark, everything, tables="*", startingTimestamp="earliest", jsonType="variant"
    ).selectExpr(
        "variant_get(key, '$.Id', 'bigint') AS Id",
        "variant_get(values, '$.In', 'bigint') AS In",
        "variant_get(values, '$.Ins[0]', 'bigint') AS first",
    )
    drain(stream, tmp_path)
    delivered = parquet(tmp_path).to_pylist()
    assert {each["Id"]: (each["In"], each["first"]) for each in delivered} == {
        each["Id"]: (each["In"], each["Ins"][0] if each["Ins"] else None) for each in rows()
    }


def test_bytes_of_other_formats_cannot_be_variants(
    spark: SparkSession, everything: Database
) -> None:
    with pytest.raises(PySparkException, match="'jsonType' variant"):
        batch(spark, everything, tables="*", envelope="debezium", jsonType="variant").schema  # noqa: B018
