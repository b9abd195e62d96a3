"""GoogleSQL's compliance files against the embedded server: every case, judged, with a summary.

The files and what reads and judges them stand beside the repository, in ``../shared/conformance``
(or in the folder that CONFORMANCE_DIR names): ``run_compliance.py`` says what is in Spanner's
scope. The cases that it counts as in scope and that are not Spanner's, or not decided by Spanner,
are listed here, with the reason, and nowhere else.

    python tests/conformance/compliance.py [--files 'interval*.test'] [--list]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from emulator.process import spawn

FOLDER = Path(
    os.environ.get("CONFORMANCE_DIR", Path(__file__).parents[3] / "shared" / "conformance")
)
OUT_OF_SCOPE: dict[tuple[str, str], str] = {
    ("dml_insert.test", "insert_update_two_new_rows_with_null_primary_key"): (
        "Spanner refuses an INSERT OR UPDATE that meets a row twice"
    ),
    ("dml_insert.test", "insert_update_with_query"): (
        "Spanner refuses an INSERT OR UPDATE that meets a row twice"
    ),
    ("interval.test", "group_by_interval_nanosecond_precision"): (
        "the order in an array of ARRAY_AGG without ORDER BY is not defined"
    ),
}
"""Case -> why it is not counted. A case here may pass or fail."""

SAMPLE = (
    "aggregation_order_by_queries.test",
    "any_value_aggregation.test",
    "array_joins.test",
    "bytes.test",
    "dml_insert.test",
    "hints.test",
    "interval.test",
    "join_queries.test",
    "json_queries.test",
    "numeric.test",
    "strings.test",
    "with_expressions.test",
)
"""The files of ``make test``: those where the answers were wrong most often."""


@dataclass(slots=True)
class Summary:
    """What came of the cases in scope; ``beyond`` are other results of cases beyond the scope."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    unimplemented: list[str] = field(default_factory=list)
    left_out: int = 0
    beyond: list[str] = field(default_factory=list)

    @property
    def in_scope(self) -> int:
        """The number of cases that count."""
        return self.passed + len(self.failed) + len(self.unimplemented)

    def text(self) -> str:
        """One line for a table of results."""
        return (
            f"compliance: {self.passed} of {self.in_scope} in scope passed,"
            f" {len(self.failed)} failed, {len(self.unimplemented)} unimplemented,"
            f" {self.left_out} left out with a reason"
        )


def load_runner() -> ModuleType:
    """The module that reads and judges the files."""
    path = FOLDER / "run_compliance.py"
    spec = importlib.util.spec_from_file_location("run_compliance", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(
            f"{path} is missing: set CONFORMANCE_DIR to the folder of the files"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_files(pattern: str = "*.test") -> list[Path]:
    """The compliance files whose names fit, in order; none where the folder is absent."""
    return sorted((FOLDER / "compliance").glob(pattern))


def run_files(host: str, files: Iterable[Path]) -> Summary:
    """Runs the files against a server at HOST:PORT."""
    runner = load_runner()
    server = runner.Server(host)
    summary = Summary()
    for path in files:
        for case, out, beyond, outcome in runner.run_file(str(path), server):
            if out is None and outcome is not None:
                count_case(summary, case, beyond, outcome)
    return summary


def count_case(summary: Summary, case: object, beyond: str | None, outcome: object) -> None:
    """Adds a case that was run."""
    file, name = str(vars(case)["file"]), str(vars(case)["name"])
    state, code = vars(outcome)["state"], vars(outcome)["code"]
    described = f"{file}: {name}: {vars(outcome)['why']}: {vars(outcome)['found']}"[:400]
    if state == "skipped" or (file, name) in OUT_OF_SCOPE:
        summary.left_out += (file, name) in OUT_OF_SCOPE
    elif beyond:
        refused = code in {"INVALID_ARGUMENT", "UNIMPLEMENTED", "NOT_FOUND"}
        summary.beyond += [described] if state == "failed" and not refused else []
    elif state == "passed":
        summary.passed += 1
    elif state == "unimplemented":
        summary.unimplemented.append(described)
    else:
        summary.failed.append(described)


def main() -> int:
    """Runs the files that the arguments choose; 1 where a case in scope does not pass."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", default="*.test", help="names of files, a glob pattern")
    parser.add_argument("--list", action="store_true", help="list the cases that do not pass")
    arguments = parser.parse_args()
    files = find_files(arguments.files)
    if not files:
        sys.stdout.write(f"compliance: no files in {FOLDER}\n")
        return 1
    with spawn() as server:
        summary = run_files(server.address, files)
    if arguments.list:
        sys.stdout.writelines(f"{line}\n" for line in summary.failed + summary.unimplemented)
    sys.stdout.write(summary.text() + "\n")
    return 1 if summary.failed or summary.unimplemented else 0


if __name__ == "__main__":
    sys.exit(main())
