"""What ``emulator`` exports, and that nothing is loaded before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import emulator


@pytest.mark.parametrize("name", emulator.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(emulator, name).__name__ == name


def test_every_public_name_has_its_module() -> None:
    assert sorted(emulator.MODULES) == sorted(emulator.__all__)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Engine'"):
        _ = emulator.Engine


def test_spawn_does_not_load_the_server() -> None:
    program = "import sys, emulator; emulator.spawn; print('emulator.server' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "False", result.stderr
