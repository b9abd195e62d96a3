"""GoogleSQL's compliance tests, sent to a Spanner server.

What reads and judges the files is not ours: ``run_compliance.py`` beside them, which also says what
is in Spanner's scope, and runs what is beyond it where only another *result* is worth a look.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from golden.outcomes import Outcome

PART = "compliance"
REFUSALS = {"INVALID_ARGUMENT", "UNIMPLEMENTED", "NOT_FOUND"}
DETAIL_LENGTH_MAX = 400


def find_files(folder: Path) -> list[Path]:
    """The files, by name."""
    return sorted((folder / PART).glob("*.test"))


def run_files(address: str, folder: Path, files: Iterable[Path]) -> Iterator[Outcome]:
    """Runs files against a server at HOST:PORT; only the cases that GoogleSQL's lists of Spanner's
    features let through."""
    judge = load_judge(folder)
    server = judge.Server(address)
    for path in files:
        for case, out, beyond, outcome in judge.run_file(str(path), server):
            if out is None and outcome is not None:
                yield from describe(case, beyond, outcome)


def load_judge(folder: Path) -> ModuleType:
    """The module that reads and judges the files. Raises FileNotFoundError."""
    path = folder / "run_compliance.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"{path} is missing: it reads and judges the compliance files")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def describe(case: object, beyond: str | None, outcome: object) -> Iterator[Outcome]:
    """The outcome of a case that was run, if it counts."""
    name = f"{PART}/{vars(case)['file']}:{vars(case)['name']}"
    state, code = str(vars(outcome)["state"]), str(vars(outcome)["code"])
    detail = f"{vars(outcome)['why']}: {vars(outcome)['found']}"[:DETAIL_LENGTH_MAX]
    if state == "skipped":
        return
    if beyond is None:
        verdict = {"passed": "the same", "failed": "another result"}.get(state, "UNIMPLEMENTED")
        yield Outcome(name, verdict, state != "passed", detail)
    elif state == "failed" and code not in REFUSALS:
        yield Outcome(name, f"beyond Spanner, another result ({beyond})", False, detail)
