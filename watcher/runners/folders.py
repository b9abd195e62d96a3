"""The folders of the files and copies that settings name: looked for before anything starts.

Of a mistyped path everything would be made otherwise, and the changes would be where nobody looks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from watcher.model.errors import ConfigurationError
from watcher.process.private_files import explain, make_folder
from watcher.settings.destinations import FilesDestination
from watcher.settings.watcher import WatchConfig

ADVICE = "make it, or use --create-folders (create_folders = true)"


def prepare_folders(config: WatchConfig) -> None:
    """The folders that a watcher or a replica needs. Raises ConfigurationError for one that is
    missing beside its last component; with ``create_folders`` they are made."""
    for option, path in list_files(config):
        if os.path.isdir(path):
            raise ConfigurationError(f"{option}: {path} is a folder: name a file in it")
        prepare_folder(option, path.parent, config.create_folders)
    if config.replica is not None and not config.replica.copies.in_catalog:
        prepare_any_folder("replica.to", config.replica.folder, config.create_folders)
    if isinstance(files := config.delivery.queue, FilesDestination):
        prepare_any_folder("delivery.to", files.folder, config.create_folders)


def list_files(config: WatchConfig) -> Iterator[tuple[str, Path]]:
    """Each file, with the option that names it."""
    delivery = config.delivery
    files = {
        "delivery.to": delivery.file or delivery.database_file,
        "delivery.dead_letters": delivery.dead_letters,
        "positions.path": config.positions.path if config.positions.keep == "file" else None,
    }
    yield from ((option, path) for option, path in files.items() if path is not None)


def prepare_any_folder(option: str, folder: str, create: bool) -> None:
    """As ``prepare_folder``; an object store has no folders that are missing."""
    if "://" not in folder:
        prepare_folder(option, Path(folder), create)


def prepare_folder(option: str, folder: Path, create: bool) -> None:
    """A folder that is there, or can be made in one that is. Raises ConfigurationError."""
    if create:
        with explain(folder):
            make_folder(folder)
        return
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise ConfigurationError(f"{option}: {folder} is not a folder: name another place")
    if not os.path.isdir(folder) and not os.path.isdir(folder.parent):
        raise ConfigurationError(f"{option}: there is no folder {folder.parent}: {ADVICE}")
