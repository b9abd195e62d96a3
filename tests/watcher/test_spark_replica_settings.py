"""What the file of ``replicate`` and the source's options say of replicas by Spark, and what they
refuse."""

from __future__ import annotations

from typing import Any

import pytest

from watcher.errors import ConfigurationError
from watcher.replica.packages import make_format_settings
from watcher.runners.spark_job import choose_format_settings, make_request
from watcher.settings.spark import parse_source_options
from watcher.settings.watcher import parse_watch_config

DATABASE = "spanner://projects/p/instances/i/databases/d"
PLACE = {"project": "p", "instance": "i", "database": "d"}
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
        {"table": {"Singers": {"columns": ["LastName"]}}},
    ],
)
def test_settings_that_a_query_cannot_follow_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"replica\.engine = 'spark'"):
        make_request(parse_watch_config(FILE | more), print, once=False)


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


def test_a_spark_without_delta_is_refused() -> None:
    package = make_format_settings("delta", "4.2.0")["spark.jars.packages"]
    assert package == "io.delta:delta-spark_4.2_2.13:4.4.0"
    with pytest.raises(ConfigurationError, match=r"no Delta 4\.4\.0 for Spark 4\.3\.0"):
        make_format_settings("delta", "4.3.0")


def test_jars_of_the_file_take_the_place_of_packages() -> None:
    try:
        settings = choose_format_settings("delta", {"spark.jars": "delta.jar"})
    except ConfigurationError:
        pytest.skip("there is no Delta for the Spark that is installed")
    assert settings["spark.jars"] == "delta.jar"
    assert "spark.jars.packages" not in settings
