"""A process that only watches does not load pandas, which pyarrow would import."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pandas")

MAKE_ARRAYS = """
import sys
import pyarrow as pa
{first}
numbers = pa.array([1, 2]).to_numpy()
pa.scalar("x").as_py(), pa.array(numbers)
print("pandas" in sys.modules)
"""
KEEP_OUT = "from watcher.process.spark.pandas_import import keep_pandas_out; keep_pandas_out()"


def run_python(code: str) -> str:
    """What a process prints that does nothing else."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_pyarrow_does_without_pandas_where_it_is_kept_out() -> None:
    assert run_python(MAKE_ARRAYS.format(first="")) == "True"
    assert run_python(MAKE_ARRAYS.format(first=KEEP_OUT)) == "False"


def test_who_needs_pandas_can_still_import_it() -> None:
    code = f"{KEEP_OUT}; import pandas; print(pandas.Series([1]).sum())"
    assert run_python(code) == "1"


@pytest.mark.parametrize(
    "use",
    [
        "import pandas; print(pa.array(pandas.Series([1.0, float('nan')])).null_count)",
        "import pandas.testing; print(pa.array(pandas.Series([1.0, float('nan')])).null_count)",
        "print(pa.array([1, None]).to_pandas().isna().sum())",
        "print(pa.table({'a': [1, None]}).to_pandas().a.isna().sum())",
        "import importlib.util as u; s = u.find_spec('pandas'); import pandas as p, pkgutil as k;"
        " print(k.get_data('pandas', '__init__.py').count(b'__version__') > 0"
        " and p.__spec__.loader is p.__loader__ and pa.array(p.Series([None])).null_count)",
    ],
)
def test_pyarrow_knows_pandas_once_somebody_needs_it(use: str) -> None:
    assert run_python(f"import pyarrow as pa; {KEEP_OUT}; {use}") == "1"


def test_pandas_that_was_imported_before_is_used() -> None:
    code = f"import pandas, pyarrow as pa; {KEEP_OUT}; print(len(pa.array([1]).to_pandas()))"
    assert run_python(code) == "1"
