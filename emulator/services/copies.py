"""Copies of databases while the server runs: ``emulator.copy_calls``."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from emulator.copy_calls import COPY, SNAPSHOT
from emulator.data_directories import BACKUPS, DATABASES, REGISTRY
from emulator.errors import failed_precondition, invalid_argument
from emulator.files import FOLDER_MODE, replace_file
from emulator.services.calls import Call, RpcContext
from emulator.services.database_admin import check_database_id
from emulator.services.registry import Registry
from emulator.wire.messages import Message


class Copies:
    """The methods of the service."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def calls(self) -> Mapping[str, Call]:
        """The methods by name."""
        return {COPY: Call(Struct, self.copy), SNAPSHOT: Call(Struct, self.snapshot)}

    def copy(self, request: Message, context: RpcContext) -> Message:
        """A new database that is as another one is now."""
        source, identifier = read_texts(request, "database", "id")
        check_database_id(identifier)
        parent = source.partition("/databases/")[0]
        self._registry.copy_database(source, f"{parent}/databases/{identifier}")
        return request

    def snapshot(self, request: Message, context: RpcContext) -> Message:
        """A data directory with all databases at one moment."""
        (directory,) = read_texts(request, "directory")
        if not Path(directory).is_absolute():
            raise invalid_argument(f"The directory {directory!r} must be an absolute path.")
        write_snapshot(self._registry, Path(directory))
        return request


def write_snapshot(registry: Registry, directory: Path) -> None:
    """Writes a data directory with all that is here at this moment, which is one for all
    databases: no commit takes place while their states are taken.

    Raises FAILED_PRECONDITION for a directory that is not empty, or cannot be written.
    """
    try:
        directory.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise failed_precondition(f"The directory {directory} is not empty.")
    except OSError as error:
        raise failed_precondition(f"Cannot write {directory}: {error.strerror}.") from error
    with ExitStack() as readers:
        with ExitStack() as turns:
            hosted = [each for _, each in sorted(registry.databases.items())]
            for each in hosted:
                turns.enter_context(each.engine.without_commits())
            files = {each.file or f"{uuid.uuid4().hex}.sqlite": each for each in hosted}
            copies = {
                file: readers.enter_context(each.engine.frozen()) for file, each in files.items()
            }
            content = registry.describe(files)
            registry.backups.link_files(directory / BACKUPS)
        for file, write in copies.items():
            write(directory / DATABASES / file)
    # Last: without it the directory has no databases.
    replace_file(directory / REGISTRY, json.dumps(content))


def read_texts(request: Message, *names: str) -> list[str]:
    """The texts of a request. Raises INVALID_ARGUMENT unless it has these, and these alone."""
    values = MessageToDict(request)
    if set(values) != set(names) or not all(isinstance(each, str) for each in values.values()):
        raise invalid_argument(f"The request needs these texts: {', '.join(names)}.")
    return [values[name] for name in names]
