"""What the file of ``replicate`` and the source's options say of replicas by Spark, and what they
refuse."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from watcher.model.errors import ConfigurationError
from watcher.replica.formats import make_session_settings
from watcher.runners.spark_job import SECTIONS, choose_format_settings, make_request
from watcher.runners.spark_replica_request import ReplicaRequest
from watcher.settings.destination_grammar import CopiesDestination
from watcher.settings.spark_parsing import parse_source_options
from watcher.settings.watcher import WatchConfig, parse_watch_config

DATABASE = "spanner://projects/p1/instances/i1/databases/d1"
PLACE = {"project": "p1", "instance": "i1", "database": "d1"}
FILE: dict[str, Any] = {
    "database": DATABASE,
    "tables": ["Sing*", "Albums"],
    "replica": {"to": "delta:/lake/music", "engine": "spark"},
}


def test_a_file_becomes_a_request() -> None:
    more = {"table": {"Singers": {"deleted": "Gone"}}, "lease": "5s", "interval": "2s"}
    request = make_request(parse_watch_config(FILE | more), print, once=False)
    assert (request.to, request.format) == ("/lake/music", "delta")
    assert (request.interval_seconds, request.deleted) == (2.0, {"Singers": "Gone"})
    source = request.resolve().source
    assert source.tables == "Sing*,Albums"
    assert source.lease_seconds == 5
    assert source.arrow_rows
    assert source.consumer is not None
    assert source.consumer.startswith("replica-")


@pytest.mark.parametrize(
    ("to", "format_", "expected"),
    [
        ("/lake", None, ("delta", "/lake")),
        ("/lake", "parquet", ("parquet", "/lake")),
        ("iceberg:/lake", None, ("iceberg", "/lake")),
        ("iceberg:/lake", "iceberg", ("iceberg", "/lake")),
        ("delta:gs://bucket/lake", None, ("delta", "gs://bucket/lake")),
        ("iceberg:/lake", "delta", "remove one of them"),
        ("kafka://b/topic", None, "names two destinations"),
        ("/lake", "orc", "unknown scheme 'orc'"),
        ("delta:", None, "does not name a folder"),
    ],
)
def test_a_request_names_its_copies_as_the_command_does(
    to: str, format_: str | None, expected: tuple[str, str] | str
) -> None:
    request = ReplicaRequest(DATABASE, ("Singers",), to, format_)
    if isinstance(expected, tuple):
        assert (request.copies.format, request.copies.folder) == expected
    else:
        with pytest.raises(ConfigurationError, match=expected):
            _ = request.copies


def test_a_change_stream_is_read_with_whole_rows() -> None:
    more = {"capture": "change-stream", "stream": {"name": "S"}}
    source = make_request(parse_watch_config(FILE | more), print, once=True).resolve().source
    assert (source.stream, source.streamed, source.whole_rows) == ("S", True, True)


@pytest.mark.parametrize(
    "more",
    [
        {"refresh": "1s"},
        {"transactions": True},
        {"positions": {"keep": "memory"}},
        {"capture": "change-set"},
        {"capture": "change-set", "table": {"Singers": {"change_sets": "Sets"}}},
    ],
)
def test_settings_that_a_query_cannot_follow_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"replica\.engine = 'spark'"):
        make_request(parse_watch_config(FILE | more), print, once=False)


OTHERS: dict[str, Any] = {
    "database": "spanner://projects/p1/instances/i1/databases/other",
    "consumer": "mine",
    "nanoseconds": "string",
    "priority": "low",
    "directed_read": {"include": [{"location": "us-east1"}]},
    "accept_failed_probes": ["on-update-dml"],
    "tables": ["Others"],
    "exclude": ["Albums"],
    "capture": "change-stream",
    "start": "earliest",
    "backfill": ["*"],
    "backfill_rows": 5,
    "interval": "3s",
    "adaptive": True,
    "idle_interval": "1m",
    "mask_key": {"env": "HOME"},
    "max_rows": 7,
    "max_bytes": "1MiB",
    "max_span": "1h",
    "shard_groups": 2,
    "parts": 2,
    "transactions": True,
    "refresh": "3s",
    "lease": "20s",
    "standby": True,
    "grace": "3s",
    "create_folders": True,
    "on_missing_index": "scan",
    "index_wait": "3s",
    "log_values": True,
    "table": {"Singers": {"shard": "none"}},
    "endpoint": {"address": "127.0.0.1:1"},
    "clearing": {"every": "1h"},
    "delivery": {"to": "changes.jsonl"},
    "metrics": {"port": 1},
    "page": {"port": 1},
    "replica": {"to": "delta:/lake/music", "engine": "spark", "keep_cuts": "1h"},
    "positions.keep": "memory",
    "positions.table": "Others",
    "positions.database": "spanner://projects/p1/instances/i1/databases/other",
    "positions.path": "positions.json",
    "stream.name": "S",
    "stream.placements": ["a"],
    "stream.operations": ["INSERT"],
    "stream.tag": "t",
    "stream.push": True,
}
"""A value of each setting that is not the one of ``FILE``."""
ELSEWHERE = {"log_format", "stream.whole_rows", "stream.listen"}
"""The first is the command's; a copy has whole rows in any case, and a replica never listens."""


def list_settings() -> list[str]:
    names = [name for name in WatchConfig.model_fields if name not in SECTIONS]
    of_sections = ((s, WatchConfig.model_fields[s].annotation) for s in SECTIONS)
    names += [f"{s}.{name}" for s, kind in of_sections for name in kind.model_fields]  # type: ignore[union-attr]
    return [name for name in names if name not in ELSEWHERE]


def requested(more: dict[str, Any]) -> ReplicaRequest:
    request = make_request(parse_watch_config(FILE | more), print, once=False)
    request.resolve()
    return request


@pytest.mark.parametrize("name", list_settings())
def test_every_setting_reaches_the_query_or_is_refused(name: str) -> None:
    section, _, field = name.rpartition(".")
    more = {section: {field: OTHERS[name]}} if section else {name: OTHERS[name]}
    streamed = {"capture": "change-stream"} if section == "stream" else {}
    try:
        request, refusal = requested(streamed | more), ""
    except ConfigurationError as error:
        request, refusal = None, str(error)
    assert field in refusal if request is None else request != requested(streamed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "Singers", "arrowRows": "true"}, "'arrowRows' needs 'tables'"),
        (
            {"tables": "*", "arrowRows": "true", "startingTimestamp": "earliest"},
            "'arrowRows' has no backfill",
        ),
        ({"tables": "*", "deletedColumns": '{"A": "B"}'}, "'deletedColumns' needs 'arrowRows'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_source_options(PLACE | options)


@pytest.mark.parametrize(
    ("format_", "version", "package"),
    [
        ("delta", "4.0.1", "io.delta:delta-spark_4.0_2.13:4.4.0"),
        ("delta", "4.2.0", "io.delta:delta-spark_4.2_2.13:4.4.0"),
        ("iceberg", "4.1.4", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"),
    ],
)
def test_a_format_has_a_package_for_each_spark(format_: str, version: str, package: str) -> None:
    assert make_session_settings(format_, version)["spark.jars.packages"] == package


def test_plain_parquet_needs_no_package() -> None:
    assert make_session_settings("parquet", "4.3.0") == {}


@pytest.mark.parametrize(
    ("format_", "version", "message"),
    [
        ("delta", "4.3.0", "no Delta 4.4.0 for Spark 4.3.0: use Spark 4.0, 4.1, 4.2, or another"),
        ("iceberg", "4.2.0", "no Iceberg 1.12.0 for Spark 4.2.0: use Spark 4.1, or another format"),
    ],
)
def test_a_spark_without_the_format_is_refused(format_: str, version: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make_session_settings(format_, version)


@pytest.mark.parametrize("format_", ["iceberg", "parquet"])
def test_formats_that_delta_rs_does_not_write(format_: str) -> None:
    target = f"{format_}:/lake/music"
    by_spark = parse_watch_config(FILE | {"replica": {"to": target, "engine": "spark"}})
    assert make_request(by_spark, print, once=True).format == format_
    with pytest.raises(ConfigurationError, match=f"does not write {format_}"):
        parse_watch_config(FILE | {"replica": {"to": target, "engine": "delta-rs"}})


@pytest.mark.parametrize(
    ("replica", "message"),
    [
        ({"to": "parquet:/lake"}, "this process does not write parquet: use engine = 'spark', or"),
        ({"to": "delta:/lake", "engine": "pyiceberg"}, "pyiceberg does not write delta"),
        ({"to": "iceberg:/lake", "merge": "copy-on-write"}, "remove merge = 'copy-on-write'"),
        ({"to": "delta:/lake", "catalog_schema": "a.b"}, "'catalog_schema' is for engine ="),
    ],
)
def test_what_this_process_does_not_write(replica: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        parse_watch_config(FILE | {"replica": replica})


@pytest.mark.parametrize(
    "replica",
    [
        *({"to": f"delta:/lake{n}"} | e for n, e in enumerate([{}, {"engine": "delta-rs"}])),
        *({"to": f"iceberg:/lake{n}"} | e for n, e in enumerate([{}, {"engine": "pyiceberg"}])),
    ],
)
def test_what_this_process_writes(replica: dict[str, str]) -> None:
    config = parse_watch_config(FILE | {"replica": replica})
    assert config.replica is not None
    assert f"{config.replica.format}:{config.replica.folder}" == replica["to"]


def test_jars_of_the_file_take_the_place_of_packages() -> None:
    try:
        settings = choose_format_settings(
            CopiesDestination("delta", "/lake"), {"spark.jars": "delta.jar"}
        )
    except ConfigurationError:
        pytest.skip("there is no Delta for the Spark that is installed")
    assert settings["spark.jars"] == "delta.jar"
    assert "spark.jars.packages" not in settings


@pytest.mark.parametrize(
    ("variables", "own", "expected"),
    [
        ({}, {}, {}),
        ({"AWS_REGION": "eu-west-1"}, {}, {"endpoint.region": "eu-west-1"}),
        (
            {"AWS_ENDPOINT_URL": "http://s3"},
            {},
            {"endpoint": "http://s3", "path.style.access": "true"},
        ),
        (
            {"AWS_ENDPOINT_URL": "http://s3", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"},
            {"spark.hadoop.fs.s3a.endpoint": "http://own"},
            {"endpoint": "http://own"},
        ),
    ],
)
def test_variables_lead_the_client_of_spark_to_s3(
    variables: dict[str, str],
    own: dict[str, str],
    expected: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    settings = choose_format_settings(CopiesDestination("parquet", "s3://bucket/lake"), own)
    package = settings.pop("spark.jars.packages")
    assert re.fullmatch(r"org.apache.hadoop:hadoop-aws:3\.\d+\.\d+", package)
    assert settings == {f"spark.hadoop.fs.s3a.{name}": value for name, value in expected.items()}
    assert choose_format_settings(CopiesDestination("parquet", "/lake"), {}) == {}
