"""A fixed sample of the schema-change case files; `make conformance` runs them all."""

from __future__ import annotations

import pytest

from case_files.schema_changes import describe, is_fault, read_cases, run_cases
from case_files.scope import FOLDER
from emulator.process import ServerProcess

SAMPLE_EACH = 5
FILES = (
    *("column_default_values.test", "column_on_update.test", "foreign_key.test"),
    *("generated_column.test", "key_column_alteration.test", "views.test"),
)


@pytest.mark.skipif(not FOLDER.exists(), reason=f"the case files are not in {FOLDER.name}")
@pytest.mark.parametrize("file", FILES)
def test_a_sample_of_each_file_has_the_same_outcome(server: ServerProcess, file: str) -> None:
    cases = [case for case in read_cases("schema_changes") if case.file == file][::SAMPLE_EACH]
    assert cases, f"{file} is missing"
    faults = [outcome for outcome in run_cases(server.address, cases) if is_fault(outcome)]
    assert not faults, "\n".join(map(describe, faults))
