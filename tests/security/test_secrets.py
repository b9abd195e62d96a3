"""Every setting that may be a secret carries a marker, and nothing that anybody reads has it."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle
import traceback
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union

import pytest
from fixtures.commands import run_command
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database
from pydantic import BaseModel, ConfigDict

from watcher.model.errors import ConfigurationError
from watcher.runners.preflight import check
from watcher.settings.secret_values import HIDDEN, Secret
from watcher.settings.spark import SourceOptions
from watcher.settings.watcher import WatchConfig, parse_watch_config
from watcher.sinks.kafka_producer import make_producer

MARKER = "hunter2-is-secret"
DATABASE = "spanner://projects/p1/instances/i1/databases/d1"

SECRET = {
    *("delivery.kafka.properties", "delivery.kafka.schema_registry_properties"),
    *("delivery.webhook.headers", "delivery.webhook.secret", "replica.spark"),
    *("delivery.postgresql.password", "delivery.postgresql.properties"),
    *("delivery.duckdb.properties", "delivery.redis.password"),
    "delivery.nats.password",
}
"""The settings that may hold a secret."""
NOT_SECRET = {
    "page.token_file": "the path of a file",
    "mask_key": "where the key is: a file, or a variable of the environment",
    "endpoint.client_key": "the path of a file",
    "delivery.nats.credentials": "the path of a file",
    "endpoint.google_credentials": "whether calls carry them",
    "positions.path": "the path of a file",
    "delivery.kafka.transactional_id": "an id that brokers show",
    "transaction_tag": "a tag of transactions, which Spanner shows",
    "stream.tag": "a tag of transactions, which Spanner shows",
    "table": "columns, shards and indexes",
    "table.mask_key": "where the key is: a file, or a variable of the environment",
    "table_options.mask_key": "where the key is: a file, or a variable of the environment",
    "table.masks": "columns, and how they are masked",
    "table_options.masks": "columns, and how they are masked",
    "table_options": "columns, shards and indexes",
    "deleted_columns": "names and values of columns",
    "envelope_options": "names and switches of a format",
    "delivery.envelope_options": "names and switches of a format",
    "table.shard_key": "names of columns",
    "replica.layout": "names of columns, and sizes of files",
}
"""Settings that look as if they did, or whose names or values are free, and why they do not."""
SUSPICIOUS = {"password", "secret", "token", "key", "credential", "credentials", "tag", "auth"}


def walk(model: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting with its type, also those of sections."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        hints = typing.get_type_hints(model, include_extras=False)
        fields = {name: hints[name] for name in model.model_fields}
    else:
        fields = typing.get_type_hints(model, localns={"ConfigDict": ConfigDict})
        fields = {each.name: fields[each.name] for each in dataclasses.fields(model)}
    for name, kind in fields.items():
        yield before + name, kind
        for part in list_parts(kind):
            if dataclasses.is_dataclass(part) or issubclass(part, BaseModel):
                yield from walk(part, f"{before}{name}.")


def list_parts(kind: Any) -> list[type]:
    """The classes that a type is made of."""
    origin = typing.get_origin(kind)
    if origin is Annotated:
        return list_parts(typing.get_args(kind)[0])
    if origin in (Union, UnionType) or origin is not None:
        return [part for each in typing.get_args(kind) for part in list_parts(each)]
    return [kind] if isinstance(kind, type) else []


def is_free(kind: Any) -> bool:
    """Whether a setting takes names or values that the model does not know."""
    return typing.get_origin(kind) in (dict, Mapping) or any(
        typing.get_origin(each) is not None and issubclass(typing.get_origin(each), Mapping)
        for each in (kind, *typing.get_args(kind))
        if isinstance(typing.get_origin(each), type)
    )


@pytest.mark.parametrize("model", [WatchConfig, SourceOptions])
def test_every_setting_that_may_be_a_secret_is_one(model: type[BaseModel]) -> None:
    """A new setting with such a name, or with free values, has to be decided here."""
    for name, kind in walk(model):
        if Secret in list_parts(kind):
            assert name in SECRET
        elif is_free(kind) or SUSPICIOUS & {*name.rpartition(".")[2].split("_")}:
            assert name in NOT_SECRET, f"{name} may be a secret: use Secret, or say why not"


def test_the_list_of_secrets_is_that_of_the_model() -> None:
    assert {name for name, kind in walk(WatchConfig) if Secret in list_parts(kind)} == SECRET


ADDRESSES = {
    "webhook": "webhook://h",
    "postgresql": "postgresql://h/d",
    "duckdb": "duckdb:a.db",
    "redis": "redis://h",
    "nats": "nats://h",
}
"""Where changes go, by the section that is for it."""


def place(name: str, value: object) -> dict[str, Any]:
    """Settings in which one has a value; its section can be used."""
    values: dict[str, Any] = {
        "database": DATABASE,
        "consumer": "me",
        "delivery": {"to": ADDRESSES.get(name.split(".")[1], "kafka://b")},
        "replica": {"to": "delta:x"},
    }
    if "schema_registry" in name:
        values["delivery"]["kafka"] = {"schema_registry": "http://r"}
    section = values
    *sections, option = name.split(".")
    for each in sections:
        section = section.setdefault(each, {})
    section[option] = value
    return values


def list_texts(error: BaseException) -> str:
    """What anybody sees of an error, with a traceback of what was before."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


@pytest.mark.parametrize("name", sorted(SECRET))
def test_a_secret_has_no_text(name: str, caplog: pytest.LogCaptureFixture) -> None:
    value = MARKER if name in ONE_VALUE else {"a.b": MARKER}
    config = parse_watch_config(place(name, value))
    caplog.set_level(logging.DEBUG)
    logging.getLogger("watcher").warning("%s %r %s", config, config, name)
    shown = [
        *(repr(config), str(config), f"{config}", config.model_dump_json()),
        json.dumps(config.model_dump(mode="json")),
        str(config.model_dump()),
        caplog.text,
    ]
    assert HIDDEN in shown[0]
    assert not [text for text in shown if MARKER in text]
    assert copy.copy(config) == config


def test_a_secret_is_not_pickled() -> None:
    """A pickle is readable wherever it goes: to Spark's executors, into a checkpoint."""
    with pytest.raises(TypeError, match="readable") as raised:
        pickle.dumps(parse_watch_config(place("replica.spark", {"a.b": MARKER})))
    assert MARKER not in list_texts(raised.value)


WRONG = [
    {"sasl": {"password": MARKER}},  # the name without quotes
    {"a.b": [MARKER]},
    {"a.b": {"files": MARKER}},
    {"a.b": {"file": "x", "env": MARKER}},
    {"a.b": {"file": {"path": MARKER}}},
    [MARKER],
    MARKER,
    {"": {"x": MARKER}},
]


ONE_VALUE = {
    *("delivery.webhook.secret", "delivery.postgresql.password"),
    *("delivery.redis.password", "delivery.nats.password"),
}
"""Settings that are a secret themselves: a text is right there."""


@pytest.mark.parametrize(
    ("name", "value"),
    [(n, v) for n in sorted(SECRET) for v in WRONG if n not in ONE_VALUE or v != MARKER],
)
def test_an_error_does_not_show_what_was_written(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=name) as raised:
        parse_watch_config(place(name, value))
    if value == MARKER:
        return  # a text in place of a table: nothing says that it is a secret
    assert MARKER not in list_texts(raised.value)


def test_the_error_says_what_to_write() -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_watch_config(place("delivery.kafka.properties", {"sasl": {"password": MARKER}}))
    assert "a name with dots is written in quotes" in str(raised.value)


@pytest.mark.parametrize(
    "to",
    [
        f"kafka://user:{MARKER}@b/topic",
        f"kafka://{MARKER}@b",
        f"kafkaa://user:{MARKER}@b",
        f"pubsub://user:{MARKER}@p/t",
        f"postgresql://user:{MARKER}@h/d",
        f"postgresql://user:a/{MARKER}@h/d",
        f"postgresql://h/d?password={MARKER}",
        f"redis://user:{MARKER}@h",
        f"nats://user:{MARKER}@h",
        f"nats://user:a/{MARKER}@h/x",
        f"postgres://user:a/{MARKER}@h/d",
    ],
)
def test_credentials_in_a_destination_are_not_shown(to: str) -> None:
    with pytest.raises(ConfigurationError, match=r"delivery\.to") as raised:
        parse_watch_config({"database": DATABASE, "delivery": {"to": to}})
    assert MARKER not in list_texts(raised.value)


@pytest.mark.parametrize("to", [f"s3://user:{MARKER}@b/f", f"delta:s3://user:{MARKER}@b/f"])
def test_credentials_in_a_folder_are_refused_and_not_shown(to: str, music: Database) -> None:
    command = ["replicate", "-d", str(address_of(music)), "-t", "Singers", "--to", to, "--once"]
    result = run_command(*command)
    assert result.returncode == 2
    assert MARKER not in result.stdout + result.stderr


def test_a_secret_comes_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text(f"{MARKER}\n")
    monkeypatch.setenv("KAFKA_USER", "me")
    given = {"sasl.password": {"file": str(file)}, "sasl.username": {"env": "KAFKA_USER"}}
    properties = parse_watch_config(place("delivery.kafka.properties", given)).delivery.kafka
    revealed = {name: each.reveal() for name, each in properties.properties.items()}
    assert revealed == {"sasl.password": MARKER, "sasl.username": "me"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"file": "/nowhere/password"}, "cannot read the file /nowhere/password: No such file"),
        ({"file": "binary"}, "cannot read the file binary: it is not text"),
        ({"env": "NOT_SET_AT_ALL"}, "the environment variable NOT_SET_AT_ALL is not set"),
    ],
)
def test_a_secret_that_is_not_there_is_an_error(
    given: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(MARKER.encode() + b"\xff")
    with pytest.raises(ConfigurationError, match=message) as raised:
        parse_watch_config(place("delivery.kafka.properties", {"sasl.password": given}))
    assert MARKER not in list_texts(raised.value)


def test_the_client_of_kafka_does_not_show_a_value_that_it_refuses() -> None:
    secrets = {"security.protocol": Secret(MARKER)}
    with pytest.raises(ConfigurationError, match=r"security\.protocol") as raised:
        make_producer(["localhost:1"], secrets, None, lambda _: None)
    assert MARKER not in list_texts(raised.value)


def test_commands_and_their_log_do_not_show_a_secret(music: Database, tmp_path: Path) -> None:
    """``watch`` to brokers that do not answer, with everything logged, and ``check``."""
    file = tmp_path / "watch.toml"
    file.write_text(
        f'''
        database = "{address_of(music)}"
        tables = ["Singers"]
        consumer = "me"
        [delivery]
        to = "kafka://127.0.0.1:1/topic"
        [delivery.kafka.properties]
        "sasl.mechanism" = "PLAIN"
        "security.protocol" = "SASL_PLAINTEXT"
        "sasl.username" = "me"
        "sasl.password" = "{MARKER}"
        "debug" = "security,broker"
        "socket.timeout.ms" = 100
        "message.timeout.ms" = 200
        '''
    )
    for command in (["watch", "--once", "--verbose"], ["check"]):
        result = run_command(*command, "--config", str(file))
        assert result.returncode != 0
        assert MARKER not in result.stdout + result.stderr
    text = file.read_text().replace('"sasl.password" =', "sasl.password =")
    file.write_text(text)
    result = run_command("watch", "--config", str(file))
    assert result.returncode == 2
    assert MARKER not in result.stdout + result.stderr


def test_preflight_does_not_show_a_secret() -> None:
    config = parse_watch_config(place("delivery.kafka.properties", {"sasl.password": MARKER}))
    assert MARKER not in "".join(map(str, check(config)))
