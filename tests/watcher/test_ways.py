"""Each way of docs/choose.md ends in a command that works, tried beside a real server of it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from fixtures.kafka import MockCluster, read_records
from fixtures.listings import ALL, DOCS, ROOT, Listing, follow, read_listings
from fixtures.nats_server import NatsServer
from fixtures.pubsub import PublisherServer
from fixtures.redis_server import RedisServer
from fixtures.table_targets import PostgresTarget
from fixtures.webhook import WebhookServer

PAGE = DOCS / "choose.md"
SERVE = """spanner-watcher emulator --port 9010 --database $D --schema singers.sql &
spanner-watcher ddl apply --database $D --table Singers
python write_singers.py $D
"""
SINGERS = {"Richards", "Smith", "Trentor"}


def read_ways() -> list[str]:
    """The ways that the two tables name."""
    return re.findall(r"^\| [^|]+ \| \[[^]]+\]\(#([\w-]+)\)", PAGE.read_text(), re.MULTILINE)


def names_of(lines: Any) -> set[str]:
    return {json.loads(line)["values"]["LastName"] for line in lines}


def test_each_way_is_a_section_with_a_command() -> None:
    sections = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    named = {
        re.sub(r"[^\w -]", "", each.split("\n")[0]).lower().replace(" ", "-") for each in sections
    }
    assert set(read_ways()) == named
    assert all(re.search(r"```sh\n(?s:.*?)(spanner-watcher|python) ", each) for each in sections)


@pytest.fixture
def ours(
    cluster: MockCluster,
    redis_server: RedisServer,
    nats_server: NatsServer,
    postgres_target: PostgresTarget,
    webhook: WebhookServer,
) -> dict[str, str]:
    """The servers of this machine, by what stands for them in pages."""
    postgres_target.make_schema()
    return {
        "broker1:9092,broker2:9092": cluster.address,
        "broker1:9092": cluster.address,
        "redis://redis.example.com:6379/0?stream={table}": redis_server.address(),
        "nats://nats.example.com:4222/cdc.{table}": nats_server.address(),
        "redis://redis.example.com:6379/0?stream=cdc.{table}": redis_server.address("cdc.{table}"),
        "postgresql://cdc@db.example.com:5432/music?schema=spanner": postgres_target.address,
        "postgresql://cdc@db.example.com:5432/music": postgres_target.address,
        "webhook://hooks.example.com": f"webhook://{webhook.address}",
        "tls = true ": "tls = false",
    }


def follow_on(ours: Mapping[str, str], steps: Sequence[Listing], folder: Path) -> dict[str, str]:
    """What each listing has printed, by its text, beside the servers of this machine."""
    for name in ("singers.sql", "write_singers.py"):
        shutil.copy(ROOT / "examples" / name, folder)
    own = [replace(each, text=fill(each.text, ours)) for each in steps]
    texts = [each.text for each in steps if each.kind == "sh"]
    return dict(zip(texts, follow(own, folder), strict=True))


def fill(text: str, ours: Mapping[str, str]) -> str:
    for theirs, own in ours.items():
        text = text.replace(theirs, own)
    return text


def test_each_way_ends_in_a_command_that_works(
    tmp_path: Path,
    ours: dict[str, str],
    cluster: MockCluster,
    pubsub: PublisherServer,
    redis_server: RedisServer,
    nats_server: NatsServer,
    postgres_target: PostgresTarget,
    webhook: WebhookServer,
) -> None:
    first, *others = [each for each in read_listings(PAGE) if "job.py" not in each.text]
    printed = follow_on(ours, [first, replace(first, text=SERVE), *others], tmp_path)
    (polled,) = [out for text, out in printed.items() if "by-polling" in text]
    assert names_of(re.findall(r"^\{.*\}$", polled, re.MULTILINE)) == SINGERS
    (proved,) = [out for text, out in printed.items() if "verify" in text]
    assert "equal" in proved
    assert {name for name in SINGERS if name in printed["python function.py\n"]} == SINGERS
    assert names_of(each.value for each in read_records(cluster, "cdc.Singers")) == SINGERS
    assert (
        names_of(m.data for m in pubsub.published["projects/my-project/topics/cdc-Singers"])
        == SINGERS
    )
    assert len(redis_server.ids("Singers")) == len(SINGERS)
    assert names_of(each.data for each in nats_server.read("CDC")) == SINGERS
    assert names_of(webhook.lines()) == SINGERS
    assert {row["LastName"] for row in postgres_target.read("Singers")} == SINGERS
    with duckdb.connect(tmp_path / "music.duckdb") as connection:
        rows = connection.sql('SELECT "LastName" FROM "Singers"').fetchall()
    assert {name for (name,) in rows} == SINGERS
    assert list((tmp_path / "changes" / "Singers").rglob("*.jsonl.gz"))


RUNS_ON = re.compile(r"\bspanner-watcher (watch|replicate) ")
"""A command that ends in this test when it has delivered what is there."""
LOOKED_UP = """database = "spanner://projects/my-project/instances/my-instance/databases/my-database"
tables = ["Singers"]
consumer = "my-reader"
"""


def test_the_commands_of_other_pages_work(
    tmp_path: Path,
    ours: dict[str, str],
    pubsub: PublisherServer,
) -> None:
    assert pubsub.address
    mark = "test_the_commands_of_other_pages_work"
    first, *_ = read_listings(PAGE)
    steps = [each for each in ALL if mark in each.mark]
    assert len(steps) == 8
    ends = [
        replace(each, text=RUNS_ON.sub(r"spanner-watcher \1 --once ", each.text)) for each in steps
    ]
    (tmp_path / "watch.toml").write_text(LOOKED_UP)
    (tmp_path / "lake").mkdir()
    stream = (
        "spanner-watcher ddl change-stream create Changes --watch Singers --apply --database $D\n"
    )
    begin = [first, replace(first, text=SERVE + stream)]
    printed = follow_on(ours | {"/lake": str(tmp_path / "lake")}, [*begin, *ends], tmp_path)
    assert (tmp_path / "lake" / "music" / "Singers" / "_delta_log").is_dir()
    (status,) = [out for text, out in printed.items() if "status --database" in text]
    consumers = ("reports", "to-postgres", "to-duckdb", "to-kafka", "to-pubsub", "to-redis")
    assert [name for name in consumers if name not in status] == []
