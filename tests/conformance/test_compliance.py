"""A fixed sample of GoogleSQL's compliance files; all of them are run by compliance.py itself."""

from __future__ import annotations

import pytest
from compliance import FOLDER, SAMPLE, find_files, run_files

from emulator.process import ServerProcess

FILES = [path for path in find_files() if path.name in SAMPLE]


@pytest.mark.skipif(not FILES, reason=f"GoogleSQL's compliance files are not in {FOLDER}")
def test_the_sample_of_compliance_files_gives_the_golden_results(server: ServerProcess) -> None:
    summary = run_files(server.address, FILES)
    assert summary.failed == []
    assert summary.unimplemented == []
    assert summary.in_scope > 0
