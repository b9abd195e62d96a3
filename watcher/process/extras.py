"""The optional libraries that the extras of the distribution install, and its own packages."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from watcher.model.errors import ConfigurationError
from watcher.model.outputs import SINKS

DISTRIBUTION = "spanner-watcher"
EXTRAS = {
    "avro": ("fastavro",),
    "bench": ("apsw", "farmhash", "hdrh", "jinja2", "matplotlib", "psutil", "pyspark"),
    "delta": ("deltalake", "obstore", "pyroaring"),
    "emulator": ("apsw", "farmhash", "grpc_status"),
    "iceberg": ("pyiceberg", "pyroaring", "sqlalchemy"),
    "registry": ("authlib", "cachetools", "confluent_kafka", "httpx2"),
    "spark": ("pyspark",),
    "stores": ("obstore",),
    "tracing": ("opentelemetry.trace",),
    **{scheme: entry.libraries for scheme, entry in SINKS.items() if entry.libraries},
}
"""The modules that each extra installs."""
OWN_PACKAGES = {"bench": ("benchmarks", "emulator"), "emulator": ("emulator",)}
"""The packages of this distribution that are for those who have an extra."""
OF_COMMANDS = ("ddl", "emulator", "benchmarks", "conformance")
"""The packages of this distribution that commands import, and no job does."""


class MissingExtraError(ConfigurationError, ImportError):
    """A library of an extra is not installed."""


class HiddenPackageError(ConfigurationError, ImportError):
    """A file of somebody else's is imported in place of a package of this distribution."""


def require_own_package(name: str) -> None:
    """Raises HiddenPackageError if ``import name`` gives anything but the package of this
    distribution: Python takes what lies in the folder of the program, or on PYTHONPATH, first."""
    module = sys.modules.get(name)
    spec = find_spec(name) if module is None else module.__spec__
    found = spec.origin if spec is not None else getattr(module, "__file__", None)
    own = Path(__file__).parents[2] / name / "__init__.py"
    if found is None or Path(found) != own:
        raise HiddenPackageError(
            f"{found or 'another module'} hides the package '{name}' of {DISTRIBUTION}: give that"
            " file another name, or run the program from another folder"
        )


def require_extras(*names: str) -> None:
    """Raises MissingExtraError, with the pip command, if a library of these extras is missing, and
    as ``require_own_package`` for what is for those who have them."""
    for package in {own: None for name in names for own in OWN_PACKAGES.get(name, ())}:
        require_own_package(package)
    missing = {name: [m for m in EXTRAS[name] if find_spec(m) is None] for name in names}
    extras = [name for name, modules in missing.items() if modules]
    if extras:
        modules = ", ".join(module for name in extras for module in missing[name])
        raise MissingExtraError(
            f"missing libraries ({modules}): run pip install '{DISTRIBUTION}[{','.join(extras)}]'"
        )
