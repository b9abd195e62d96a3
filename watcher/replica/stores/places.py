"""How the place of a replica is written behind its format: a folder, or ``CATALOG.NAMESPACE``."""

from __future__ import annotations

import re

NAMESPACE = re.compile(r"[\w-]+(\.[\w-]+)+(\?.*)?", re.DOTALL)


def is_namespace(place: str) -> bool:
    """Whether a place is that of a namespace: it has a dot, and no slash before a ``?``."""
    return NAMESPACE.fullmatch(place) is not None


def split_namespace(place: str) -> tuple[str, ...]:
    """The names of the catalog and of the namespace."""
    return tuple(name_place(place).split("."))


def name_place(place: str) -> str:
    """A place without properties of its catalog."""
    return place.partition("?")[0] if is_namespace(place) else place
