"""Suites that are in no package: files of a repository at one tag."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from clients.suite import Workplace

ORIGIN = "https://github.com/"
MIRROR = "CLIENTS_REPOSITORIES"
"""A folder of clones, ``owner/name`` each, that are read in place of ``ORIGIN``."""


def copy_files(place: Workplace, repository: str, tag: str, *paths: str) -> Path:
    """Files and folders of ``owner/name`` at a tag, in a folder that may be written."""
    origin = os.environ.get(MIRROR)
    clone = Path(origin) / repository if origin else clone_tag(place, repository, tag)
    archive = subprocess.run(
        ["git", "-C", clone, "archive", tag, *paths], check=True, capture_output=True
    ).stdout
    folder = place.folder / "source"
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def clone_tag(place: Workplace, repository: str, tag: str) -> Path:
    """A clone of one tag alone, whose files are fetched when they are read."""
    folder = place.folder / "clone" / tag
    if not folder.exists():
        command = ["git", "clone", "--quiet", "--bare", "--filter=blob:none", "--depth=1"]
        place.call([*command, "--branch", tag, f"{ORIGIN}{repository}", folder])
    return folder
