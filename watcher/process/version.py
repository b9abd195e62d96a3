"""The version of the distribution that is installed, here and where Spark's workers run."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

from watcher.model.errors import ConfigurationError
from watcher.process.extras import DISTRIBUTION

UNKNOWN_VERSION = "0+unknown"


class VersionMismatchError(ConfigurationError):
    """A Spark worker has another version of the product than the driver."""


def check_version(driver_version: str) -> None:
    """Raises VersionMismatchError, in a worker, unless it has the driver's version. A source tree
    or a zip of it has none, and is taken as it is."""
    own = read_version()
    if own != driver_version and UNKNOWN_VERSION not in (own, driver_version):
        raise VersionMismatchError(
            f"Spark's workers run {sys.executable} with {DISTRIBUTION} {own}, the driver has"
            f" {driver_version}: install the same version for both, or set PYSPARK_PYTHON to the"
            " driver's Python before the session is made"
        )


def read_version() -> str:
    """The version of the installed distribution; ``0+unknown`` for a source tree on the path."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return UNKNOWN_VERSION
