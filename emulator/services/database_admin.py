"""google.spanner.admin.database.v1.DatabaseAdmin: databases and their schemas."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence

from google.protobuf.empty_pb2 import Empty

from emulator import limits
from emulator.catalog.routines import role_rows
from emulator.engine.clock import wall_micros
from emulator.engine.schema_rules.options import retention_seconds
from emulator.engine.schema_rules.syntax import refuse_syntax
from emulator.errors import already_exists, failed_precondition, invalid_argument
from emulator.faults import FaultInjector
from emulator.services.calls import Call, RpcContext
from emulator.services.filters import read_filter
from emulator.services.operations import run_in_background, set_response
from emulator.services.paging import cut_page
from emulator.services.registry import HostedDatabase, Registry
from emulator.wire import messages as m
from emulator.wire import times
from emulator.wire.messages import Message
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.errors import DdlError
from spanner_schema.model.resource_ids import IdRules
from spanner_schema.model.schema import Dialect
from spanner_schema.model.steps import AlterDatabase, CreateVerbatim, OtherStatement, Step
from spanner_schema.syntax.parse import parse_statement
from spanner_schema.syntax.protos import KIND, list_bundle_types, read_bundle, read_bundle_change

SERVICE = "/google.spanner.admin.database.v1.DatabaseAdmin/"
READY = 2
GOOGLE_DEFAULT_ENCRYPTION = 1
"""The type of encryption, of databases and backups: keys of one's own are not served."""
SLOW_REPORT_SECONDS = 0.1
"""How often a statement that a fault makes slow reports its progress."""
DIALECTS = {0: Dialect.GOOGLESQL, 1: Dialect.GOOGLESQL, 2: Dialect.POSTGRESQL}
"""The numbers of DatabaseDialect."""
DIALECT_NUMBERS = {Dialect.GOOGLESQL: 1, Dialect.POSTGRESQL: 2}
OPERATION_ID = re.compile(r"[a-z][a-z0-9_]*\Z")
CREATE_DATABASE = re.compile(
    r"\s*+CREATE\s++DATABASE\s++(?:`([^`]+)`|\"([^\"]+)\"|([^\s;`\"]++))\s*+;?\s*+\Z", re.I
)


class DatabaseAdmin:
    """The methods of the service."""

    def __init__(self, registry: Registry, faults: FaultInjector) -> None:
        self._registry = registry
        self._faults = faults

    def calls(self) -> Mapping[str, Call]:
        """The methods by name."""
        return {
            SERVICE + "CreateDatabase": Call(m.CreateDatabaseRequest, self.create),
            SERVICE + "GetDatabase": Call(m.GetDatabaseRequest, self.get),
            SERVICE + "ListDatabases": Call(m.ListDatabasesRequest, self.list),
            SERVICE + "UpdateDatabase": Call(m.UpdateDatabaseRequest, self.update),
            SERVICE + "UpdateDatabaseDdl": Call(m.UpdateDatabaseDdlRequest, self.update_ddl),
            SERVICE + "GetDatabaseDdl": Call(m.GetDatabaseDdlRequest, self.get_ddl),
            SERVICE + "DropDatabase": Call(m.DropDatabaseRequest, self.drop),
            SERVICE + "ListDatabaseOperations": Call(
                m.ListDatabaseOperationsRequest, self.list_operations
            ),
            SERVICE + "ListDatabaseRoles": Call(m.ListDatabaseRolesRequest, self.list_roles),
        }

    def create(self, request: Message, context: RpcContext) -> Message:
        """Creates a database with its extra statements; fails at once if one of them is invalid."""
        match = CREATE_DATABASE.match(request.create_statement)
        if match is None:
            raise invalid_argument(
                f"Invalid CreateDatabase request: {request.create_statement!r} is not"
                " CREATE DATABASE and an id."
            )
        identifier = next(filter(None, match.groups()), "")
        check_database_id(identifier)
        dialect = DIALECTS.get(request.database_dialect)
        if dialect is None:
            raise invalid_argument(
                f"Invalid CreateDatabase request: there is no dialect {request.database_dialect}."
            )
        if dialect is Dialect.POSTGRESQL:
            refuse_extra_statements(request)
        self._registry.instances.get(request.parent)
        name = f"{request.parent}/databases/{identifier}"
        if name in self._registry.databases:
            raise already_exists(f"Database already exists: {name}")
        statements = list(request.extra_statements)
        check_syntax(statements)
        descriptors = request.proto_descriptors
        proto = database_message(
            self._registry.create_database(name, statements, descriptors, dialect)
        )
        operation = operation_name(name)
        self._registry.operations.start(operation, m.CreateDatabaseMetadata(database=name))
        self._registry.operations.change(operation, lambda started: set_response(started, proto))
        return self._registry.operations.get(operation)

    def get(self, request: Message, context: RpcContext) -> Message:
        """A database."""
        return database_message(self._registry.database(request.name))

    def list(self, request: Message, context: RpcContext) -> Message:
        """The databases of an instance."""
        self._registry.instances.get(request.parent)
        databases, token = cut_page(self._registry.databases_of(request.parent), request)
        answer = m.ListDatabasesResponse(next_page_token=token)
        answer.databases.extend(database_message(database) for database in databases)
        return answer

    def update(self, request: Message, context: RpcContext) -> Message:
        """Drop protection, the only field that can be changed."""
        paths = list(request.update_mask.paths)
        if paths != ["enable_drop_protection"]:
            raise invalid_argument(
                "Invalid UpdateDatabase request: the mask must name enable_drop_protection alone."
            )
        database = self._registry.database(request.database.name)

        def work() -> Message:
            database.drop_protection = request.database.enable_drop_protection
            self._registry.save()
            return database_message(database)

        return run_in_background(
            self._registry,
            database.ddl_queue,
            operation_name(database.name),
            m.UpdateDatabaseMetadata(request=request),
            work,
        )

    def update_ddl(self, request: Message, context: RpcContext) -> Message:
        """Executes statements in the background; those before a failing one take effect."""
        database = self._registry.database(request.database)
        statements = list(request.statements)
        if not 0 < len(statements) <= limits.STATEMENTS_IN_DDL_MAX:
            raise invalid_argument(
                "UpdateDatabaseDdl needs at least one statement and at most "
                f"{limits.STATEMENTS_IN_DDL_MAX}."
            )
        if request.operation_id and not OPERATION_ID.match(request.operation_id):
            raise invalid_argument(f"Invalid operation id: {request.operation_id}")
        schema = database.engine.schema
        check_syntax(statements, list_bundle_types(schema), schema.dialect)
        name = operation_name(database.name, request.operation_id)
        return run_in_background(
            self._registry,
            database.ddl_queue,
            name,
            m.UpdateDatabaseDdlMetadata(database=database.name, statements=statements),
            lambda: self._execute(database, request, name),
        )

    def get_ddl(self, request: Message, context: RpcContext) -> Message:
        """Statements that create the same schema again."""
        database = self._registry.database(request.database)
        return m.GetDatabaseDdlResponse(
            statements=database.engine.ddl(),
            proto_descriptors=database.engine.proto_descriptors(),
        )

    def drop(self, request: Message, context: RpcContext) -> Message:
        """Deletes a database, unless it is protected. One that is gone is no error."""
        dropped = self._registry.find_database(request.database)
        if dropped is None:
            return Empty()
        if dropped.drop_protection:
            raise failed_precondition(
                f"Database {request.database} has drop protection enabled and cannot be dropped."
            )
        self._registry.drop_database(request.database)
        return Empty()

    def list_operations(self, request: Message, context: RpcContext) -> Message:
        """The operations of an instance's databases."""
        self._registry.instances.get(request.parent)
        accept = read_filter(request)
        operations = self._registry.operations.below(f"{request.parent}/databases/", accept)
        if is_wrong(Wrong.SCHEMA_CHANGES_LISTED):
            operations = []
        listed, token = cut_page(operations, request)
        return m.ListDatabaseOperationsResponse(operations=listed, next_page_token=token)

    def list_roles(self, request: Message, context: RpcContext) -> Message:
        """The roles of a database, the system's among them."""
        schema = self._registry.database(request.parent).engine.schema
        names = sorted(str(name) for name, _ in role_rows(schema))
        listed, token = cut_page(names, request)
        answer = m.ListDatabaseRolesResponse(next_page_token=token)
        for name in listed:
            answer.database_roles.add(name=f"{request.parent}/databaseRoles/{name}")
        return answer

    def _execute(self, database: HostedDatabase, request: Message, name: str) -> Message:
        """The statements of an operation, with its progress in the metadata."""
        statements = list(request.statements)
        metadata = m.UpdateDatabaseDdlMetadata(database=database.name, statements=statements)
        for _ in statements:
            times.fill_timestamp(metadata.progress.add().start_time, wall_micros())

        def report() -> None:
            self._registry.operations.change(
                name, lambda operation: operation.metadata.Pack(metadata)
            )

        def on_done(index: int, commit_timestamp_micros: int) -> None:
            times.fill_timestamp(metadata.commit_timestamps.add(), commit_timestamp_micros)
            metadata.progress[index].progress_percent = 100
            times.fill_timestamp(metadata.progress[index].end_time, wall_micros())
            report()
            if index + 1 < len(statements):
                self._take_time(metadata, index + 1, report)

        self._take_time(metadata, 0, report)
        database.engine.update_ddl(statements, on_done, request.proto_descriptors)
        return Empty()

    def _take_time(self, metadata: Message, index: int, report: Callable[[], None]) -> None:
        """Before a statement: as long as a fault says, or until that is unset; throttled, with its
        progress."""
        seconds, begun = self._faults.schema_statement_seconds, time.monotonic()
        if not seconds:
            return
        metadata.throttled = True
        while self._faults.schema_statement_seconds and time.monotonic() - begun < seconds:
            percent = round(100 * (time.monotonic() - begun) / seconds)
            metadata.progress[index].progress_percent = min(max(percent, 1), 99)
            report()
            time.sleep(min(SLOW_REPORT_SECONDS, seconds))
        metadata.throttled = False


def check_database_id(identifier: str) -> None:
    """Raises INVALID_ARGUMENT for an id that Spanner refuses."""
    problem = IdRules.DATABASE.explain(identifier)
    if problem is not None:
        raise invalid_argument(f"Invalid CreateDatabase request: {problem}.")


def refuse_extra_statements(request: Message) -> None:
    """Spanner creates a database of the PostgreSQL dialect empty."""
    if request.extra_statements:
        raise invalid_argument(
            "DDL statements other than <CREATE DATABASE> are not allowed in database creation"
            " request for PostgreSQL-enabled databases."
        )
    if request.proto_descriptors:
        raise invalid_argument("The PostgreSQL dialect has no proto bundles.")


def check_syntax(
    statements: Sequence[str],
    type_names: Sequence[str] = (),
    dialect: Dialect = Dialect.GOOGLESQL,
) -> None:
    """Syntax errors and retention periods that Spanner does not offer are answered at once, before
    anything is executed.

    ``type_names`` are the types of the proto bundle, to which the statements may add.
    """
    names = set(type_names)
    for statement in statements:
        try:
            step = parse_statement(statement, dialect, names)
            names |= types_named(step)
        except DdlError as error:
            raise refuse_syntax(statement, error) from error
        if isinstance(step, AlterDatabase):
            retention_seconds({name: value for name, value in step.options if value is not None})


def types_named(step: Step) -> set[str]:
    """The types that a statement adds to the proto bundle. Raises DdlSyntaxError."""
    if isinstance(step, CreateVerbatim) and step.item.kind == KIND:
        return set(read_bundle(step.item.text))
    if isinstance(step, OtherStatement) and step.kind == f"ALTER {KIND}":
        return set(read_bundle_change(step.text).inserted)
    return set()


def operation_name(database: str, identifier: str = "") -> str:
    """The name of an operation of a database."""
    return f"{database}/operations/{identifier or f'_auto_op_{uuid.uuid4().hex}'}"


def text_option(database: HostedDatabase, name: str, default: str) -> str:
    """An option of a database, without its quotes."""
    return (database.engine.schema.options.get(name) or default).strip("'\"")


def database_message(database: HostedDatabase) -> Message:
    """A database as the API shows it."""
    proto = m.DatabaseProto(
        name=database.name,
        state=READY,
        database_dialect=DIALECT_NUMBERS[database.engine.schema.dialect],
        enable_drop_protection=database.drop_protection,
        version_retention_period=text_option(database, "version_retention_period", "1h"),
        default_leader=text_option(database, "default_leader", ""),
    )
    proto.encryption_info.add(encryption_type=GOOGLE_DEFAULT_ENCRYPTION)
    if database.restore_info is not None:
        proto.restore_info.CopyFrom(database.restore_info)
    times.fill_timestamp(proto.create_time, database.create_time_micros)
    earliest = max(database.create_time_micros, database.engine.oldest_readable())
    times.fill_timestamp(proto.earliest_version_time, earliest)
    return proto
