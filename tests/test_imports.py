"""The map in ARCHITECTURE.md, held by a test: imports follow its order, without a circle."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGES = ("ddl", "emulator", "watcher", "benchmarks", "conformance")
DESCRIPTION_INDENT = 20
"""Lines that are indented further continue a description."""


def module_name(path: str) -> str:
    return path.removesuffix("/").removesuffix(".py").replace("/", ".")


def read_map() -> tuple[dict[str, int], set[str]]:
    """The modules and folders that the map names, with the number of their line, and the folders
    whose files it lists."""
    (block,) = re.findall(r"## The map\n.*?```\n(.*?)```", ARCHITECTURE, re.DOTALL)
    places: dict[str, int] = {}
    listing: set[str] = set()
    folders: list[tuple[int, str]] = []
    for number, line in enumerate(block.splitlines()):
        indent = len(line) - len(line.lstrip())
        if not line.strip() or indent >= DESCRIPTION_INDENT:
            continue
        folders = [(depth, folder) for depth, folder in folders if depth < indent]
        parent = folders[-1][1] if folders else ""
        listing.add(module_name(parent))
        for path in re.split(r" {2,}", line.strip())[0].split():
            places[module_name(parent + path)] = number
            if path.endswith("/"):
                folders.append((indent, parent + path))
    return places, listing


def read_permissions() -> dict[str, tuple[str, ...]]:
    """What each package may import of others; longer names are stricter."""
    _, _, table = ARCHITECTURE.partition("| Package | May import |")
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", table, re.MULTILINE)
    return {package: tuple(re.findall(r"`([\w.]+)`", allowed)) for package, allowed in rows}


def read_modules() -> dict[str, Path]:
    return {
        module_name(str(path.relative_to(ROOT))).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }


MAP, LISTING = read_map()
PERMISSIONS = read_permissions()
MODULES = read_modules()
LATE_IMPORTS = set(re.findall(r"inside a function, except by\s+`([\w.]+)`", ARCHITECTURE))


def read_imports(name: str) -> set[str]:
    """The modules of ours that a module imports, also for typing alone."""
    targets: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                targets.add(inner if inner in MODULES else node.module)
    return {module for module in targets if module in MODULES and module != name}


GRAPH = {name: read_imports(name) for name in MODULES}


def inside(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def package_of(name: str) -> str:
    """The package of the table of permissions that a module belongs to."""
    return max((prefix for prefix in PERMISSIONS if inside(name, prefix)), key=len)


def entry_of(name: str) -> str:
    """The entry of the map that a module belongs to: the one that names most of its path."""
    return max((path for path in MAP if inside(name, path)), key=len)


def test_there_is_no_circle() -> None:
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_follow_the_map(name: str) -> None:
    for target in GRAPH[name]:
        gathers = MODULES[name].name == "__init__.py" and inside(target, name)
        above = MAP[entry_of(target)] <= MAP[entry_of(name)]
        assert gathers or above, f"{name} imports {target}, which the map has below it"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_between_packages_are_in_the_table(name: str) -> None:
    for target in GRAPH[name]:
        if target.partition(".")[0] != name.partition(".")[0]:
            allowed = PERMISSIONS[package_of(name)]
            assert any(inside(target, each) for each in allowed), f"{name} imports {target}"


def test_every_module_is_on_the_map() -> None:
    lost = [name for name in MODULES if name not in MAP and entry_of(name) in LISTING]
    assert not lost, "give each a line in the map of ARCHITECTURE.md"


def test_everything_on_the_map_is_there() -> None:
    gone = [path for path in MAP if not inside(path, "tests") and path not in MODULES]
    assert not gone, "the map in ARCHITECTURE.md names modules that do not exist"


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
        if inside(name, "watcher") and name != "watcher.spanner.database":
            calls = [
                node
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("spanner.Client")
            ]
            assert not calls, f"{name} opens a client; only watcher.spanner.database may"


def test_the_server_is_driven_through_its_wire_only() -> None:
    for name in MODULES:
        if inside(name, "ddl") or (inside(name, "watcher") and not inside(name, "watcher.cli")):
            engine = [t for t in GRAPH[name] if inside(t, "emulator.engine")]
            assert not engine, f"{name} reaches into the embedded server"
