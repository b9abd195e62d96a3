"""What is taken of pyiceberg's inside: a release that changes it is noticed here."""

from __future__ import annotations

import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path

import fastavro
import pyarrow as pa
import pyiceberg.manifest
from fixtures.iceberg_histories import open_copy, open_table
from fixtures.named_rows import KEY, load_rows, make_rows
from packaging.requirements import Requirement
from pyiceberg.manifest import ManifestContent, ManifestWriter, ManifestWriterV2

from watcher.replica.iceberg.manifests import DeleteManifestWriter

ROOT = Path(__file__).parents[2]
OVERRIDDEN = {"content", "_meta"}


def test_pyiceberg_is_of_the_version_that_is_bounded() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = map(Requirement, project["optional-dependencies"]["iceberg"])
    bound = next(each for each in bounds if each.name == "pyiceberg").specifier
    assert bound.contains(version("pyiceberg"))
    assert not bound.contains("0.13.0"), "another minor release is looked at first"


def test_the_writer_of_manifests_is_as_it_is_known() -> None:
    """The subclass replaces two members, and the base must still ask for both."""
    assert {n for n in vars(DeleteManifestWriter) if not n.startswith("__")} - {
        "_abc_impl"
    } == OVERRIDDEN
    for owner in (ManifestWriter, ManifestWriterV2):
        assert vars(owner).keys() >= OVERRIDDEN
    assert isinstance(vars(ManifestWriterV2)["_meta"], property)
    assert ManifestWriterV2.__bases__ == (ManifestWriter,)
    source = inspect.getsource(ManifestWriter)
    assert "metadata=self._meta" in source
    assert "content=self.content()" in source
    # Once pyiceberg writes them itself, this subclass has no purpose any more.
    assert "ManifestContent.DELETES" not in inspect.getsource(pyiceberg.manifest.write_manifest)


def test_a_manifest_of_deletes_says_so_in_the_file_and_in_the_list(tmp_path: Path) -> None:
    copy = open_copy(tmp_path)
    load_rows(copy, 3)
    copy.merge(make_rows({1: "new"}, 1), KEY, 101)
    table = open_table(tmp_path)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    assert sorted(each.content for each in manifests) == [
        *(ManifestContent.DATA, ManifestContent.DATA, ManifestContent.DELETES),
    ]
    for each in manifests:
        with Path(each.manifest_path).open("rb") as file:
            metadata = fastavro.reader(file).metadata
        assert metadata["content"] == each.content.name.lower()
        assert metadata["format-version"] == "2"


def test_position_deletes_have_the_ids_that_the_format_reserves(tmp_path: Path) -> None:
    copy = open_copy(tmp_path)
    load_rows(copy, 3)
    copy.merge(make_rows({1: None}, 1), KEY, 101)
    (task,) = open_table(tmp_path).scan().plan_files()
    (deletes,) = task.delete_files
    schema = pa.parquet.read_schema(deletes.file_path)
    ids = {field.name: field.metadata[b"PARQUET:field_id"] for field in schema}
    assert ids == {"file_path": b"2147483546", "pos": b"2147483545"}
