"""Google's clients, left out of a process that serves: it needs the messages beside them alone, and
the clients are half a second of imports."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGES = (
    "google.cloud.spanner_v1",
    "google.cloud.spanner_admin_database_v1",
    "google.cloud.spanner_admin_instance_v1",
)


class LatePackage(ModuleType):
    """A package whose submodules can be imported, and that is executed at the first attribute which
    is none of them."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        self.__spec__ = spec
        self.__path__ = list(spec.submodule_search_locations or ())
        self.__file__ = spec.origin
        self.__package__ = spec.name
        self.__loader__ = spec.loader

    def __getattr__(self, name: str) -> Any:
        # A package from now on: what it imports may look for attributes, too.
        self.__class__ = ModuleType  # type: ignore[assignment]  # modules may change it
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(self)
        return getattr(self, name)


def leave_clients() -> None:
    """To be called by a process of the server's own, before it imports anything of Google's and has
    threads: they could meet a package that is not whole yet."""
    for package in PACKAGES:
        spec = find_spec(package)
        if package not in sys.modules and spec is not None:
            sys.modules[package] = LatePackage(spec)
