"""Files of commands, loaded when somebody asks for the command, and what it needs when it runs.

A command is one file: options, help and what it does. Its help must not load what it does, which
takes a second. So the file keeps those imports below ``if to_run(__name__):``, and is *declared*
before it is imported: executed as another module, in which ``to_run`` is false.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from watcher.process.extras import DISTRIBUTION, require_extras, require_own_package
from watcher.process.spark.collector_pause import pause_collector

DECLARED = " (declared)"
"""How the name of such a module ends; the name of no file does."""


def to_run(module_name: str) -> bool:
    """False while a file is executed for its options and help alone."""
    return not module_name.endswith(DECLARED)


def declare(module_name: str) -> ModuleType:
    """The options and help of a file, without what its commands need when they run. Raises
    HiddenPackageError."""
    name = module_name + DECLARED
    if name in sys.modules:
        return sys.modules[name]
    require_own_package(module_name.partition(".")[0])
    found = find_spec(module_name)
    spec = spec_from_file_location(name, found.origin) if found is not None else None
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"no file of a module '{module_name}'", name=module_name)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def defer(
    module_name: str, extras: Sequence[str], declared: Callable[..., object]
) -> Callable[..., object]:
    """A function with the signature of ``declared`` that imports its module and calls the function
    of this name there. Raises MissingExtraError first."""

    @wraps(declared)
    def run(**values: Any) -> object:
        require_extras(*extras)
        with pause_collector():
            module = import_module(module_name)
        return getattr(module, declared.__name__)(**values)

    return run


def read_entry_points(group: str) -> dict[str, str]:
    """What this distribution registers under a group (``module:object``), by name, without packages
    that an image has removed; nothing for a source tree that is not installed. Other distributions
    cannot add commands to this program."""
    try:
        found = distribution(DISTRIBUTION).entry_points
    except PackageNotFoundError:
        return {}
    return {
        each.name: each.value
        for each in found.select(group=group)
        if find_spec(each.module.partition(".")[0]) is not None
    }
