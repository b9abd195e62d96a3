"""Keeps pandas out of processes that need none of it, until somebody imports it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

PANDAS = "pandas"


class LatePandas(MetaPathFinder):
    """While it ``refuses``, says in the place of the import system that pandas is not installed.
    Then pyarrow is told of it when somebody imports it."""

    refuses = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As ``MetaPathFinder.find_spec``. Raises ModuleNotFoundError for pandas."""
        if fullname != PANDAS:
            return None
        if self.refuses:
            raise ModuleNotFoundError("pandas is not imported here", name=fullname)
        others = [each for each in sys.meta_path if each is not self]
        specs = (each.find_spec(fullname, path, target) for each in others)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            spec.loader = PandasLoader(spec.loader)
        return spec


class PandasLoader(Loader):
    """Loads pandas as ``loader`` does, and tells pyarrow."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As ``Loader.create_module``."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As ``Loader.exec_module``; the module keeps its own loader."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        with suppress(ImportError):  # a pandas that is too old for it
            # Looks for pandas again, as ``to_pandas`` does, but ``pa.array`` does not.
            _ = pa.lib._pandas_api.pd


LATE = LatePandas()


def keep_pandas_out() -> None:
    """pyarrow does without pandas in this process, until somebody imports it; unless it was
    imported already.

    pyarrow looks for pandas once, with the first array that it makes, and imports it where it is
    installed (for Spark, say): 40 MB and half a second of CPU or more. Call it before there are
    threads.
    """
    if PANDAS in sys.modules or LATE in sys.meta_path:
        return
    sys.meta_path.insert(0, LATE)
    try:
        pa.array([0])
    finally:
        LATE.refuses = False
