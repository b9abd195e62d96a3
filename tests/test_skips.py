"""With CI in the environment a test that is skipped for want of a program has failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures.skips import ALLOWED

TESTS = Path(__file__).parent
CASE = """
import pytest
{module}
def test_it():
    {test}
"""


def run_pytest(
    folder: Path, module: str = "", test: str = "pass", ci: str = "1"
) -> tuple[int, str]:
    """Exit code and output of a run of one test."""
    (folder / "test_case.py").write_text(CASE.format(module=module, test=test))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "fixtures.skips", "test_case.py"]
    result = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=folder,
        env=os.environ
        | {"CI": ci, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return result.returncode, result.stdout


MISSING = [
    {"test": "pytest.skip('promtool is not installed')"},
    {"module": "pytestmark = pytest.mark.skipif(True, reason='chromium is not installed')"},
    {"module": "pytest.importorskip('no_such_module')"},
    {"test": "pytest.importorskip('no_such_module', reason='needs the extra [kafka]')"},
]


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_program_fails_in_ci_and_is_skipped_elsewhere(
    tmp_path: Path, case: dict[str, str]
) -> None:
    code, out = run_pytest(tmp_path, **case)
    assert code != 0, out
    assert "skipped in CI: " in out
    assert run_pytest(tmp_path, ci="", **case)[0] in (0, 5)


@pytest.mark.parametrize(
    "test",
    [
        "pytest.skip('no docker that runs here')",
        "pytest.skip('systemd-analyze is not installed')",
        "pytest.xfail('known')",
    ],
)
def test_what_is_on_the_list_and_what_is_expected_to_fail_stays(tmp_path: Path, test: str) -> None:
    code, out = run_pytest(tmp_path, test=test)
    assert code == 0, out


def test_each_reason_on_the_list_is_one_that_a_test_gives() -> None:
    files = [each for each in TESTS.rglob("*.py") if each.name not in ("skips.py", "test_skips.py")]
    text = "\n".join(each.read_text() for each in files)
    for part in ("no docker that runs here", "systemd-analyze", "may not mount one", "needs root"):
        assert part in text
    assert all(ALLOWED.values())
