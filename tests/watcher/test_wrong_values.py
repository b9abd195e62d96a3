"""Every option and argument of every command with wrong values, made from the parser: each ends
with one sentence and a documented exit code, never with a traceback."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from fixtures.singers import address_of
from fixtures.wrong_values import (
    STRICT,
    Case,
    Given,
    Outcome,
    Parameter,
    is_choice,
    list_cases,
    list_parameters,
    list_values,
    make_arguments,
    make_valid,
    prepare_world,
    run_here,
)
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import ConfigurationError
from watcher.process import extras
from watcher.process.terminal.commands import FAULT
from watcher.settings.fields import DAYS_MAX, duration_seconds

ROOT = Path(__file__).resolve().parents[2]
PARAMETERS = list_parameters()
COMMANDS = sorted({each.command for each in PARAMETERS})
LINE_MAX = 1_500
EXTRAS = {"bench": "hdrh", "demo": "pyspark", "emulator": "apsw", "try": "apsw"}
"""What commands need that is not installed everywhere."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    prepare_world(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def valid(singers: Database, world: Path) -> Iterator[dict[tuple[str, ...], Given]]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield make_valid(world, str(address_of(singers)), taken.getsockname()[1])


def spell(given: Given) -> list[str]:
    """Options as they are written."""
    return [name if value is None else f"{name}={value}" for name, value in given.items()]


def read_documented() -> set[int]:
    text = (ROOT / "docs/exit-codes.md").read_text()
    return {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}


def find_faults(case: Case, outcome: Outcome) -> Iterator[str]:
    """What is wrong with how a command has ended."""
    if outcome.crash is not None:
        yield f"a traceback: {outcome.crash[-400:]}"
        return
    if outcome.code not in read_documented():
        yield f"exit code {outcome.code}"
    if outcome.code == 0:
        if case.certain:
            yield "it was taken"
        return
    lines = outcome.err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    if len(errors) != 1 or lines[-1] != errors[0]:
        if errors or not outcome.out:  # else the output is the answer
            yield f"not one sentence at the end: {outcome.err[-400:]!r}"
        return
    if len(errors[0]) > LINE_MAX or "\x1b" in errors[0] or "Traceback" in outcome.err:
        yield f"not a sentence to be read: {errors[0][:400]!r}"
    if FAULT in errors[0]:
        yield f"a fault of the program: {errors[0]}"
    if case.certain and not says_where(case, errors[0]):
        yield f"it does not say what is wrong: {errors[0]!r}"


def says_where(case: Case, message: str) -> bool:
    """Whether a message names the option, or the value."""
    parameter = case.parameter
    names = {parameter.name.lstrip("-"), parameter.field, parameter.metavar} - {""}
    shown = message.replace("_", "-").casefold()
    named = any(each.replace("_", "-").casefold() in shown for each in names)
    return named or (case.value != "" and case.value[:50] in message)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wrong_value_ends_in_one_sentence_and_a_documented_code(
    command: tuple[str, ...], world: Path, valid: dict[tuple[str, ...], Given]
) -> None:
    needed = EXTRAS.get(command[0])
    if needed is not None and find_spec(needed) is None:
        pytest.skip(f"'{command[0]}' needs an extra")
    assert command in valid, "add right values of a command to fixtures/wrong_values.py"
    if command == ("verify",):
        run_here(["replicate", *spell(valid[("replicate",)])])
    faults = []
    for parameter in PARAMETERS:
        if parameter.command != command:
            continue
        for case in list_cases(parameter, world):
            outcome = run_here(make_arguments(case, valid, world))
            title = f"{' '.join(command)} {parameter.name} ({case.title})"
            faults += [f"{title}: {fault}" for fault in find_faults(case, outcome)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda p: f"{' '.join(p.command)} {p.name}")
def test_help_names_the_value_of_every_option(parameter: Parameter) -> None:
    assert parameter.metavar, "name the value, as metavar='DURATION' does"


def test_every_kind_of_value_has_wrong_ones(tmp_path: Path) -> None:
    for parameter in PARAMETERS:
        kind = parameter.kind
        known = kind in (str, int, float, Path) or is_choice(kind)
        assert known or parameter.metavar in STRICT, parameter
        assert any(certain for _, _, certain in list_values(parameter, tmp_path))


@pytest.mark.parametrize("text", ["inf", "nan", f"{DAYS_MAX + 1}d", "9" * 400])
def test_a_duration_ends_before_clocks_do(text: str) -> None:
    with pytest.raises(ConfigurationError, match="invalid duration"):
        duration_seconds(text)


def test_a_replica_by_spark_needs_no_library_of_delta(
    monkeypatch: pytest.MonkeyPatch, world: Path, valid: dict[tuple[str, ...], Given]
) -> None:
    assert os.environ["SPANNER_EMULATOR_HOST"]
    for name in ("delta", "spark"):
        monkeypatch.setitem(extras.EXTRAS, name, (f"no_such_module_of_{name}",))
    flags = ["--database", str(valid[("status",)]["--database"]), "--table", "Singers", "--once"]
    for to in ("iceberg", "parquet", "delta"):
        by_spark = run_here(
            ["replicate", *flags, "--to", f"{to}:{world}/copies", "--engine", "spark"]
        )
        assert by_spark.code == 2
        assert "pip install 'spanner-watcher[spark]'" in by_spark.err
    here = run_here(["replicate", *flags, "--to", f"delta:{world}/copies"])
    assert "pip install 'spanner-watcher[delta]'" in here.err


def test_a_dialect_is_that_of_a_file(valid: dict[tuple[str, ...], Given]) -> None:
    database = str(valid[("status",)]["--database"])
    outcome = run_here(["ddl", "plan", "-d", database, "-t", "Singers", "--dialect", "postgresql"])
    assert outcome.code == 2
    assert "--dialect is that of a file with --schema" in outcome.err
