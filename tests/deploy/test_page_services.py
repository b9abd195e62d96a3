"""The live page as a service: what Kubernetes and systemd start answers, and writes no file."""

from __future__ import annotations

import shlex
import signal
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from fixtures.deployed import (
    DEPLOY,
    PAGE_UNIT,
    READ_ONLY_PROGRAM,
    UNIT_SETTINGS,
    read_manifests,
    read_unit,
    replace_settings,
)
from fixtures.pages import Page, read_link
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database

from watcher.overview.page.access import is_loopback
from watcher.settings.watcher import parse_watch_config

MANIFESTS = read_manifests("page")
CONTAINER = MANIFESTS.container
CONFIG = parse_watch_config(tomllib.loads(MANIFESTS.settings))
SERVICE = MANIFESTS.by_kind["Service"]["spec"]
PROBES = {
    "startupProbe": "/healthz",
    "livenessProbe": "/healthz",
    "readinessProbe": "/readyz",
}
TOKEN = "a-token-that-nobody-guesses"


def find_option(name: str) -> str:
    """The value of an option of the container's command."""
    arguments: list[str] = CONTAINER["args"]
    return arguments[arguments.index(name) + 1]


def test_one_pod_without_state_listens_where_the_service_leads() -> None:
    assert MANIFESTS.deployment["replicas"] == 1
    assert not is_loopback(find_option("--host"))
    assert CONFIG.page is not None
    assert CONTAINER["ports"] == [{"name": "http", "containerPort": CONFIG.page.port}]
    assert SERVICE["type"] == "ClusterIP"
    assert SERVICE["selector"].items() <= MANIFESTS.labels.items()
    (port,) = SERVICE["ports"]
    assert (port["port"], port["targetPort"]) == (CONFIG.page.port, "http")


def test_only_who_asks_for_it_can_send_commands() -> None:
    assert CONFIG.page is not None
    assert not CONFIG.page.control
    assert "--control" not in CONTAINER["args"]


def test_the_token_is_in_a_secret_that_nobody_can_read_here() -> None:
    (volume,) = (each for each in MANIFESTS.pod["volumes"] if "secret" in each)
    (mount,) = (each for each in CONTAINER["volumeMounts"] if each["name"] == volume["name"])
    token = PurePosixPath(find_option("--token-file"))
    assert str(token.parent) == mount["mountPath"]
    assert mount["readOnly"] is True
    assert "Secret" not in MANIFESTS.by_kind
    command = (
        "openssl rand -hex 32 | kubectl create secret generic"
        f" {volume['secret']['secretName']} --from-file={token.name}=/dev/stdin"
    )
    for page in (DEPLOY / "kubernetes/page.yaml", DEPLOY.parent / "docs/deployment.md"):
        assert command in page.read_text(), page


def test_probes_ask_the_port_of_the_page() -> None:
    probes = {name: CONTAINER[name]["httpGet"] for name in CONTAINER if name.endswith("Probe")}
    assert probes == {name: {"path": path, "port": "http"} for name, path in PROBES.items()}


@contextmanager
def run_service(*arguments: str) -> Iterator[Page]:
    """The page, on loopback, of a command that writes no file."""
    with read_link(*arguments, program=READ_ONLY_PROGRAM) as page:
        yield page
        page.process.send_signal(signal.SIGTERM)
        assert page.process.stderr is not None
        assert "changes the file system" not in page.process.stderr.read()


def test_the_pod_answers_probes_without_token_and_others_with_it(
    singers: Database, tmp_path: Path
) -> None:
    config, token = tmp_path / "page.toml", tmp_path / "token"
    database = f'"{address_of(singers)}"'
    config.write_text(replace_settings(MANIFESTS.settings, database=database, port="0"))
    token.write_text(f"{TOKEN}\n")
    files = {find_option("--config"): str(config), find_option("--token-file"): str(token)}
    with run_service(*(files.get(word, word) for word in CONTAINER["args"])) as served:
        page = replace(served, address=f"http://127.0.0.1:{urlsplit(served.address).port}")
        assert page.token is None  # it is in no log
        for path in PROBES.values():
            assert page.get(path, Host="10.0.0.7:8765").status == 200
        for path in ("/", "/api/status", "/metrics"):
            assert page.get(path).status == 401
            assert page.get(path, Authorization=f"Bearer {TOKEN}").status == 200


def test_the_unit_serves_loopback_with_the_settings_of_a_watcher(
    singers: Database, tmp_path: Path
) -> None:
    assert parse_watch_config(tomllib.loads(UNIT_SETTINGS.read_text())).page is None
    config = tmp_path / "watch.toml"
    database = f'"{address_of(singers)}"'
    config.write_text(replace_settings(UNIT_SETTINGS.read_text(), database=database))
    _, *arguments = shlex.split(read_unit(PAGE_UNIT)["Service"]["ExecStart"])
    assert arguments.pop() == "/etc/spanner-watcher/%i.toml"
    with run_service(*arguments, str(config), "--port", "0") as page:
        assert urlsplit(page.address).hostname == "127.0.0.1"
        assert page.token is None
        assert page.get("/readyz").status == 200
        assert page.get("/").status == 200
