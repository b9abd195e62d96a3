"""What the documentation shows is right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pydantic.alias_generators import to_camel

from watcher.settings.spark import SourceOptions
from watcher.settings.watcher import parse_watch_config

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_configuration_in_the_documentation_is_valid() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "watch.md").read_text(), re.DOTALL)
    config = parse_watch_config(tomllib.loads(text))
    assert config.consumer == "my-job"
    assert config.clearing is not None
    assert config.table["Events"].shard == "time"


def test_the_configurations_of_queues_in_the_documentation_are_valid() -> None:
    text = (DOCS / "sinks.md").read_text()
    configs = [
        parse_watch_config(tomllib.loads(listing))
        for listing in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    ]
    kafka, pubsub = (str(config.delivery.queue) for config in configs)
    assert (kafka, pubsub) == ("kafka://broker1:9092,broker2:9092", "pubsub://my-project")


def test_every_option_of_the_spark_source_is_in_the_documentation() -> None:
    table = [line for line in (DOCS / "spark.md").read_text().splitlines() if line[:3] == "| `"]
    documented = set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table)))
    assert documented == {to_camel(name) for name in SourceOptions.model_fields}
