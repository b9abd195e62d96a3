"""Files that users write, in any Unicode: schemas, settings, dead letters, tokens."""

from __future__ import annotations

import ast
import codecs
import json
from pathlib import Path

import pytest
from fixtures.commands import run_command

from watcher.model.errors import ConfigurationError
from watcher.process.text_files import read_text_file

ROOT = Path(__file__).parents[2]
SCHEMA = "CREATE TABLE Größe (\r\n  Id INT64\r\n) PRIMARY KEY (Id);\r\n"
CONFIG = 'tables = ["Größe"]\r\n'
ENCODINGS = {
    "utf-8": b"",
    "utf-8-sig": b"",
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


def write(path: Path, text: str, encoding: str) -> Path:
    path.write_bytes(ENCODINGS[encoding] + text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_schema_and_settings_are_read_by_their_byte_order_mark(
    tmp_path: Path, encoding: str
) -> None:
    schema = write(tmp_path / "s.sql", SCHEMA.replace("Größe", "`Größe`"), encoding)
    assert read_text_file(schema) == SCHEMA.replace("\r\n", "\n").replace("Größe", "`Größe`")
    schema = write(tmp_path / "s.sql", SCHEMA.replace("Größe", "T"), encoding)
    config = write(tmp_path / "w.toml", CONFIG.replace("Größe", "T"), encoding)
    result = run_command("ddl", "plan", "--schema", str(schema), "--config", str(config), "--json")
    assert result.returncode == 0, result.stderr
    assert {each["table"] for each in json.loads(result.stdout)["statements"]} == {"T"}


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ("Größe".encode("latin-1"), "not UTF-8 text: byte 0xF6 at offset 2"),
        (codecs.BOM_UTF8 + b"ab\xff", "not UTF-8 text: byte 0xFF at offset 5"),
        ("ab".encode("utf-16-le"), "not UTF-8 text: byte 0x00 at offset 1"),
        (codecs.BOM_UTF16_LE + b"a\0\xd8", "not UTF-16-LE text: byte 0xD8 at offset 4"),
        (codecs.BOM_UTF16_LE + b"a\0\0\xd8", "not UTF-16-LE text: byte 0x00 at offset 4"),
    ],
)
def test_what_is_no_text_is_refused_with_its_byte(
    tmp_path: Path, stored: bytes, words: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(stored)
    with pytest.raises(ConfigurationError, match=words):
        read_text_file(path)
    for option in ("--schema", "--config"):
        other = write(tmp_path / "other", SCHEMA if option == "--config" else CONFIG, "utf-8")
        others = ("--config", other) if option == "--schema" else ("--schema", other)
        result = run_command("ddl", "plan", option, str(path), *map(str, others))
        assert (result.returncode, result.stdout) == (2, ""), result.stderr
        assert f"error: {path} is {words}" in result.stderr.replace("\n", " ")


def test_the_product_reads_files_of_users_in_one_place() -> None:
    """``Path.read_text`` guesses the encoding by the locale, and takes a mark for a letter. A
    checkpoint is Spark's."""
    packages = (ROOT / "watcher", ROOT / "ddl")
    readers = {
        str(path.relative_to(ROOT))
        for package in packages
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "read_text"
    }
    ours = {"watcher/envelopes/schema_files.py", "watcher/runners/spark/checkpoints.py"}
    assert readers == ours
