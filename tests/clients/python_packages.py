"""Suites that are part of a source distribution on PyPI."""

from __future__ import annotations

import shutil
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from clients.outcomes import Outcome, read_junit
from clients.suite import Workplace

REPORT = "report.xml"


def unpack(place: Workplace, python: Path, package: str, version: str) -> Path:
    """The source distribution of a package, as its authors made it; ``python`` has pip."""
    downloads = place.folder / "downloads"
    pip: list[str | Path] = [
        python,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        package,
    ]
    if not list(downloads.glob(f"*-{version}.tar.gz")):
        place.call([*pip, "--dest", downloads, f"{package}=={version}"])
    (archive,) = downloads.glob(f"*-{version}.tar.gz")
    folder = place.folder / "source" / package
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return unpacked


def make_environment(place: Workplace, requirements: Sequence[str]) -> Path:
    """The Python of a virtual environment with these packages, which is made once."""
    folder = place.folder / "venv"
    python, installed = folder / "bin/python", folder / "requirements.txt"
    wanted = "\n".join(requirements)
    if not installed.exists() or installed.read_text() != wanted:
        place.call([sys.executable, "-m", "venv", "--clear", folder])
        place.call([python, "-m", "pip", "install", "--quiet", *requirements])
        installed.write_text(wanted)
    return python


def run_pytest(
    place: Workplace,
    python: Path,
    source: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> list[Outcome]:
    """The outcomes of pytest in a source distribution."""
    report = place.folder / REPORT
    report.unlink(missing_ok=True)
    command: list[str | Path] = [python, "-m", "pytest", "-c", "/dev/null", "--rootdir=."]
    command += [f"--junit-xml={report}", "-q", *arguments]
    place.call(command, source, environment, may_fail=True)
    return read_junit(report)
