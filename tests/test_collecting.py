"""The files of tests are compiled in shares, as pytest compiles them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
FILES = ("test_a", "test_b", "test_c")
WRONG = "def test_it():\n    numbers = [1, 2]\n    assert numbers == [1, 3]\n"


def run_pytest(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={
            "PYTHONPATH": ".",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "xdist",
        },
    ).stdout


def test_pytest_takes_what_the_processes_have_compiled(tmp_path: Path) -> None:
    """Without shares it would write each file again that it had not made in the same way."""
    shutil.copytree(FIXTURES, tmp_path / "fixtures")
    (tmp_path / "tests").mkdir()
    for name in FILES:
        (tmp_path / f"tests/{name}.py").write_text(WRONG)
    output = run_pytest(tmp_path, "-p", "fixtures.collecting", "tests")
    assert output.count("At index 1 diff: 2 != 3") == len(FILES), output
    compiled = {path: path.stat().st_ino for path in tmp_path.glob("tests/__pycache__/*-pytest-*")}
    assert len(compiled) == len(FILES)
    assert run_pytest(tmp_path, "tests").count("At index 1 diff: 2 != 3") == len(FILES)
    assert {path: path.stat().st_ino for path in compiled} == compiled
    (tmp_path / "tests/test_a.py").write_text(WRONG.replace("3", "4"))
    assert "At index 1 diff: 2 != 4" in run_pytest(tmp_path, "-p", "fixtures.collecting", "tests")
