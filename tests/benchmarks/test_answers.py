"""What a process of a benchmark answers, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.processes import RunError, ask_module, follow_module

ANSWERS = """
import pathlib, sys, time
first, gate, out = sys.argv[1:]
with open(out, "w") as file:
    print(first, file=file, flush=True)
    while not pathlib.Path(gate).exists():
        time.sleep(0.01)
    file.write('["the end"]')
"""


def test_an_answer_is_there_before_the_process_has_ended(tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(ANSWERS)
    gate = tmp_path / "gate"
    following = follow_module("a", "answers", ("1", str(gate)), {"PYTHONPATH": str(tmp_path)})
    assert next(following) == 1
    gate.touch()
    assert list(following) == [["the end"]]


def test_a_process_that_fails_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("raise SystemExit('no room')")
    with pytest.raises(RunError, match="no room"):
        ask_module("a", "fails", (), {"PYTHONPATH": str(tmp_path)})
