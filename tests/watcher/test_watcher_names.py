"""What applications import is there."""

from __future__ import annotations

import pytest

import watcher
from watcher.model.errors import ConfigurationError
from watcher.process import extras, version


def test_the_public_names_are_there() -> None:
    for name in watcher.__all__:
        assert getattr(watcher, name) is not None


def test_a_source_tree_that_is_not_installed_has_a_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(version, "DISTRIBUTION", "spanner-watcher-that-is-not-installed")
    assert version.read_version() == "0+unknown"


def test_a_missing_library_is_an_import_error_that_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "EXTRAS", {"avro": ("no_such_module",)})
    with pytest.raises(ImportError, match=r"pip install 'spanner-watcher\[avro\]'") as raised:
        extras.require_extras("avro")
    assert isinstance(raised.value, ConfigurationError)
