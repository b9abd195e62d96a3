"""What the documentation shows is right."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from fixtures.pace import allow
from fixtures.warm_python import WARM_PYTHON

import watcher
from ddl.model.errors import DdlError
from emulator.ports import find_port
from watcher.model.errors import WatcherError
from watcher.settings.watcher import parse_watch_config

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


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
                *("webhook://hooks.example.com", "files:s3://bucket/changes"),
            ],
        ),
        ("databases.md", ["postgresql://db.example.com:5432/music", "duckdb:/data/music.duckdb"]),
    ],
)
def test_the_configurations_of_queues_in_the_documentation_are_valid(
    page: str, queues: list[str], tmp_path: Path
) -> None:
    for name in ("kafka-password", "registry", "hook", "redis", "postgres"):
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
    for module in pkgutil.walk_packages(watcher.__path__, "watcher."):
        if "__main__" not in module.name:
            importlib.import_module(module.name)
    rows = re.findall(r"^\| (\d+) \|.*\| (.*) \|$", (DOCS / "exit-codes.md").read_text(), re.M)
    documented = {
        (name, int(code)) for code, names in rows for name in re.findall(r"`(\w+)`", names)
    }
    errors = list_errors(WatcherError) | list_errors(DdlError)
    own = {each for each in errors if each.__module__.split(".")[0] in ("watcher", "ddl")}
    assert documented == {(each.__name__, each.exit_code) for each in own}  # type: ignore[attr-defined]


RUN_README = r"""
set -e
spanner-watcher() { $PYTHON -c 'from watcher.cli import main; main()' "$@"; }
python() { $PYTHON "$@"; }
wait_for_server() { until grep -q 'listening on' "$FOLDER/log"; do sleep 0.1; done; }
"""


def test_the_listings_without_spark_show_changes(tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text().split("## Without Spark")[1].split("\n## ")[0]
    trial, server, commands = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    (program,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    port = str(find_port())
    (tmp_path / "program.py").write_text(program.replace("watcher.run()", "watcher.run_once()"))
    script = RUN_README + "\n".join(
        [
            trial.replace("try --seconds 10", f"try --seconds {allow(3):.0f}"),
            "echo == server",
            server.replace("9010", port).replace(" &\n", ' > "$FOLDER/log" & SERVER=$!\n'),
            "trap 'kill $(pgrep -P $SERVER) $SERVER' EXIT",
            "wait_for_server",
            commands,
            "echo == program",
            '$PYTHON "$FOLDER/program.py"',
        ]
    )
    result = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=ROOT,
        env=os.environ | {"PYTHON": " ".join(WARM_PYTHON), "FOLDER": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr
    trial_output, _, rest = result.stdout.partition("== server")
    shown, _, printed = rest.partition("== program")
    assert "UPSERT Singers" in trial_output
    assert len(re.findall(r'^\{"id".*"table": "Singers"', shown, re.M)) == 3
    assert "finished" in shown
    assert "3 rows would be cleared" in shown
    assert printed.count("<Change ") == 3


def test_the_files_that_the_readme_links_to_are_there() -> None:
    links = set(re.findall(r"\]\(([\w/.-]+)(?:#[\w-]+)?\)", (ROOT / "README.md").read_text()))
    assert "docs/index.md" in links
    assert {link for link in links if not (ROOT / link).exists()} == set()
