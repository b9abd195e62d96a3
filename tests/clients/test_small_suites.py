"""The suites of others that need nothing but what ``make setup`` installs run with every change."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.run import run_suite
from clients.suite import Suite
from clients.suites import SMALL


@pytest.mark.essential
@pytest.mark.parametrize("suite", SMALL, ids=lambda suite: suite.name)
def test_a_suite_of_others_has_no_problem(suite: Suite, tmp_path: Path) -> None:
    judgement = run_suite(suite, tmp_path)
    assert judgement.problems == ()
