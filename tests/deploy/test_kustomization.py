"""The base for kustomize has every manifest; kustomize builds it, and kubeconform judges what it
builds by Kubernetes' own schemas."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from fixtures.deployed import DEPLOY, ROOT

FOLDER = DEPLOY / "kubernetes"
FILE = "kustomization.yaml"
PROGRAMS = ROOT / ".cache/kubernetes"
SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
"""Kubernetes' own, whose references lead to a server: kubeconform gets copies whose references lead
to files."""
LOCATION = "{{.NormalizedKubernetesVersion}}/{{.ResourceKind}}{{.KindSuffix}}.json"
REFERENCE, PLACE = '"/api/_definitions.json', '"_definitions.json'
VERSIONS = ("1.30.0", kubernetes_validate.latest_version())
OVERLAY = {
    "resources": ["base"],
    "namePrefix": "music-",
    "images": [{"name": "spanner-watcher", "newName": "registry.example.com/watcher"}],
}


def read_base() -> dict[str, Any]:
    base: dict[str, Any] = yaml.safe_load((FOLDER / FILE).read_text())
    return base


def test_the_base_has_every_manifest() -> None:
    base = read_base()
    assert base.keys() == {"apiVersion", "kind", "resources"}
    assert base["kind"] == "Kustomization"
    assert sorted([*base["resources"], FILE]) == sorted(p.name for p in FOLDER.iterdir())


def test_no_two_resources_have_one_name() -> None:
    """Kustomize refuses an identifier that is there twice."""
    documents = [
        each
        for name in read_base()["resources"]
        for each in yaml.safe_load_all((FOLDER / name).read_text())
    ]
    names = [(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in documents]
    assert len(names) == len(set(names))
    assert len(names) > len(read_base()["resources"])


def find_program(name: str) -> str:
    """A program that Go has built; the test is skipped where it is missing."""
    found = shutil.which(name, path=str(PROGRAMS)) or shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} is installed: scripts/install_test_programs.sh")
    return found


def build(folder: Path) -> str:
    """What kustomize makes of a folder."""
    built = subprocess.run(
        [find_program("kustomize"), "build", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return built.stdout


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the schemas of each version."""
    folder = tmp_path_factory.mktemp("schemas")
    for version in VERSIONS:
        (folder / f"v{version}").mkdir()
        for path in (SCHEMAS / f"v{version}-local-strict").glob("*.json"):
            schema = json.loads(path.read_text().replace(REFERENCE, PLACE))
            schema.pop("$id", None)
            (folder / f"v{version}" / path.name).write_text(json.dumps(schema))
    return folder


def judge(manifests: str, version: str, schemas: Path) -> dict[str, Any]:
    """What kubeconform says: how many are valid, and what is wrong."""
    judged = subprocess.run(
        [
            *(find_program("kubeconform"), "-strict", "-summary", "-output", "json"),
            *("-kubernetes-version", version, "-schema-location", f"{schemas}/{LOCATION}", "-"),
        ],
        input=manifests,
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.stdout, judged.stderr
    said: dict[str, Any] = json.loads(judged.stdout)
    return said


@pytest.mark.parametrize("version", VERSIONS)
def test_what_kustomize_builds_is_valid(version: str, schemas: Path) -> None:
    manifests = build(FOLDER)
    said = judge(manifests, version, schemas)
    count = len(list(yaml.safe_load_all(manifests)))
    assert said["summary"] == {"valid": count, "invalid": 0, "errors": 0, "skipped": 0}, said


def test_an_overlay_changes_names_and_images_and_stays_valid(tmp_path: Path, schemas: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "base")
    (tmp_path / FILE).write_text(yaml.safe_dump(OVERLAY))
    manifests = build(tmp_path)
    assert not judge(manifests, VERSIONS[0], schemas).get("resources")
    for each in yaml.safe_load_all(manifests):
        assert each["metadata"]["name"].startswith("music-")
        for container in (
            each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ())
        ):
            assert container["image"].startswith("registry.example.com/watcher")


def test_kubeconform_finds_what_is_wrong(schemas: Path) -> None:
    wrong = build(FOLDER).replace("readOnlyRootFilesystem", "readOnlyRootFileSystem")
    said = judge(wrong, VERSIONS[0], schemas)
    assert said["summary"]["invalid"] > 0
    assert "readOnlyRootFileSystem" in json.dumps(said["resources"])
