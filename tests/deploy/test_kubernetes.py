"""The manifests for Kubernetes: pods without rights, of the image of this version, with settings
that are valid; of ``watch`` a leader and a standby, and no file written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest
from fixtures.commands import run_command
from fixtures.deployed import (
    READ_ONLY_PROGRAM,
    ROOT,
    Manifests,
    list_extras,
    list_instructions,
    read_manifests,
    read_stages,
    replace_settings,
)
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database

from watcher.settings.destinations import PubSubDestination
from watcher.settings.watcher import parse_watch_config

WATCH, PAGE = read_manifests("watch"), read_manifests("page")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CONFIG = parse_watch_config(tomllib.loads(WATCH.settings))
STOP_SECONDS_MAX = 60

both = pytest.mark.parametrize("manifests", [WATCH, PAGE], ids=["watch", "page"])


@both
def test_the_pod_has_no_rights(manifests: Manifests) -> None:
    pod = manifests.pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert manifests.container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


@both
def test_it_runs_the_image_of_this_version_as_its_user(manifests: Manifests) -> None:
    assert manifests.container["image"] == f"spanner-watcher:{VERSION}"
    (user,) = list_instructions(read_stages()[-1], "USER")
    context = manifests.pod["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"


@both
def test_it_runs_a_command_that_there_is_with_the_settings_of_the_config_map(
    manifests: Manifests,
) -> None:
    arguments = manifests.container["args"]
    result = run_command(*arguments, "--help")
    assert result.returncode == 0, result.stderr
    (volume,) = (each for each in manifests.pod["volumes"] if "configMap" in each)
    (mount,) = (
        each for each in manifests.container["volumeMounts"] if each["name"] == volume["name"]
    )
    config_map = manifests.by_kind["ConfigMap"]
    assert volume["configMap"]["name"] == config_map["metadata"]["name"]
    (file,) = config_map["data"]
    assert arguments[1:3] == ["--config", f"{mount['mountPath']}/{file}"]


@both
def test_names_and_labels_fit_together(manifests: Manifests) -> None:
    assert manifests.deployment["selector"]["matchLabels"].items() <= manifests.labels.items()
    account = manifests.by_kind["ServiceAccount"]["metadata"]["name"]
    assert manifests.pod["serviceAccountName"] == account


def test_a_leader_or_a_standby_is_there_on_other_nodes() -> None:
    (spread,) = WATCH.pod["topologySpreadConstraints"]
    budget = WATCH.by_kind["PodDisruptionBudget"]["spec"]
    for selector in (budget["selector"], spread["labelSelector"]):
        assert selector["matchLabels"].items() <= WATCH.labels.items()


def test_watch_and_page_replace_nothing_of_each_other() -> None:
    """A file that is applied after the other one adds to it."""
    names = [
        (kind, manifest["metadata"]["name"])
        for manifests in (WATCH, PAGE)
        for kind, manifest in manifests.by_kind.items()
    ]
    assert len(names) == len(set(names))
    assert not WATCH.labels.items() & PAGE.labels.items()


def test_one_of_two_pods_stands_by_and_a_window_may_end() -> None:
    assert WATCH.deployment["replicas"] == 2
    assert CONFIG.standby
    assert CONFIG.consumer
    assert CONFIG.positions.keep == "spanner"
    assert CONFIG.grace < WATCH.pod["terminationGracePeriodSeconds"]


def test_the_image_has_what_the_queue_of_the_settings_needs() -> None:
    assert isinstance(CONFIG.delivery.queue, PubSubDestination)
    assert "pubsub" in list_extras()


def test_metrics_are_served_on_the_port_of_the_pod() -> None:
    assert CONFIG.metrics is not None
    (port,) = WATCH.container["ports"]
    assert (CONFIG.metrics.host, CONFIG.metrics.port) == ("0.0.0.0", port["containerPort"])


def test_nothing_is_probed_that_a_standby_does_not_serve() -> None:
    """Metrics are served once the lease is held; nothing else listens."""
    assert not {"livenessProbe", "readinessProbe", "startupProbe"} & WATCH.container.keys()


def test_the_settings_deliver_on_a_read_only_file_system(singers: Database, tmp_path: Path) -> None:
    """With the database of this test, and lines instead of the queue."""
    path = tmp_path / "watch.toml"
    database = f'"{address_of(singers)}"\nstart = "earliest"'
    path.write_text(replace_settings(WATCH.settings, database=database, to='"-"', port="0"))
    write_singers(singers, [1], "on a read-only file system")
    with (
        (tmp_path / "errors").open("w+") as errors,
        subprocess.Popen(
            [*READ_ONLY_PROGRAM]
            + [str(path) if "watch.toml" in word else word for word in WATCH.container["args"]],
            cwd="/",
            env=os.environ,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        code = process.wait(STOP_SECONDS_MAX)
        errors.seek(0)
        log = errors.read()
    assert "changes the file system" not in log
    assert json.loads(line)["key"] == {"SingerId": 1}, log
    assert code == 0, log
