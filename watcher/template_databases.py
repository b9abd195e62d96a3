"""A server for tests, whose databases are copied from templates: milliseconds each."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
from google.cloud.spanner_v1.database import Database

from emulator.copy_calls import COPY
from emulator.process import call_server, spawn
from spanner_schema.model.schema import Dialect
from watcher.model.errors import ConfigurationError
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.database import create_on_emulator, open_client
from watcher.spanner.seeds import Seed, read_seed, sort_statements

PROJECT, INSTANCE = "test-project", "test-instance"


class SpannerServer:
    """A server with databases of this process's tests. ``address`` is HOST:PORT."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._run = secrets.token_hex(4)
        self._made = 0
        self._copies = True
        self._templates: dict[tuple[Seed, Dialect], DatabaseAddress] = {}
        self._client = open_client(DatabaseAddress(PROJECT, INSTANCE, "none"))

    def create_database(self, seed: Seed, dialect: Dialect) -> Database:
        """A new database that has executed the statements of a seed: a copy of the first one with
        the same, or made anew where the server is not ours.

        Raises ConfigurationError for a statement that the server refuses.
        """
        template = self._templates.get((seed, dialect))
        if template is None:
            template = self._create(seed, dialect, "template")
            self._templates[seed, dialect] = template
        identifier = self._copy(template)
        if identifier is None:
            identifier = self._create(seed, dialect, "test").database
        return self._open(identifier)

    def drop_templates(self) -> None:
        """Drops what databases were copied from."""
        for template in self._templates.values():
            self._open(template.database).drop()
        self._templates.clear()

    def _open(self, identifier: str) -> Database:
        database: Database = self._client.instance(INSTANCE).database(identifier)
        return database

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._run}-{self._made}"

    def _create(self, seed: Seed, dialect: Dialect, kind: str) -> DatabaseAddress:
        address = DatabaseAddress(PROJECT, INSTANCE, self._name(kind))
        create_on_emulator(address, seed.ddl, dialect, seed.dml)
        return address

    def _copy(self, template: DatabaseAddress) -> str | None:
        """The id of a copy; None where the server makes none."""
        if not self._copies:
            return None
        identifier = self._name("test")
        try:
            call_server(self.address, COPY, {"database": template.path, "id": identifier})
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            self._copies = False
            return None
        return identifier


@contextmanager
def find_server() -> Iterator[SpannerServer]:
    """The server that SPANNER_EMULATOR_HOST names; else one that is started, and stopped at the
    end, to which the variable points meanwhile."""
    given = os.environ.get(EMULATOR_HOST)
    if given:
        server = SpannerServer(given)
        yield server
        server.drop_templates()
        return
    with spawn() as process:
        os.environ[EMULATOR_HOST] = process.address
        try:
            yield SpannerServer(process.address)
        finally:
            os.environ.pop(EMULATOR_HOST, None)


@contextmanager
def make_database(
    server: SpannerServer, schema: Sequence[str | Path], dialect: str
) -> Iterator[Database]:
    """A database with these statements and files of statements, dropped at the end.

    Raises ConfigurationError for what cannot be read, for a statement that the server refuses, and
    for a dialect that there is not.
    """
    if dialect not in set(Dialect):
        raise ConfigurationError(f"there is no dialect {dialect!r}: use {' or '.join(Dialect)}")
    language = Dialect(dialect)
    seed = Seed()
    for each in schema:
        seed += read_seed(each, language) if isinstance(each, Path) else sort_statements([each])
    database = server.create_database(seed, language)
    try:
        yield database
    finally:
        database.drop()
