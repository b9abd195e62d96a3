"""What applications import stays where it is, or its old place says where it went."""

from __future__ import annotations

import importlib
import sys

import pytest

import watcher
from watcher import envelopes, extras
from watcher.errors import ConfigurationError
from watcher.runners.java import ensure_java


def test_the_public_names_are_there() -> None:
    for name in watcher.__all__:
        assert getattr(watcher, name) is not None


def test_the_old_place_of_ensure_java_warns_and_gives_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "watcher.java", raising=False)
    with pytest.warns(DeprecationWarning, match=r"watcher\.runners\.java"):
        old = importlib.import_module("watcher.java")
    assert old.ensure_java is ensure_java


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("watcher.envelopes.order", "newest", "select_newest"),
        ("watcher.envelopes.frames", "newest", "select_newest"),
        ("watcher.envelopes.frames", "once", "drop_duplicates"),
        ("watcher.envelopes.frames", "messages_of_lines", "parse_lines"),
    ],
)
def test_an_old_name_of_envelopes_warns_and_gives_the_new_one(
    module: str, old: str, new: str
) -> None:
    loaded = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{old} is now called {new}"):
        assert getattr(loaded, old) is getattr(loaded, new)


def test_the_old_function_envelope_warns() -> None:
    with pytest.warns(DeprecationWarning, match="make_envelope"):
        assert envelopes.envelope("plain") == envelopes.make_envelope("plain")


def test_a_source_tree_that_is_not_installed_has_a_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "DISTRIBUTION", "spanner-watcher-that-is-not-installed")
    assert extras.read_version() == "0+unknown"


def test_a_missing_library_is_an_import_error_that_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "EXTRAS", {"avro": ("no_such_module",)})
    with pytest.raises(ImportError, match=r"pip install 'spanner-watcher\[avro\]'") as raised:
        extras.require_extras("avro")
    assert isinstance(raised.value, ConfigurationError)
