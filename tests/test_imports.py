"""The map of the project, held by a test: imports point downwards only, without a circle."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("ddl", "emulator", "watcher", "benchmarks")

# What a package may import of another; longer names are stricter.
ALLOWED = {
    "ddl": (),
    "emulator": (
        "ddl.dialect",
        "ddl.errors",
        "ddl.evolve",
        "ddl.parse",
        "ddl.references",
        "ddl.render",
        "ddl.schema",
        "ddl.sequences",
        "ddl.steps",
        "ddl.views",
    ),
    "watcher": ("ddl", "emulator.process"),
    "watcher.cli": ("ddl", "emulator", "benchmarks"),
    "benchmarks": ("ddl", "emulator", "watcher"),
}

# From the bottom up: a module imports only from its own layer and those before it.
LAYERS = {
    "emulator": [
        ("emulator.errors", "emulator.limits", "emulator.unsupported", "emulator.faults"),
        ("emulator.values",),
        ("emulator.sql",),
        ("emulator.catalog",),
        ("emulator.storage",),
        ("emulator.engine",),
        ("emulator.wire",),
        ("emulator.services",),
        ("emulator.server",),
        ("emulator.process", "emulator.__main__"),
    ],
    "watcher": [
        (
            "watcher.errors",
            "watcher.window",
            "watcher.change",
            "watcher.failpoints",
            "watcher.java",
            "watcher.progress",
        ),
        (
            "watcher.wire",
            "watcher.cells",
            "watcher.base64_column",
            "watcher.timestamps",
            "watcher.outages",
            "watcher.bounded_client",
            "watcher.read_options",
        ),
        (
            "watcher.database",
            "watcher.sessions",
            "watcher.resumption",
            "watcher.stream",
            "watcher.columns",
        ),
        ("watcher.conditions", "watcher.partitions"),
        ("watcher.queries",),
        ("watcher.failures",),
        ("watcher.schema_rows",),
        ("watcher.schema_reader", "watcher.column_choice"),
        ("watcher.epochs",),
        ("watcher.table", "watcher.shards"),
        ("watcher.sql", "watcher.selection"),
        ("watcher.captures",),
        ("watcher.positions",),
        ("watcher.consumers", "watcher.clearing", "watcher.changes", "watcher.change_sets"),
        ("watcher.envelopes",),
        ("watcher.config", "watcher.watch_config", "watcher.metrics"),
        ("watcher.sources",),
        ("watcher.preflight",),
        ("watcher.runners",),
        ("watcher.cli",),
    ],
}

# pyspark is heavy, and only those who run Spark have a Java: the one late import.
LATE_IMPORTS = {"watcher"}


def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path
    return found


MODULES = modules()


def imported(name: str) -> set[str]:
    """The modules of ours that a module imports when it is loaded (not for typing alone)."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
    return {module for module in found if module in MODULES and module != name}


GRAPH = {name: imported(name) for name in MODULES}


def inside(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def layer(name: str) -> int | None:
    package = name.split(".", maxsplit=1)[0]
    places = [
        (len(prefix), number)
        for number, prefixes in enumerate(LAYERS.get(package, []))
        for prefix in prefixes
        if inside(name, prefix)
    ]
    return max(places)[1] if places else None


def test_there_is_no_circle() -> None:
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_point_downwards(name: str) -> None:
    own = name.split(".", maxsplit=1)[0]
    rule = max((prefix for prefix in ALLOWED if inside(name, prefix)), key=len)
    for target in GRAPH[name]:
        if target.split(".")[0] != own:
            assert any(inside(target, p) for p in ALLOWED[rule]), f"{name} imports {target}"
            continue
        above, below = layer(name), layer(target)
        if above is not None and below is not None:
            assert below <= above, f"{name} imports {target}, which stands above it"


@pytest.mark.parametrize("package", sorted(LAYERS))
def test_every_module_has_a_place_on_the_map(package: str) -> None:
    lost = [n for n in MODULES if inside(n, package) and n != package and layer(n) is None]
    assert not lost, "give these a layer in LAYERS and a line in ARCHITECTURE.md"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_nothing_is_imported_late(name: str) -> None:
    if name in LATE_IMPORTS:
        return
    tree = ast.parse(MODULES[name].read_text())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            late = [n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
            assert not late, f"{name}.{function.name} imports inside a function"


def test_only_one_module_of_watcher_opens_a_client() -> None:
    for name, path in MODULES.items():
        if inside(name, "watcher") and name != "watcher.database":
            calls = [
                node
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("spanner.Client")
            ]
            assert not calls, f"{name} opens a client; only watcher.database may"


def test_the_server_is_driven_through_its_wire_only() -> None:
    for name in MODULES:
        if inside(name, "ddl") or (inside(name, "watcher") and not inside(name, "watcher.cli")):
            engine = [t for t in GRAPH[name] if inside(t, "emulator.engine")]
            assert not engine, f"{name} reaches into the embedded server"
