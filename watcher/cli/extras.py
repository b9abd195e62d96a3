"""The optional libraries of the distribution: which are missing, and how to install them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from watcher.errors import ConfigurationError

EXTRAS = {
    "bench": ("hdrh", "matplotlib", "psutil"),
    "emulator": ("apsw", "farmhash", "grpc_status"),
    "spark": ("pyspark",),
}
"""The modules that each extra installs."""


def require_extras(names: Sequence[str]) -> None:
    """Raises ConfigurationError, with the pip command, if a library of these extras is missing."""
    missing = {name: [m for m in EXTRAS[name] if find_spec(m) is None] for name in names}
    extras = [name for name, modules in missing.items() if modules]
    if extras:
        modules = ", ".join(module for name in extras for module in missing[name])
        raise ConfigurationError(
            f"missing libraries ({modules}): run pip install 'spanner-watcher[{','.join(extras)}]'"
        )
