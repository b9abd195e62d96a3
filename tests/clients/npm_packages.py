"""Suites that Mocha runs on packages of npm: needs Node.js and npm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from clients.outcomes import Outcome, read_junit
from clients.suite import Workplace

MOCHA = "mocha@11.1.0"
CASE_SECONDS = 120


def install(place: Workplace, packages: Sequence[str]) -> Path:
    """The folder of packages (``name@version``) and of what they need."""
    modules = place.folder / "node_modules"
    if not (modules / ".package-lock.json").exists():
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]
        place.call([*command, place.folder, *packages, MOCHA])
    return modules


def run_mocha(
    place: Workplace, folder: Path, arguments: Sequence[str | Path], environment: Mapping[str, str]
) -> list[Outcome]:
    """The outcomes of Mocha, which runs in ``folder``."""
    report = place.folder / "report.xml"
    report.unlink(missing_ok=True)
    mocha: list[str | Path] = ["node", place.folder / "node_modules/mocha/bin/mocha.js"]
    reporter = ["--reporter", "xunit", "--reporter-option", f"output={report}"]
    options = ["--no-config", "--exit", f"--timeout={CASE_SECONDS}000", *reporter]
    place.call([*mocha, *options, *arguments], folder, environment, may_fail=True)
    return read_junit(report)
