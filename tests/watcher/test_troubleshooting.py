"""What docs/troubleshooting.md and docs/choose.md say, held against the code."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache

import pytest
from fixtures.listings import DOCS, ROOT

from watcher.model import errors
from watcher.model.errors import WatcherError

TEXT = (DOCS / "troubleshooting.md").read_text()
GAP = "\x00"
"""Stands for what a message is formatted with."""
WITHOUT_ADVICE = {"WatcherError", "ConfigurationError", "OutputClosedError"}
"""The base, the one that each option words by itself, and one that is not reported."""


def join_text(node: ast.expr) -> str:
    """The text of a literal, with gaps."""
    if isinstance(node, ast.JoinedStr):
        return "".join(join_text(each) for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else GAP


def list_texts(tree: ast.Module) -> Iterator[str]:
    """The texts of a module, with gaps; its docstrings are no messages."""
    nodes = list(ast.walk(tree))
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr | ast.Constant) and node not in docstrings:
            yield join_text(node)


@cache
def read_messages() -> str:
    """Every text of the product, a line each."""
    packages = ("watcher", "ddl", "spanner_schema")
    paths = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    return "\n".join(text for path in paths for text in list_texts(ast.parse(path.read_text())))


def list_symptoms() -> Iterator[str]:
    """The messages in the first cells of the tables; names of errors stand in parentheses."""
    for line in TEXT.splitlines():
        if line.startswith("| ") and not line.startswith(("| message", "|---")):
            cell = re.sub(r"\([^)]*`\w+Error`[^)]*\)", "", line.split("|")[1])
            yield from (each for each in re.findall(r"`([^`]+)`", cell) if " " in each)


@pytest.mark.parametrize("symptom", sorted(set(list_symptoms())))
def test_a_symptom_is_a_message_of_the_product(symptom: str) -> None:
    parts = [re.escape(part) for part in symptom.split("...")]
    pattern = f"[^\n]*{GAP}[^\n]*".join(parts)
    if symptom.startswith(("ctl ", "spanner-watcher ")):
        return
    assert re.search(pattern, read_messages()), symptom


def test_every_error_has_its_advice() -> None:
    own = {
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, WatcherError)
    }
    assert {name for name in own if f"`{name}`" not in TEXT} <= WITHOUT_ADVICE


def test_the_versions_are_those_that_are_required() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    required = [*project["dependencies"], *(each for extra in extras for each in extra)]
    least = dict(re.findall(r"^([\w-]+(?:\[\w+\])?)>=([\d.]+)", "\n".join(required), re.MULTILINE))
    rows = dict(
        re.findall(r"^\| ([\w\[\]-]+) \| ([\d.]+) \|", (DOCS / "choose.md").read_text(), re.M)
    )
    assert rows.pop("Python") == project["requires-python"].removeprefix(">=")
    assert rows.pop("Spark") == least["pyspark"]
    assert rows.pop("Java") == "17"
    assert {name: least[name] for name in rows} == rows
