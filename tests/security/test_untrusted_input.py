"""What comes from outside is parsed by what cannot run it: no pickle, no Avro that is read, no
``eval``; and descriptors of protocol buffers have a depth."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from emulator.engine.proto_descriptors import read_files
from emulator.errors import SpannerError

ROOT = Path(__file__).resolve().parents[2]
RUNS_WHAT_IT_READS = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "jsonpickle"}
READERS = {"schemaless_reader", "block_reader", "eval", "exec"}


@pytest.mark.parametrize("package", ["watcher", "ddl", "emulator"])
def test_nothing_that_is_read_can_run(package: str) -> None:
    """Spark alone sends pickles, between its own processes: the slices of a query."""
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: set[str] = set()
            if isinstance(node, ast.Import):
                names = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {(node.module or "").partition(".")[0]}
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = {node.func.id} & READERS
            elif isinstance(node, ast.Attribute):
                names = {node.attr} & (READERS - {"eval", "exec"})
            assert not names & (RUNS_WHAT_IT_READS | READERS), f"{path}:{node}"


def test_descriptors_that_nest_deeply_are_an_error() -> None:
    descriptors = FileDescriptorSet()
    file = descriptors.file.add()
    message = file.message_type.add()
    for _ in range(10_000):
        message = message.nested_type.add()
    with pytest.raises(SpannerError, match="not a FileDescriptorSet"):
        read_files(descriptors.SerializeToString())
