"""The workflows: what a change and a night run; a release is built once, tested, then published,
with no more rights than that needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github/workflows/release.yml"
TESTS = ROOT / ".github/workflows/tests.yml"
PROGRAMS = "scripts/install_test_programs.sh"
BY_TAG = {"pypa/gh-action-pypi-publish"}
"""Actions whose commit was not known when they were pinned: a tag can be moved."""
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

pytestmark = pytest.mark.skipif(
    not WORKFLOW.exists(), reason="a source distribution has no workflows"
)


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    parsed: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text())
    return parsed


@pytest.fixture(scope="module")
def tests() -> dict[Any, Any]:
    parsed: dict[Any, Any] = yaml.safe_load(TESTS.read_text())
    return parsed


def list_steps(workflow: dict[Any, Any], job: str | None = None) -> Iterator[dict[str, Any]]:
    for name, content in workflow["jobs"].items():
        if job in (None, name):
            yield from content["steps"]


def list_actions(workflow: dict[Any, Any], job: str | None = None) -> list[str]:
    return [step["uses"] for step in list_steps(workflow, job) if "uses" in step]


def list_commands(workflow: dict[Any, Any], job: str) -> list[str]:
    return [step["run"] for step in list_steps(workflow, job) if "run" in step]


def test_only_a_tag_of_a_version_starts_it(workflow: dict[Any, Any]) -> None:
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key 'on' as true


def test_actions_are_pinned_to_a_commit(workflow: dict[Any, Any], tests: dict[Any, Any]) -> None:
    for action in list_actions(workflow) + list_actions(tests):
        name, _, version = action.partition("@")
        if name not in BY_TAG:
            assert re.fullmatch(r"[0-9a-f]{40}", version), action
        else:
            assert re.fullmatch(r"v\d+\.\d+\.\d+", version), action


def test_what_was_built_once_is_what_is_tested_and_published(workflow: dict[Any, Any]) -> None:
    jobs = workflow["jobs"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert jobs["wheel"]["needs"] == "build"
    uploads = [step for step in list_steps(workflow) if "upload-artifact" in step.get("uses", "")]
    downloads = [
        step for step in list_steps(workflow) if "download-artifact" in step.get("uses", "")
    ]
    assert [step["with"]["name"] for step in uploads] == ["dist"]
    assert [step["with"]["name"] for step in downloads] == ["dist", "dist"]
    for job in ("wheel", "publish"):
        assert not [action for action in list_actions(workflow, job) if "checkout" in action]


def test_only_publishing_may_ask_for_an_identity(workflow: dict[Any, Any]) -> None:
    assert workflow["permissions"] == {}
    rights = {name: job["permissions"] for name, job in workflow["jobs"].items()}
    publishing = rights.pop("publish")
    assert publishing == {"id-token": "write", "contents": "read", "attestations": "write"}
    assert all(right == "read" for granted in rights.values() for right in granted.values())
    assert "secrets" not in WORKFLOW.read_text()
    assert workflow["jobs"]["publish"]["environment"] == "pypi"


def test_it_is_published_with_attestations(workflow: dict[Any, Any]) -> None:
    *_, attest, publish = list_steps(workflow, "publish")
    assert attest["uses"].startswith("actions/attest@")
    assert attest["with"] == {"subject-path": "dist/*"}
    assert publish["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert publish["with"] == {"attestations": True}


def test_a_release_and_a_night_run_every_test(
    workflow: dict[Any, Any], tests: dict[Any, Any]
) -> None:
    wanted = [PROGRAMS, "make test-all"]
    assert list_commands(workflow, "suite") == list_commands(tests, "night") == wanted


def test_a_change_runs_what_ci_runs(tests: dict[Any, Any]) -> None:
    assert list_commands(tests, "change") == [".ci/run"]
    assert os.access(ROOT / ".ci/run", os.X_OK)
    assert PROGRAMS in (ROOT / ".ci/run").read_text()
    assert {"push", "pull_request", "schedule"} <= set(tests[True])


def test_ci_installs_what_tests_skip_without() -> None:
    script = ROOT / PROGRAMS
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True, timeout=60)
    installed = script.read_text()
    for name in ("chromium", "chromium-driver", "prometheus", "postgresql", "maven", "axe-core"):
        assert name in installed


def test_tests_may_only_read(tests: dict[Any, Any]) -> None:
    assert tests["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in tests["jobs"].values())


def test_the_wheel_is_tried_with_every_python_that_is_promised(workflow: dict[Any, Any]) -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert workflow["jobs"]["wheel"]["strategy"]["matrix"]["python"] == named


def test_every_command_is_valid_shell(workflow: dict[Any, Any]) -> None:
    for step in list_steps(workflow):
        if "run" in step:
            script = re.sub(r"\$\{\{.*?\}\}", "X", step["run"])
            subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=60)


@pytest.mark.parametrize(("tag", "code"), [(f"v{PROJECT['version']}", 0), ("v0.0.1", 1)])
def test_a_tag_that_is_not_the_version_is_refused(
    workflow: dict[Any, Any], tag: str, code: int
) -> None:
    (check,) = (
        step
        for step in list_steps(workflow, "build")
        if step.get("name") == "The tag is the version"
    )
    folder = Path(sys.executable).parent
    result = subprocess.run(
        ["bash", "-e", "-c", check["run"]],
        cwd=ROOT,
        env=os.environ
        | {"GITHUB_REF_NAME": tag, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == code, result.stderr
