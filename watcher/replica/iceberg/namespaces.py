"""The namespace of a catalog as the place of a replica: ``CATALOG.NAMESPACE``, and its folder.

The manifest is in the folder that the namespace's ``location`` names. Both are tied: the folder has
a file with an ID, which the namespace has as a property. The rules are N1 to N5 of
docs/replica-protocol.md.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qsl

from pyarrow.fs import FileType
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchNamespaceError
from pyiceberg.utils.config import Config

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.replica.cuts.cut import PREFIX
from watcher.replica.cuts.stored import FORMAT, read_stored
from watcher.replica.iceberg.catalog_errors import explain_catalog
from watcher.replica.iceberg.io import NAME as FILES
from watcher.replica.stores.stored_files import create_new, open_file_system

LOCATION, WAREHOUSE = "location", "warehouse"
TIE = f"{PREFIX}replica"
"""The property of a namespace with the ID of the replica that it has."""
FILE = "_catalog.json"
"""The file with the ID in the folder."""
SQLITE_FILE = "_catalog.db"
"""The catalog of a replica that is a folder."""
SECRET = re.compile(r"token|secret|password|credential|key", re.IGNORECASE)
CREDENTIALS = re.compile(r"//[^/@]*:[^/@]*@")


@dataclass(frozen=True, slots=True)
class NamespacePlace:
    """A namespace, and properties of its catalog beside those that pyiceberg is configured with."""

    catalog: str
    namespace: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, place: str) -> NamespacePlace:
        """Of ``CATALOG.NAMESPACE?NAME=VALUE&...``. Raises ConfigurationError for a secret, which
        would be shown."""
        name, _, query = place.partition("?")
        catalog, *namespace = name.split(".")
        options = dict(parse_qsl(query, keep_blank_values=True))
        for option, value in options.items():
            if SECRET.search(option) or CREDENTIALS.search(value):
                variable = option.upper().replace(".", "__").replace("-", "_")
                raise ConfigurationError(
                    f"the address of a catalog is shown and stored, and must not have '{option}':"
                    f" set PYICEBERG_CATALOG__{catalog.upper()}__{variable}, or write it into"
                    " ~/.pyiceberg.yaml"
                )
        return cls(catalog, tuple(namespace), options)

    def __str__(self) -> str:
        return ".".join((self.catalog, *self.namespace))

    def open(self) -> Catalog:
        """The catalog: type, uri and all else as for every user of pyiceberg. Raises
        ConfigurationError."""
        # load_catalog has read the environment when it was imported.
        known = Config().get_catalog_config(self.catalog) or {}
        properties = {"py-io-impl": FILES, **known, **self.options}
        try:
            with explain_catalog(str(self)):
                return load_catalog(self.catalog, **properties)  # type: ignore[arg-type]
        except (ValueError, ImportError) as error:
            raise ConfigurationError(
                f"cannot open the catalog {self.catalog}: {error}. Its properties are in"
                f" ~/.pyiceberg.yaml, in variables such as PYICEBERG_CATALOG__"
                f"{self.catalog.upper()}__URI, or behind a ? in the address"
            ) from error


class Namespace:
    """A namespace that has a replica, or is to have one."""

    def __init__(self, place: NamespacePlace) -> None:
        self.place = place

    @cached_property
    def catalog(self) -> Catalog:
        """Its catalog."""
        return self.place.open()

    @cached_property
    def folder(self) -> str:
        """The folder of the replica. Raises ConfigurationError where nothing says which it is, and
        ReplicaError where it belongs to another namespace."""
        properties = self._read() or {}
        folder = self._choose_folder(properties)
        there = read_tie(folder)
        claimed = TIE not in properties and f"{TIE}.{there}" in properties
        if there is not None and not claimed and there != properties.get(TIE):
            raise self._refuse(folder, there)
        return folder

    def tie(self) -> str:
        """Makes the namespace, unless it is there, and ties it and its folder to each other, before
        anything is written into either. Returns the ID of both. Raises ReplicaError where one of
        them is another's."""
        folder = self.folder
        if is_there(folder, SQLITE_FILE):
            raise ReplicaError(
                f"{folder} has the catalog {SQLITE_FILE} of its own: write it as iceberg:{folder},"
                f" or give {self.place} another location"
            )
        own, claim = self._claim(folder)
        text = json.dumps({"format": FORMAT, "id": own.get(TIE, claim), "of": str(self.place)})
        create_new(folder, FILE, text.encode())
        there = read_tie(folder) or ""
        own = self._settle(claim, there)
        if (own.get(LOCATION), own.get(TIE)) != (folder, there):
            raise self._refuse(folder, there)
        return there

    def _claim(self, folder: str) -> tuple[Mapping[str, str], str]:
        """The properties of the namespace, which is made if it is not there, and an ID. One without
        a tie has the claim of the ID then: of several starts at once, the file chooses one."""
        name, claim = self.place.namespace, secrets.token_hex(16)
        with explain_catalog(str(self.place)):
            with suppress(NamespaceAlreadyExistsError):
                if self._read() is None:
                    self.catalog.create_namespace(name, {LOCATION: folder, TIE: claim})
            there = self._read() or {}
            missing = {} if LOCATION in there else {LOCATION: folder}
            if TIE not in there:
                missing[f"{TIE}.{claim}"] = str(self.place)
            if missing:
                self.catalog.update_namespace_properties(name, updates=missing)
        return self._read() or {}, claim

    def _settle(self, claim: str, chosen: str) -> Mapping[str, str]:
        """Ties the namespace to the ID that was chosen, if that was claimed in this catalog: its
        properties."""
        own = self._read() or {}
        tie = {TIE: chosen} if TIE not in own and f"{TIE}.{chosen}" in own else {}
        gone = {f"{TIE}.{claim}"} & own.keys()
        if tie or gone:
            with explain_catalog(str(self.place)):
                self.catalog.update_namespace_properties(self.place.namespace, gone, tie)
        return self._read() or {}

    def _read(self) -> Mapping[str, str] | None:
        """The properties; None where there is no such namespace."""
        with explain_catalog(str(self.place)):
            try:
                properties = self.catalog.load_namespace_properties(self.place.namespace)
            except NoSuchNamespaceError:
                return None
        if LOCATION in properties:
            return {**properties, LOCATION: plain_folder(properties[LOCATION])}
        return dict(properties)

    def _choose_folder(self, properties: Mapping[str, str]) -> str:
        if LOCATION in properties:
            return properties[LOCATION]
        if given := self.place.options.get(LOCATION):
            return plain_folder(given)
        warehouse = self.catalog.properties.get(WAREHOUSE, "")
        if "/" in warehouse:
            return "/".join((plain_folder(warehouse), *self.place.namespace))
        raise ConfigurationError(
            f"nothing says where {self.place} is: give the namespace a location, or write"
            f" iceberg:{self.place}?location=s3://BUCKET/PREFIX"
        )

    def _refuse(self, folder: str, there: str) -> ReplicaError:
        return ReplicaError(
            f"the folder {folder} and the namespace {self.place} belong to different replicas: give"
            f" the namespace another location, or, if they do belong together, the property"
            f" {TIE} = {there}"
        )


def plain_folder(location: str) -> str:
    """A folder as the rest of a replica names it: on this machine, a path."""
    for scheme in ("file://", "file:"):
        if location.startswith(scheme):
            location = location.removeprefix(scheme)
    return location.rstrip("/") if "://" in location else str(Path(location).resolve())


def read_tie(folder: str) -> str | None:
    """The ID in a folder, if it has one."""
    files, base = open_file_system(folder)
    path = str(PurePosixPath(base) / FILE)
    try:
        return read_stored(files, path, lambda stored: str(stored["id"]))
    except FileNotFoundError:
        return None


def is_there(folder: str, name: str) -> bool:
    """Whether a folder has a file."""
    files, base = open_file_system(folder)
    return bool(files.get_file_info(f"{base}/{name}").type == FileType.File)


def find_folder(place: str) -> str:
    """The folder of the replica in a namespace."""
    return Namespace(NamespacePlace.parse(place)).folder


def tie_folder(place: str) -> str:
    """As ``Namespace.tie``."""
    return Namespace(NamespacePlace.parse(place)).tie()
