"""Parts of the product that are replaced while a fault is put back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any


@contextmanager
def patch_attribute(owner: Any, name: str, value: object) -> Iterator[None]:
    """While it lasts, an attribute has another value."""
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def patch_everywhere(real: Callable[..., Any], value: object) -> Iterator[None]:
    """While it lasts, a function is replaced in every module of the product that imports it."""
    name = real.__name__
    with ExitStack() as stack:
        for module_name, module in list(sys.modules.items()):
            if module_name.startswith("watcher.") and vars(module).get(name) is real:
                stack.enter_context(patch_attribute(module, name, value))
        yield
