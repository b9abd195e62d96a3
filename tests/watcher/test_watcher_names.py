"""What applications import stays where it is, or its old place says where it went."""

from __future__ import annotations

import importlib
import sys

import pytest

import watcher
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
