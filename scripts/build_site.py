"""Builds the site of the documentation: ``python scripts/build_site.py build`` makes build/site."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build_site(folder: Path) -> Path:
    """The site in a folder, from a copy of the pages; a dead link is an error.

    The generator empties ``.cache`` beside its configuration, and in the repository that is the
    folder of the programs that tests need. So it gets a folder of its own.
    """
    shutil.rmtree(folder / "docs", ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "zensical.toml", folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    result = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stdout + result.stderr)
    return folder / "site"


if __name__ == "__main__":
    print(build_site(Path(sys.argv[1]).resolve()))
