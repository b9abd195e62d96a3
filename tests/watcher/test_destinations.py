"""Where changes go, as it is configured: in TOML and on the command line, checked at once."""

from __future__ import annotations

import json
import sys
import tomllib
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fixtures.envelope_examples import example_change
from hypothesis import given
from hypothesis import strategies as st

from watcher.envelopes.lines import JsonLines
from watcher.envelopes.wrapped import TABLE_FIELD, TableKeys, add_table
from watcher.model.change import Change, Operation
from watcher.model.errors import ConfigurationError
from watcher.model.outputs import SINKS
from watcher.process.extras import EXTRAS, MissingExtraError
from watcher.replica.formats import FORMATS
from watcher.runners.preflight import check_queue
from watcher.settings.destination_grammar import (
    CopiesDestination,
    FileDestination,
    StandardOutput,
    parse_any,
    parse_changes_destination,
    parse_copies_destination,
)
from watcher.settings.destinations import (
    DESTINATIONS,
    Destination,
    DuckDbDestination,
    KafkaDestination,
    PostgresDestination,
    PubSubDestination,
    QueueOptions,
    QueueSections,
)
from watcher.settings.sections import DeliveryConfig
from watcher.settings.watcher import WatchConfig, parse_watch_config
from watcher.sinks.kafka import make_sink
from watcher.sinks.kafka_producer import load_confluent_kafka
from watcher.sinks.pubsub import load_pubsub
from watcher.sinks.queues import open_queue
from watcher.sinks.traced import describe_sink

ROOT = Path(__file__).resolve().parents[2]
BARRIERS = {"virtual_timestamps": True, "barriers": True}
DATABASE = "projects/p1/instances/i1/databases/d1"


def config_of(delivery: dict[str, Any], **more: Any) -> WatchConfig:
    return parse_watch_config({"database": DATABASE, "delivery": delivery} | more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-", StandardOutput()),
        ("changes.jsonl", FileDestination(Path("changes.jsonl"))),
        ("/var/changes.jsonl", FileDestination(Path("/var/changes.jsonl"))),
        ("./changes", FileDestination(Path("changes"))),
        ("./delta:foo", FileDestination(Path("delta:foo"))),
        ("logs/10:30", FileDestination(Path("logs/10:30"))),
        ("file:changes", FileDestination(Path("changes"))),
        ("file:///var/changes", FileDestination(Path("/var/changes"))),
        ("file://localhost/var/changes", FileDestination(Path("/var/changes"))),
        ("delta:copies", CopiesDestination("delta", "copies")),
        ("iceberg:gs://bucket/music", CopiesDestination("iceberg", "gs://bucket/music")),
        ("delta:s3://bucket", CopiesDestination("delta", "s3://bucket")),
        ("parquet:s3://bucket/a b", CopiesDestination("parquet", "s3://bucket/a b")),
        ("parquet:///lake", CopiesDestination("parquet", "///lake")),
        ("kafka://b1:9092,b2:9092", KafkaDestination(("b1:9092", "b2:9092"))),
        ("kafka://b1/cdc.{table}", KafkaDestination(("b1",), "cdc.{table}")),
        ("kafka://[::1]:9092/all", KafkaDestination(("[::1]:9092",), "all")),
        ("pubsub://my-project", PubSubDestination("my-project")),
        ("pubsub://example.com:p/cdc-{table}", PubSubDestination("example.com:p", "cdc-{table}")),
        ("duckdb:a b.db?schema=s", DuckDbDestination(Path("a b.db"), "s")),
        (
            "duckdb:///lake/a.db?table=c_{table}",
            DuckDbDestination(Path("/lake/a.db"), "main", "c_{table}"),
        ),
        ("postgresql://me@h:5432,[::1]/db", PostgresDestination("me", "h:5432,[::1]", "db")),
        (
            "postgresql:///db?host=/run&schema=s",
            PostgresDestination(None, "", "db", "s", parameters=(("host", "/run"),)),
        ),
    ],
)
def test_a_destination_is_a_path_a_queue_or_copies(text: str, expected: object) -> None:
    assert parse_any(text) == expected


NEAR_MISSES = [
    ("delta:foo", r"copies.*'spanner-watcher replicate --to delta:foo'.*\./delta:foo"),
    ("iceberg:/lake/music", r"spanner-watcher replicate --to iceberg:/lake/music"),
    ("kafka:topic", r"write kafka://BROKER:PORT,BROKER:PORT/TOPIC, or \./kafka:topic"),
    ("kafka", r"write kafka://BROKER:PORT"),
    ("pubsub:x", r"write pubsub://PROJECT/TOPIC"),
    ("delta", r"write delta:FOLDER"),
    ("kafak:x", r"unknown scheme 'kafak'; did you mean 'kafka'"),
    ("changes", r"neither a path nor a scheme: write \./changes"),
    ("filee:x.jsonl", r"did you mean 'file'"),
    ("file:", r"write file:PATH"),
    ("file://host/x", r"not name a file of this machine"),
    ("s3://bucket/x", r"an object store, which takes copies: use 'replicate' with delta:s3://b"),
    ("a:b.jsonl", r"unknown scheme 'a'; write \./a:b\.jsonl"),
]


@pytest.mark.parametrize(("text", "words"), NEAR_MISSES)
def test_what_is_nearly_a_destination_of_changes_says_what_can_be_meant(
    text: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"option 'delivery\.to': '{text}' .*{words}"):
        config_of({"to": text})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/lake/music", r"use delta:/lake/music or"),
        ("music", r"use delta:music or"),
        ("file:x", r"is a file, which has no copies"),
        ("kafka://b/t", r"'spanner-watcher watch --to kafka://b/t'"),
        ("-", r"is the standard output"),
        ("dleta:/lake", r"did you mean 'delta'"),
        ("delta", r"write delta:FOLDER"),
        ("delta:", r"write delta:FOLDER"),
        ("delta://lake", r"write delta:/lake for"),
        ("delta:kafka://b", r"names two destinations"),
        ("gs://bucket/music", r"delta:gs://bucket/music"),
        ("s3://bucket", r"use 'replicate' with delta:s3://bucket"),
        ("delta:s3:/bucket/music", r"write delta:s3://BUCKET/PREFIX"),
        ("delta:s3://", r"write delta:s3://BUCKET/PREFIX"),
        ("delta:s3:///music", r"write delta:s3://BUCKET/PREFIX"),
        ("parquet:S3://bucket/music", r"write parquet:s3://BUCKET/PREFIX"),
        ("delta:https://bucket.s3.amazonaws.com/music", r"write delta:s3://.*AWS_ENDPOINT_URL"),
        (r"delta:s3://bucket/music%20x", r"in its address"),
        (r"delta:s3://bucket/music#x", r"such as AWS_ENDPOINT_URL"),
    ],
)
def test_what_is_nearly_a_folder_of_copies_says_what_can_be_meant(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"option 'replica\.to': '{text}' .*{words}"):
        parse_watch_config({"database": DATABASE, "replica": {"to": text}})


@given(st.text() | st.sampled_from([*DESTINATIONS, *FORMATS, "file"]).map("{}:x".format))
def test_any_text_is_a_destination_of_one_kind_or_refused(text: str) -> None:
    taken = []
    for parse in (parse_changes_destination, parse_copies_destination):
        with suppress(ConfigurationError):
            taken.append(parse(text))
    assert len(taken) <= 1
    if any(isinstance(each, FileDestination) for each in taken):
        assert {"/", "."} & set(text) or text.startswith("file:")


def test_the_topic_of_a_table_follows_from_the_template() -> None:
    assert KafkaDestination(("b",), "cdc.{table}").name_topic("S.Singers") == "cdc.S.Singers"
    assert KafkaDestination(("b",), "all").name_topic("Singers") == "all"
    topic = PubSubDestination("p-1").name_topic("Singers")
    assert topic == "projects/p-1/topics/Singers"
    with pytest.raises(ConfigurationError, match="Pub/Sub does not allow a topic 'T'"):
        PubSubDestination("p-1").name_topic("T")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delivery": {"to": "kafka://"}}, "write kafka://BROKER:PORT"),
        ({"delivery": {"to": "kafka://b1:x"}}, "write kafka://BROKER:PORT"),
        ({"delivery": {"to": "kafka://b1/{tabel}"}}, "does not allow a topic '{tabel}'"),
        ({"delivery": {"to": "pubsub://P_1"}}, "write pubsub://PROJECT/TOPIC"),
        ({"delivery": {"to": "pubsub://p-1/google"}}, "does not allow a topic 'google'"),
        ({"delivery": {"to": "kafak://b1"}}, "did you mean 'kafka'"),
        (
            {"delivery": {"kafka": {"transactional": True}}},
            r"\[delivery.kafka\] needs to = 'kafka:",
        ),
        ({"delivery": {"pubsub": {"messages_max": 1}}}, r"\[delivery.pubsub\] needs to = 'pubsub:"),
        ({"delivery": {"to": "kafka://b", "kafka": {"transactionl": 1}}}, "mean 'transactional'"),
        ({"delivery": {"to": "kafka://b", "callback": "a:b"}}, "do not work together"),
        ({"delivery": {"to": "kafka://b", "kafka": {"transactional": True}}}, "needs 'consumer'"),
        (
            {"delivery": {"to": "kafka://b", "kafka": {"properties": {"enable.idempotence": 0}}}},
            "'enable.idempotence' cannot be set: it is always on",
        ),
        (
            {"delivery": {"to": "kafka://b", "kafka": {"transactional_id": "t"}}},
            "needs transactional = true",
        ),
        (
            {
                "tables": ["Singers"],
                "delivery": {
                    "to": "pubsub://p-1",
                    "envelope": "ydb",
                    "envelope_options": BARRIERS,
                },
            },
            "has barriers, and Pub/Sub has no order over several keys",
        ),
        ({"delivery": {"to": "kafka://b/all", "envelope": "ydb"}}, r"a topic for each table"),
    ],
)
def test_what_does_not_work_together_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_watch_config({"database": DATABASE} | options)


def test_a_queue_takes_binary_envelopes_and_a_topic_names_the_table() -> None:
    pytest.importorskip("fastavro", reason="needs the extra [avro]")
    assert config_of({"to": "kafka://b", "envelope": "datastream-avro"}).format.binary
    assert not config_of({"to": "kafka://b", "envelope": "ydb"}).format.names_table


def test_each_consumer_has_a_transactional_id_of_its_own() -> None:
    pytest.importorskip("confluent_kafka", reason="needs the extra [kafka]")
    queue = KafkaDestination(("127.0.0.1:1",))
    kafka = {"transactional": True}
    config = config_of({"to": "kafka://127.0.0.1:1", "kafka": kafka}, consumer="mine")
    sink = make_sink(config, queue)
    assert sink.transactional_id == "spanner-watcher.p1.i1.d1.mine"


@pytest.mark.parametrize(("to", "extra"), [("kafka://b", "kafka"), ("pubsub://p-1", "pubsub")])
def test_a_missing_client_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, to: str, extra: str
) -> None:
    monkeypatch.setitem(EXTRAS, extra, ("no_such_module",))
    for load in (load_confluent_kafka, load_pubsub):
        load.cache_clear()
    config = config_of({"to": to})
    with pytest.raises(MissingExtraError, match=rf"pip install 'spanner-watcher\[{extra}\]'"):
        open_queue(config)
    finding = check_queue(config)
    assert not finding.ok
    assert extra in finding.detail


# Each queue has everything about it in its class, and its module.


def test_every_queue_is_registered_as_a_whole() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs/sinks.md").read_text()
    reference = (ROOT / "docs/reference/commands.md").read_text()
    assert set(SINKS) == set(DESTINATIONS) == set(QueueSections.model_fields)
    for scheme, kind in DESTINATIONS.items():
        spelling = SINKS[scheme].spelling
        assert kind.scheme == scheme
        assert spelling.startswith(f"{scheme}:")
        assert QueueSections.model_fields[scheme].annotation is kind.options
        assert spelling in page
        if SINKS[scheme].libraries:
            assert scheme in extras["optional-dependencies"]
            assert f"pip install 'spanner-watcher[{scheme}]'" in page
        assert spelling in reference
        assert find_spec(f"watcher.sinks.{scheme}") is not None
    for name in ("service", "messaging_system"):
        assert len({getattr(kind, name) for kind in DESTINATIONS.values()}) == len(DESTINATIONS)


def test_every_format_of_copies_is_registered_as_a_whole() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs/replicas-spark.md").read_text()
    reference = (ROOT / "docs/reference/commands.md").read_text()
    for name, chosen in FORMATS.items():
        own = (chosen.own.opens,) if chosen.own is not None else ()
        for opener in (chosen.reader, chosen.frames, *own):
            module, _, function = opener.partition(":")
            source = Path(find_spec(module).origin or "").read_text()  # type: ignore[union-attr]
            assert f"\ndef {function}(" in source or f"\nclass {function}(" in source
        if chosen.extra is not None:
            assert chosen.extra in EXTRAS
            assert chosen.extra in extras["optional-dependencies"]
        if chosen.release is not None:
            assert chosen.release.artifact in page
        assert chosen.merged
        assert chosen.title in page
        assert f"{name}:" in reference
    assert len({chosen.title for chosen in FORMATS.values()}) == len(FORMATS)


@dataclass(frozen=True, slots=True)
class ListDestination(Destination):
    """A queue that this module adds."""

    scheme = "list"
    service = "A list"
    messaging_system = "list"
    ordered = False
    compacted = True
    options = QueueOptions

    place: str
    topic: str = "{table}"

    @classmethod
    def parse(cls, place: str, topic: str) -> ListDestination | None:
        return cls(place, topic)

    def name_topic(self, table: str) -> str:
        return table


def test_a_queue_that_is_added_is_taken_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Destination] = []
    module = ModuleType("watcher.sinks.list")
    module.open_sink = lambda _, queue: opened.append(queue)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(DESTINATIONS, "list", ListDestination)
    monkeypatch.setattr(DeliveryConfig, "list", QueueOptions(), raising=False)
    config = config_of({"to": "list://here/all"})
    open_queue(config)
    assert opened == [ListDestination("here", "all")] == [config.delivery.queue]
    assert describe_sink(config)["messaging.system"] == "list"
    assert isinstance(config.message_format, TableKeys)
    with pytest.raises(ConfigurationError, match="A list has no order over several keys"):
        config_of({"to": "list://here", "envelope": "ydb", "envelope_options": BARRIERS})


# Keys of several tables in one place.


def keys_of(config: WatchConfig, *changes: Change) -> list[bytes | None]:
    return [message.key for change in changes for message in config.message_format.encode(change)]


def of_another_table(change: Change) -> Change:
    return replace(change, shape=replace(change.shape, table="Other"))


@pytest.mark.parametrize(
    ("delivery", "options"),
    [
        ({"to": "kafka://b/all"}, {}),
        ({"to": "kafka://b/all", "envelope": "debezium"}, {}),
        ({"to": "kafka://b/all", "envelope": "debezium"}, {"with_schema": True}),
        ({"to": "kafka://b/all", "envelope": "datastream"}, {}),
        ({"to": "-", "envelope": "debezium"}, {}),
        ({"to": "changes.jsonl", "envelope": "debezium"}, {}),
    ],
)
def test_rows_of_two_tables_have_two_keys_in_one_topic_or_file(
    delivery: dict[str, Any], options: dict[str, Any]
) -> None:
    change = example_change()
    config = config_of(delivery | {"envelope_options": options}, tables=["AccountBalance", "Other"])
    one, other = keys_of(config, change, of_another_table(change))
    assert one != other
    for table, key in ((change.table, one), ("Other", other)):
        parsed = json.loads(key or b"")
        if isinstance(parsed, list):
            assert parsed[0] == table
        elif "schema" in parsed:
            fields = [field["field"] for field in parsed["schema"]["fields"]]
            assert fields == list(parsed["payload"])
            assert parsed["payload"][TABLE_FIELD] == table
        else:
            assert parsed[TABLE_FIELD] == table


@pytest.mark.parametrize(
    ("to", "tables"),
    [("kafka://b/all", ["T"]), ("kafka://b/c.{table}", ["*"]), ("pubsub://my-project/all", ["*"])],
)
def test_a_key_is_the_primary_key_where_it_is_of_one_table(to: str, tables: list[str]) -> None:
    change = example_change()
    config = config_of({"to": to}, tables=tables)
    assert keys_of(config, change) == [config.format.encode(change)[0].key]


def test_a_tombstone_in_a_file_of_several_tables_says_of_which_it_is() -> None:
    deleted = replace(example_change(), operation=Operation.DELETE, new_values=None)
    lines = JsonLines(config_of({"to": "file:f", "envelope": "debezium"}).message_format)
    *_, tombstone = lines.encode(deleted)
    assert json.loads(tombstone)["value"] is None
    assert json.loads(tombstone)["key"][TABLE_FIELD] == deleted.table


@pytest.mark.parametrize("key", [b"[]", b"{}", None, b'{"schema":1}', b'{"Id":"a,b"}'])
def test_any_key_takes_the_table(key: bytes | None) -> None:
    added = add_table(key, 'a"b')
    if key is None:
        assert added is None
        return
    before, after = json.loads(key), json.loads(added or b"")
    assert after == (['a"b', *before] if before == [] else {TABLE_FIELD: 'a"b', **before})


# Names and starts.


def test_a_name_that_is_too_long_is_refused_before_anything_starts() -> None:
    assert config_of({}, consumer="x" * 256).consumer
    with pytest.raises(ConfigurationError, match="at most 256 characters"):
        config_of({}, consumer="x" * 257)
    with pytest.raises(ConfigurationError, match=r"its parts.*: use at most 247 characters"):
        config_of({}, consumer="x" * 248, parts=10)
    assert config_of({}, consumer="x" * 247, parts=10).parts


@pytest.mark.parametrize("start", ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_a_start_before_1970_is_refused(start: str) -> None:
    with pytest.raises(ConfigurationError, match="use earliest, or a time from 1970 on"):
        config_of({}, start=start)


def test_changes_and_dead_letters_do_not_share_a_file() -> None:
    with pytest.raises(ConfigurationError, match=r"are both 'a\.jsonl'"):
        config_of({"to": "a.jsonl", "then": "skip", "dead_letters": "a.jsonl"})
