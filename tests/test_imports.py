"""The map in ARCHITECTURE.md, held by a test: imports follow its order, without a circle."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import distribution
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGES = ("spanner_schema", "ddl", "emulator", "watcher", "benchmarks", "conformance")
DESCRIPTION_INDENT = 20
"""Lines that are indented further continue a description."""


def module_name(path: str) -> str:
    return path.removesuffix("/").removesuffix(".py").replace("/", ".")


def read_map() -> tuple[dict[str, int], set[str]]:
    """The modules and folders that the map names, with the number of their line, and the folders
    of which it has to name everything: packages with rooms, and where it names files."""
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
        for path in re.split(r" {2,}", line.strip())[0].split():
            places[module_name(parent + path)] = number
            if path.endswith(".py") or parent in {f"{package}/" for package in PACKAGES}:
                listing.add(module_name(parent))
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


@cache
def nodes_of(name: str) -> tuple[ast.AST, ...]:
    """All nodes of a module's tree: to walk through the trees takes longer than to parse them."""
    return tuple(ast.walk(ast.parse(MODULES[name].read_text())))


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@cache
def read_imports(name: str) -> frozenset[str]:
    """The modules of ours that a module imports, also for typing alone, or loads by their names
    (``import_module("module")``, ``"module:object"``)."""
    targets: set[str] = set()
    for node in nodes_of(name):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                targets.add(inner if inner in MODULES else node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            targets.add(node.value.partition(":")[0] if ":" in node.value else "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            targets |= {ast.literal_eval(each) for each in node.args if is_text(each)}
    return frozenset(module for module in targets if module in MODULES and module != name)


def list_imports() -> list[tuple[str, str]]:
    """Every module with each that it imports."""
    return [(name, target) for name in sorted(MODULES) for target in sorted(read_imports(name))]


def inside(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def package_of(name: str) -> str:
    """The package of the table of permissions that a module belongs to."""
    return max((prefix for prefix in PERMISSIONS if inside(name, prefix)), key=len)


def entry_of(name: str) -> str:
    """The entry of the map that a module belongs to: the one that names most of its path."""
    return max((path for path in MAP if inside(name, path)), key=len)


def follows_map(name: str, target: str) -> bool:
    """Whether the map has a module below what it imports; a package may gather what is inside."""
    gathers = MODULES[name].name == "__init__.py" and inside(target, name)
    return gathers or MAP[entry_of(target)] <= MAP[entry_of(name)]


def is_permitted(name: str, target: str) -> bool:
    """Whether the table of permissions has it, or both are of one package."""
    if target.partition(".")[0] == name.partition(".")[0]:
        return True
    return any(inside(target, each) for each in PERMISSIONS[package_of(name)])


def test_there_is_no_circle() -> None:
    try:
        TopologicalSorter({name: read_imports(name) for name in MODULES}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_imports_follow_the_map() -> None:
    wrong = [
        f"{name} imports {each}" for name, each in list_imports() if not follows_map(name, each)
    ]
    assert not wrong, "the map has these below what imports them"


def test_imports_between_packages_are_in_the_table() -> None:
    wrong = [
        f"{name} imports {each}" for name, each in list_imports() if not is_permitted(name, each)
    ]
    assert not wrong


def test_every_module_is_on_the_map() -> None:
    lost = [name for name in MODULES if name not in MAP and entry_of(name) in LISTING]
    assert not lost, "put each into a room of the map in ARCHITECTURE.md"


def test_everything_on_the_map_is_there() -> None:
    gone = [path for path in MAP if not inside(path, "tests") and path not in MODULES]
    assert not gone, "the map in ARCHITECTURE.md names modules that do not exist"


def test_files_that_the_page_names_are_there() -> None:
    named = re.findall(rf"`((?:{'|'.join(PACKAGES)})/[\w/.]*)`", ARCHITECTURE)
    assert not [path for path in named if "NAME" not in path and not (ROOT / path).exists()]


def find_late_imports(name: str) -> list[str]:
    """The functions of a module that import something."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in nodes_of(name) if isinstance(node, kinds)]
    lines = [n.lineno for n in nodes_of(name) if isinstance(n, ast.Import | ast.ImportFrom)]
    return [
        f"{name}.{function.name}"
        for function in functions
        if any(function.lineno <= line <= (function.end_lineno or 0) for line in lines)
    ]


def test_nothing_is_imported_late() -> None:
    late = [each for name in MODULES.keys() - LATE_IMPORTS for each in find_late_imports(name)]
    assert not late, "these import inside a function"


LINES_MAX = 400
CLASS_LINES_MAX = 250
ROOMS_MAX = 14


@pytest.mark.parametrize(
    "package", ["spanner_schema", "ddl", "watcher", "benchmarks", "conformance"]
)
def test_a_module_can_be_read_at_once(package: str) -> None:
    lines = {
        name: len(path.read_text().splitlines())
        for name, path in MODULES.items()
        if inside(name, package)
    }
    assert not {name: count for name, count in lines.items() if count > LINES_MAX}


def test_a_class_has_one_job() -> None:
    """What outgrows this has two, of which one can be handed in."""
    lines = {
        f"{name}.{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for name in MODULES
        for node in nodes_of(name)
        if isinstance(node, ast.ClassDef)
    }
    assert not {name: count for name, count in lines.items() if count > CLASS_LINES_MAX}


def test_the_folders_of_watcher_are_few_enough_to_be_remembered() -> None:
    inner = [name for name in MODULES if name.startswith("watcher.") and name.count(".") > 1]
    rooms = {name.split(".")[1] for name in inner}
    assert len(rooms) <= ROOMS_MAX, "put a new folder into one of those that are there"


PURE = ("watcher.planning", "watcher.model")
"""What is decided here depends on nothing but its arguments: the explorer runs it without a
server."""
OUTSIDE = {"google", "grpc", "os", "pathlib", "socket", "sqlite3", "subprocess", "threading"}


def find_packages(name: str) -> set[str]:
    """The packages, also of others, that a module imports something of."""
    found: set[str] = set()
    for node in nodes_of(name):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def test_what_decides_does_no_input_or_output() -> None:
    deciding = [name for name in MODULES if any(inside(name, pure) for pure in PURE)]
    found = {name: find_packages(name) & OUTSIDE for name in deciding}
    assert not {name: packages for name, packages in found.items() if packages}


HANDLES = {"Database", "Transaction"}
"""Of Google's client: whoever is given one may name its type."""
WRITES = "writes rows of its own in transactions, by the client"
JUDGES = "decides what a failed call means here: another answer than watcher.spanner.failures has"
GOOGLE: dict[str, dict[str, str]] = {
    "google.cloud": {
        "watcher.captures.change_stream": "a record of a change stream is a message of the API",
        "watcher.change_sets": "writes ids in the transactions of applications",
        "watcher.consumers": WRITES,
        "watcher.overview": "small queries of what an operator sees, by the client; probes write",
        "watcher.runners.preflight": "asks once for what a watcher will need",
        "watcher.sinks.pubsub": "its client is Google's, too",
    },
    "google.api_core": {
        "watcher.captures.change_stream.stream_calls": JUDGES,
        "watcher.cli.failures": "has a sentence for each",
        "watcher.consumers.positions.tables": JUDGES,
        "watcher.overview": JUDGES,
        "watcher.process.tracing": "names the error of a span; it is above watcher.spanner",
        "watcher.sinks.pubsub": "its client raises them, too",
        "watcher.runners.preflight": JUDGES,
        "watcher.runners.spark": JUDGES,
        "watcher.runners.watcher_run.recovery": JUDGES,
        "watcher.tables.added": JUDGES,
    },
    "google.protobuf": {
        "watcher.envelopes.plain_protobuf": "describes and writes messages",
        "watcher.captures": "keys and records of a change stream are messages",
        "watcher.sinks.proto_texts": "PROTO columns are messages of the user's",
        "watcher.runners.spark.sent_columns": "builds what a change stream would have sent",
    },
}
"""Who imports Google's libraries, besides ``watcher.spanner``, and why."""


def find_google_imports(name: str) -> set[str]:
    """The libraries of Google that a module imports more than a handle of."""
    return {
        ".".join((node.module or "").split(".")[:2])
        for node in nodes_of(name)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("google.")
        and {alias.name for alias in node.names} - HANDLES
    }


def test_few_besides_the_room_of_spanner_import_googles_libraries() -> None:
    used: set[tuple[str, str]] = set()
    for name in MODULES:
        if not inside(name, "watcher") or inside(name, "watcher.spanner"):
            continue
        for library in find_google_imports(name):
            allowed = [room for room in GOOGLE[library] if inside(name, room)]
            assert allowed, f"{name} imports {library}: leave that to watcher.spanner"
            used |= {(library, room) for room in allowed}
    assert used == {(library, room) for library in GOOGLE for room in GOOGLE[library]}


def test_only_one_module_of_watcher_opens_a_client() -> None:
    for name in MODULES:
        if inside(name, "watcher") and name != "watcher.spanner.database":
            calls = [
                node
                for node in nodes_of(name)
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("spanner.Client")
            ]
            assert not calls, f"{name} opens a client; only watcher.spanner.database may"


def test_the_command_line_and_its_entry_points_name_functions_and_groups_that_are_there() -> None:
    """What nothing imports: names in the code, and in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = project["entry-points"]["spanner_watcher.commands"]
    assert {name: resolve_name(each) for name, each in named.items()}.keys() == {
        "bench",
        "conformance",
        "demo",
    }
    installed = distribution("spanner-watcher").entry_points.select(
        group="spanner_watcher.commands"
    )
    assert {each.name: each.value for each in installed} == named, "run make setup again"


def test_the_server_is_driven_through_its_wire_only() -> None:
    for name in MODULES:
        if (
            inside(name, "ddl")
            or inside(name, "spanner_schema")
            or (inside(name, "watcher") and not inside(name, "watcher.cli"))
        ):
            engine = [t for t in read_imports(name) if inside(t, "emulator.engine")]
            assert not engine, f"{name} reaches into the embedded server"
