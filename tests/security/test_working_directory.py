"""The working directory may belong to anybody: what is there stands in for no library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LETTER = json.dumps({"id": "1", "error": "x"})


def replay(folder: Path, callback: str) -> subprocess.CompletedProcess[str]:
    """``replay`` in a folder, as the installed script runs it: without that folder on the path."""
    (folder / "letters").write_text(LETTER + "\n")
    program = "from watcher.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", program, "replay", "letters", "--callback", callback],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("library", ["waitress", "deltalake", "confluent_kafka", "json"])
def test_a_folder_there_stands_in_for_no_library(tmp_path: Path, library: str) -> None:
    """With a callback it came first on the path."""
    (tmp_path / library).mkdir()
    (tmp_path / library / "__init__.py").write_text("open('ran', 'w').close()\n")
    (tmp_path / "taking.py").write_text(
        f"import {library}\ndef take(change):\n    print({library}.__file__)\n"
    )
    done = replay(tmp_path, "taking:take")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) not in done.stdout
    assert not (tmp_path / "ran").exists()


def test_a_module_there_that_has_the_name_of_a_library_is_explained(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("def take(change): pass\n")
    done = replay(tmp_path, "json:take")
    assert done.returncode == 2
    assert "must not have the name of one that is installed" in done.stderr
