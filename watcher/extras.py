"""The distribution: its version, and the optional libraries that its extras install."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from watcher.errors import ConfigurationError

DISTRIBUTION = "spanner-watcher"
UNKNOWN_VERSION = "0+unknown"
EXTRAS = {
    "avro": ("fastavro",),
    "bench": ("apsw", "farmhash", "hdrh", "matplotlib", "psutil", "pyspark"),
    "delta": ("deltalake",),
    "emulator": ("apsw", "farmhash", "grpc_status"),
    "kafka": ("confluent_kafka",),
    "pubsub": ("google.cloud.pubsub_v1",),
    "spark": ("pyspark",),
}
"""The modules that each extra installs."""


class MissingExtraError(ConfigurationError, ImportError):
    """A library of an extra is not installed."""


def require_extras(*names: str) -> None:
    """Raises MissingExtraError, with the pip command, if a library of these extras is missing."""
    missing = {name: [m for m in EXTRAS[name] if find_spec(m) is None] for name in names}
    extras = [name for name, modules in missing.items() if modules]
    if extras:
        modules = ", ".join(module for name in extras for module in missing[name])
        raise MissingExtraError(
            f"missing libraries ({modules}): run pip install '{DISTRIBUTION}[{','.join(extras)}]'"
        )


def read_version() -> str:
    """The version of the installed distribution; ``0+unknown`` for a source tree on the path."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return UNKNOWN_VERSION
