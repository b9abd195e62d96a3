"""What the documentation shows is right."""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.listings import DOCS, ROOT, follow, read_listings
from fixtures.pace import allow

import ddl
import spanner_schema
import watcher
from spanner_schema.model.errors import DdlError
from watcher.model.errors import WatcherError
from watcher.settings.watcher import parse_watch_config


def test_the_configuration_in_the_documentation_is_valid() -> None:
    text, *_ = re.findall(r"```toml\n(.*?)```", (DOCS / "watch.md").read_text(), re.DOTALL)
    config = parse_watch_config(tomllib.loads(text))
    assert config.consumer == "my-job"
    assert config.clearing is not None
    assert config.table["Events"].shard == "time"


@pytest.mark.parametrize(
    ("page", "queues"),
    [
        (
            "sinks.md",
            [
                *("kafka://broker1:9092,broker2:9092", "kafka://broker1:9092,broker2:9092"),
                *("pubsub://my-project", "redis://redis.example.com:6379/0"),
                "nats://nats1.example.com:4222,nats2.example.com:4222",
                *("webhook://hooks.example.com", "files:s3://bucket/changes"),
            ],
        ),
        ("databases.md", ["postgresql://db.example.com:5432/music", "duckdb:/data/music.duckdb"]),
    ],
)
def test_the_configurations_of_queues_in_the_documentation_are_valid(
    page: str, queues: list[str], tmp_path: Path
) -> None:
    for name in ("kafka-password", "registry", "hook", "redis", "nats", "postgres"):
        (tmp_path / name).write_text("secret")
    text = (DOCS / page).read_text().replace("/run/secrets", str(tmp_path))
    configs = [
        parse_watch_config(tomllib.loads(listing))
        for listing in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    ]
    assert [str(config.delivery.queue) for config in configs] == queues


def list_errors(base: type[Exception]) -> set[type[Exception]]:
    """An error and everything that inherits from it."""
    return {base}.union(*(list_errors(each) for each in base.__subclasses__()))


def test_every_error_is_in_the_list_of_exit_codes_with_its_code() -> None:
    for package in (watcher, ddl, spanner_schema):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "__main__" not in module.name:
                importlib.import_module(module.name)
    rows = re.findall(r"^\| (\d+) \|.*\| (.*) \|$", (DOCS / "exit-codes.md").read_text(), re.M)
    documented = {
        (name, int(code)) for code, names in rows for name in re.findall(r"`(\w+)`", names)
    }
    errors = list_errors(WatcherError) | list_errors(DdlError)
    own = {
        each
        for each in errors
        if each.__module__.split(".")[0] in ("watcher", "ddl", "spanner_schema")
    }
    assert documented == {(each.__name__, each.exit_code) for each in own}  # type: ignore[attr-defined]


def test_the_listing_of_the_readme_shows_changes(tmp_path: Path) -> None:
    on_site, *_ = [each for each in read_listings(DOCS / "index.md") if each.kind == "sh"]
    listing, *_ = [each for each in read_listings(ROOT / "README.md") if each.kind == "sh"]
    assert on_site.text == listing.text
    text = listing.text.replace("try --seconds 10", f"try --seconds {allow(3):.0f}")
    (output,) = follow([replace(listing, text=text)], tmp_path)
    assert "UPSERT Singers" in output


def test_the_readme_is_a_screen() -> None:
    words = re.sub(
        r"<picture>.*?</picture>|\(.*?\)", "", (ROOT / "README.md").read_text(), flags=re.DOTALL
    )
    assert len(words.split()) < 450


def test_the_files_that_the_readme_links_to_are_there() -> None:
    text = (ROOT / "README.md").read_text()
    links = set(re.findall(r"(?:\]\(|src(?:set)?=\")([\w/.-]+)(?:#[\w-]+)?[)\"]", text))
    assert "docs/pictures/try-dark.webp" in links
    assert "docs/index.md" in links
    assert {link for link in links if not (ROOT / link).exists()} == set()
