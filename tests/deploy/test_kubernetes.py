"""The manifests for Kubernetes: a leader and a standby without rights, with settings that are
valid, and no file written."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from fixtures.commands import run_command
from fixtures.deployed import ROOT, list_instructions, read_manifests, read_stages
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database

from watcher.settings.destinations import PubSubDestination
from watcher.settings.watcher import parse_watch_config

MANIFESTS = read_manifests()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
DEPLOYMENT: dict[str, Any] = MANIFESTS["Deployment"]["spec"]
POD: dict[str, Any] = DEPLOYMENT["template"]["spec"]
(CONTAINER,) = POD["containers"]
SETTINGS: str = MANIFESTS["ConfigMap"]["data"]["watch.toml"]
CONFIG = parse_watch_config(tomllib.loads(SETTINGS))
STOP_SECONDS_MAX = 60


def test_the_pod_has_no_rights() -> None:
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert POD["automountServiceAccountToken"] is False
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & POD.keys()


def test_it_runs_the_image_of_this_version_as_its_user() -> None:
    assert CONTAINER["image"] == f"spanner-watcher:{VERSION}"
    (user,) = list_instructions(read_stages()[-1], "USER")
    context = POD["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"


def test_it_runs_a_command_that_there_is_with_the_settings_of_the_config_map() -> None:
    result = run_command(*CONTAINER["args"], "--help")
    assert result.returncode == 0, result.stderr
    (volume,), (mount,) = POD["volumes"], CONTAINER["volumeMounts"]
    assert volume["name"] == mount["name"]
    assert volume["configMap"]["name"] == MANIFESTS["ConfigMap"]["metadata"]["name"]
    assert CONTAINER["args"][-2:] == ["--config", f"{mount['mountPath']}/watch.toml"]


def test_one_of_two_pods_stands_by_and_a_window_may_end() -> None:
    assert DEPLOYMENT["replicas"] == 2
    assert CONFIG.standby
    assert CONFIG.consumer
    assert CONFIG.positions.keep == "spanner"
    assert CONFIG.grace < POD["terminationGracePeriodSeconds"]


def test_the_image_has_what_the_queue_of_the_settings_needs() -> None:
    assert isinstance(CONFIG.delivery.queue, PubSubDestination)
    (extras,) = list_instructions(read_stages()[0], "ARG")
    assert "pubsub" in extras.removeprefix("EXTRAS=").split(",")


def test_metrics_are_served_on_the_port_of_the_pod() -> None:
    assert CONFIG.metrics is not None
    (port,) = CONTAINER["ports"]
    assert (CONFIG.metrics.host, CONFIG.metrics.port) == ("0.0.0.0", port["containerPort"])


def test_nothing_is_probed_that_a_standby_does_not_serve() -> None:
    """Metrics are served once the lease is held; nothing else listens."""
    assert not {"livenessProbe", "readinessProbe", "startupProbe"} & CONTAINER.keys()


def test_names_and_labels_fit_together() -> None:
    labels = DEPLOYMENT["template"]["metadata"]["labels"]
    (spread,) = POD["topologySpreadConstraints"]
    for selector in (
        DEPLOYMENT["selector"],
        MANIFESTS["PodDisruptionBudget"]["spec"]["selector"],
        spread["labelSelector"],
    ):
        assert selector["matchLabels"].items() <= labels.items()
    assert POD["serviceAccountName"] == MANIFESTS["ServiceAccount"]["metadata"]["name"]


WATCH_ON_A_READ_ONLY_FILE_SYSTEM = """
import os, sys
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.link", "os.symlink", "tempfile.mkstemp")
def refuse(event, arguments):
    path = arguments[0] if arguments else None
    opened = event == "open" and arguments[2] & WRITING and isinstance(path, str)
    if event in CHANGES or opened and not path.startswith("/dev/"):
        print("changes the file system:", event, path, file=sys.stderr)
        raise OSError(30, "Read-only file system", path)
sys.addaudithook(refuse)
from watcher.cli import main
main()
"""


def test_the_settings_deliver_on_a_read_only_file_system(singers: Database, tmp_path: Path) -> None:
    """As far as Python writes; with the database of this test, and lines instead of the queue."""
    settings = SETTINGS
    for name, value in (
        ("database", f'"{address_of(singers)}"\nstart = "earliest"'),
        ("to", '"-"'),
        ("port", "0"),
    ):
        settings, replaced = re.subn(rf"(?m)^{name} = .*", f"{name} = {value}", settings)
        assert replaced == 1
    path = tmp_path / "watch.toml"
    path.write_text(settings)
    write_singers(singers, [1], "on a read-only file system")
    with (
        (tmp_path / "errors").open("w+") as errors,
        subprocess.Popen(
            [sys.executable, "-u", "-B", "-c", WATCH_ON_A_READ_ONLY_FILE_SYSTEM]
            + [str(path) if "watch.toml" in word else word for word in CONTAINER["args"]],
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
