"""The public names of ``ddl``: all exist, and using a schema alone loads no heavy module."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ddl


@pytest.mark.parametrize("name", ddl.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(ddl, name).__name__ == name


def test_the_type_checker_sees_the_public_names() -> None:
    tree = ast.parse(Path(ddl.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    names = {
        alias.asname
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert names == set(ddl.__all__)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ddl.nothing


def test_a_schema_loads_neither_the_client_nor_sqlglot() -> None:
    program = "import sys; from ddl import Schema; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    modules = result.stdout.split()
    assert "spanner_schema.model.schema" in modules
    assert not {"google.cloud.spanner_v1", "sqlglot", "pydantic"} & set(modules)


def test_the_example_of_the_documentation_runs() -> None:
    text = (Path(ddl.__file__).parent.parent / "docs" / "ddl.md").read_text()
    (example,) = text.split("```python\n")[1:]
    values: dict[str, object] = {}
    exec(example.split("```", maxsplit=1)[0], values)
    plan = values["plan"]
    assert isinstance(plan, ddl.Plan)
    assert not plan.empty
