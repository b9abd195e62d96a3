"""Keeps pandas out of processes that need none of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class PandasRefusal(MetaPathFinder):
    """Says, in the place of the import system, that pandas is not installed."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (Python's signature)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """As ``MetaPathFinder.find_spec``. Raises ModuleNotFoundError for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not imported here", name=fullname)
        return None


REFUSAL = PandasRefusal()


def keep_pandas_out() -> None:
    """pyarrow does without pandas in this process, unless it was imported already.

    pyarrow looks for pandas once, with the first array that it makes, and imports it where it is
    installed (for Spark, say): 40 MB and half a second of CPU. Afterwards ``to_pandas`` of Arrow
    raises an error, so this is only for processes without code of others. Call it before there are
    threads.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, REFUSAL)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(REFUSAL)
