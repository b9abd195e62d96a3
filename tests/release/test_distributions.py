"""The wheel and the source distribution: what is in them, and that a build can be repeated."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PROJECT["project"]["version"]
PACKAGES = ("watcher/", "spanner_schema/", "ddl/", "emulator/", "benchmarks/", "conformance/")
MAKES_THE_TABLE = {"emulator/sql/grammar/generate.py", "emulator/sql/grammar/googlesql.lark"}
DIST_INFO = f"spanner_watcher-{VERSION}.dist-info"
BOM = f"{DIST_INFO}/sboms/spanner-watcher.cdx.json"
METADATA = {
    f"{DIST_INFO}/METADATA",
    f"{DIST_INFO}/RECORD",
    f"{DIST_INFO}/WHEEL",
    f"{DIST_INFO}/entry_points.txt",
    f"{DIST_INFO}/licenses/LICENSE",
    BOM,
}
EPOCH = 1_700_000_000
STOP_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class Distributions:
    """A wheel and a source distribution."""

    wheel: Path
    source: Path

    def read_bom(self) -> dict[str, Any]:
        with zipfile.ZipFile(self.wheel) as archive:
            bom: dict[str, Any] = json.loads(archive.read(BOM))
            return bom


def run_hatchling(
    project: Path, folder: Path, umask: int = 0o022, zone: str = "UTC"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=project,
        env=os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH), "TZ": zone},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def build(project: Path, folder: Path, umask: int = 0o022, zone: str = "UTC") -> Distributions:
    result = run_hatchling(project, folder, umask, zone)
    assert result.returncode == 0, result.stderr
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Distributions(wheel, source)


def unpack_source(distributions: Distributions, folder: Path) -> Path:
    with tarfile.open(distributions.source) as archive:
        archive.extractall(folder)
    (project,) = folder.iterdir()
    return project


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def list_files_of_git() -> set[str]:
    """What is tracked, and what is new and not ignored."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of files to compare with")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split("\0")
    return {name for name in listed if name and (ROOT / name).is_file()}


def test_the_wheel_holds_the_packages_and_nothing_else(distributions: Distributions) -> None:
    packaged = {name for name in list_files_of_git() if name.startswith(PACKAGES)}
    with zipfile.ZipFile(distributions.wheel) as archive:
        assert set(archive.namelist()) == (packaged - MAKES_THE_TABLE) | METADATA


def test_the_launcher_of_java_can_be_run_where_the_wheel_is_installed(
    distributions: Distributions,
) -> None:
    """pip and uv make executable what the wheel has as executable."""
    with zipfile.ZipFile(distributions.wheel) as archive:
        mode = archive.getinfo("watcher/process/spark/java_home/bin/java").external_attr >> 16
    assert mode & 0o777 == 0o755


def test_the_source_distribution_holds_the_project_and_nothing_else(
    distributions: Distributions,
) -> None:
    visible = {name for name in list_files_of_git() if not name.startswith(".")}
    prefix = f"spanner_watcher-{VERSION}/"
    with tarfile.open(distributions.source) as archive:
        members = {name.removeprefix(prefix) for name in archive.getnames()}
    assert members == visible | {"PKG-INFO", ".gitignore"}


def test_a_build_from_the_source_distribution_has_the_same_bytes(
    distributions: Distributions, tmp_path: Path
) -> None:
    """Another folder, other times of files, another umask, another time zone."""
    project = unpack_source(distributions, tmp_path / "source")
    for path in project.rglob("*"):
        os.utime(path, (0, 0))
    again = build(project, tmp_path / "dist", umask=0o077, zone="Asia/Tokyo")
    assert again.wheel.read_bytes() == distributions.wheel.read_bytes()
    assert again.source.read_bytes() == distributions.source.read_bytes()


def test_the_wheel_runs_by_itself(distributions: Distributions, tmp_path: Path) -> None:
    with zipfile.ZipFile(distributions.wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        "import benchmarks, conformance, ddl, emulator, spanner_schema, sys, watcher;"
        " from watcher.cli import main;"
        f" assert all(m.__file__.startswith({str(tmp_path)!r})"
        " for m in (benchmarks, conformance, ddl, emulator, spanner_schema, watcher)); main()"
    )
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program, "try"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any("UPSERT Singers" in line for line in process.stdout)
        process.terminate()
        process.stdout.read()
        assert process.wait(STOP_SECONDS_MAX) == 0


def test_the_bill_of_materials_has_what_cyclonedx_requires(distributions: Distributions) -> None:
    """Of bom-1.7.schema.json, by hand: the required fields, their forms, and references that
    lead somewhere."""
    bom = distributions.read_bom()
    assert (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.7", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bom["serialNumber"])
    assert datetime.fromisoformat(bom["metadata"]["timestamp"]) == datetime.fromtimestamp(
        EPOCH, UTC
    )
    product = bom["metadata"]["component"]
    assert (product["name"], product["version"]) == ("spanner-watcher", VERSION)
    assert product["licenses"] == [{"expression": "Apache-2.0"}]
    for component in bom["components"]:
        assert component["type"] == "library"
        assert component["name"]
        assert component["isExternal"] is True
        assert component["versionRange"].startswith("vers:pypi/")
        assert "version" not in component
        assert component["scope"] in ("required", "optional")
    references = [each["bom-ref"] for each in (product, *bom["components"])]
    assert len(references) == len(set(references))
    first, *others = bom["dependencies"]
    assert first == {"ref": references[0], "dependsOn": references[1:]}
    assert [each["ref"] for each in others] == references[1:]


def test_the_bill_of_materials_lists_every_dependency(distributions: Distributions) -> None:
    """As METADATA, which pip reads, has them; without what developers need."""
    with zipfile.ZipFile(distributions.wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"{DIST_INFO}/METADATA").decode())
    requirements = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    required = {each.name: each for each in requirements if each.marker is None}
    optional = {
        each.name: each
        for each in requirements
        if each.name not in {*required, "spanner-watcher"} and is_for_users(each)
    }
    assert {
        (component["name"], component["scope"], read_range(component["versionRange"]))
        for component in distributions.read_bom()["components"]
    } == {
        (each.name, scope, frozenset(map(str, each.specifier)))
        for scope, group in (("required", required), ("optional", optional))
        for each in group.values()
    }


def is_for_users(requirement: Requirement) -> bool:
    return requirement.marker is not None and requirement.marker.evaluate({"extra": "dev"}) is False


def read_range(text: str) -> frozenset[str]:
    """The constraints of a ``vers`` URI."""
    return frozenset(text.removeprefix("vers:pypi/").split("|"))


def test_a_dependency_that_the_bill_of_materials_cannot_state_stops_the_build(
    distributions: Distributions, tmp_path: Path
) -> None:
    project = unpack_source(distributions, tmp_path / "source")
    path = project / "pyproject.toml"
    path.write_text(path.read_text().replace('"numpy>=1.26"', '"numpy~=1.26"'))
    result = run_hatchling(project, tmp_path / "dist")
    assert result.returncode != 0
    assert "'~=1.26' cannot be written as a range of versions" in result.stderr


def test_the_tools_of_developers_build_as_pip_does() -> None:
    (needed,) = PROJECT["build-system"]["requires"]
    assert needed in PROJECT["project"]["optional-dependencies"]["dev"]
