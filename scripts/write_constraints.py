"""``make constraints``: writes down the versions that are installed with this Python.

``make setup`` installs these versions, so that a clone of next month gets what was tested. What a
file names already and is not installed here (a Java as a wheel) keeps its line.
"""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name

FOLDER = Path(__file__).parent / "constraints"
NOT_HERE = frozenset({"spanner-watcher", "pyspark", "pip", "setuptools", "uv", "wheel"})
"""The project itself, what scripts/bootstrap.sh chooses, and what installs the others."""


def main() -> None:
    """Writes the file of this Python."""
    path = FOLDER / f"python-{sys.version_info.major}.{sys.version_info.minor}.txt"
    versions = read_versions(path) | list_installed()
    lines = [f"{name}=={version}" for name, version in sorted(versions.items())]
    path.write_text("\n".join(["# Tested versions; `make constraints` writes them.", *lines, ""]))
    print(f"{path}: {len(lines)} versions")


def read_versions(path: Path) -> dict[str, str]:
    """The versions that a file names."""
    lines = path.read_text().splitlines() if path.exists() else []
    pairs = (line.split("==") for line in lines if "==" in line)
    return {name: version for name, version in pairs if name not in NOT_HERE}


def list_installed() -> dict[str, str]:
    """The versions that are installed here."""
    names = ((canonicalize_name(each.name), each.version) for each in distributions())
    return {name: version for name, version in names if name not in NOT_HERE}


if __name__ == "__main__":
    main()
