"""Fine-grained access control: what a session with a role may read, write and see.

The texts, and the columns that each statement needs, are those of the Go client's integration
tests (``TestIntegration_QueryWithRoles`` and its neighbours) and of Spanner's documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fixtures.server import CreateDatabase
from google.api_core.exceptions import PermissionDenied
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect

pytestmark = pytest.mark.both_dialects

TABLES = {
    Dialect.GOOGLESQL: (
        "CREATE TABLE Singers (SingerId INT64 NOT NULL, FirstName STRING(MAX),"
        " LastName STRING(MAX), Info BYTES(MAX)) PRIMARY KEY (SingerId)",
        "CREATE TABLE Hidden (Id INT64 NOT NULL) PRIMARY KEY (Id)",
        "CREATE INDEX SingersByName ON Singers(FirstName)",
        "CREATE VIEW Invoked SQL SECURITY INVOKER AS SELECT s.SingerId, s.LastName FROM Singers s",
        "CREATE VIEW Defined SQL SECURITY DEFINER AS SELECT s.SingerId, s.LastName FROM Singers s",
        "CREATE CHANGE STREAM Everything FOR ALL",
        "CREATE SCHEMA app",
        "CREATE TABLE app.Rooms (Id INT64 NOT NULL) PRIMARY KEY (Id)",
    ),
    Dialect.POSTGRESQL: (
        'CREATE TABLE "Singers" ("SingerId" bigint PRIMARY KEY, "FirstName" text,'
        ' "LastName" text, "Info" bytea)',
        'CREATE TABLE "Hidden" ("Id" bigint PRIMARY KEY)',
        'CREATE INDEX "SingersByName" ON "Singers"("FirstName")',
        'CREATE VIEW "Invoked" SQL SECURITY INVOKER AS SELECT s."SingerId", s."LastName"'
        ' FROM "Singers" s',
        'CREATE VIEW "Defined" SQL SECURITY DEFINER AS SELECT s."SingerId", s."LastName"'
        ' FROM "Singers" s',
        'CREATE CHANGE STREAM "Everything" FOR ALL',
        "CREATE SCHEMA app",
        'CREATE TABLE app."Rooms" ("Id" bigint PRIMARY KEY)',
    ),
}
SEES = {
    Dialect.GOOGLESQL: "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = ''"
    " AND TABLE_TYPE = 'BASE TABLE'",
    Dialect.POSTGRESQL: "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'",
}
COLUMNS = {
    Dialect.GOOGLESQL: "SELECT COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS"
    " WHERE TABLE_NAME = 'Singers'",
    Dialect.POSTGRESQL: "SELECT column_name FROM information_schema.columns"
    " WHERE table_name = 'Singers'",
}


class Singers:
    """A database with a role ``r``, whose privileges a test grants."""

    def __init__(self, database: Database, dialect: Dialect) -> None:
        self.owner = database
        self.dialect = dialect
        self.change("CREATE ROLE r")
        with database.batch() as batch:
            batch.insert("Singers", ("SingerId", "FirstName"), [(1, "Marc")])
        instance = database._instance
        self.limited = instance.database(database.database_id, database_role="r")

    def change(self, *statements: str) -> None:
        self.owner.update_ddl(list(map(self.write, statements))).result(30)

    def write(self, text: str) -> str:
        """A statement of GoogleSQL, in the dialect: names between ` are quoted."""
        if self.dialect is Dialect.GOOGLESQL:
            return text
        return text.replace("`", '"').replace(" TO ROLE ", " TO ").replace(" FROM ROLE ", " FROM ")

    def query(self, sql: str) -> list[list[Any]]:
        with self.limited.snapshot() as snapshot:
            return list(snapshot.execute_sql(self.write(sql)))

    def read(self, *columns: str, index: str = "") -> list[list[Any]]:
        with self.limited.snapshot() as snapshot:
            return list(snapshot.read("Singers", columns, KeySet(all_=True), index=index))

    def execute(self, sql: str) -> None:
        self.limited.run_in_transaction(lambda t: t.execute_update(self.write(sql)))

    def commit(self, method: str, *arguments: Any) -> None:
        with self.limited.batch() as batch:
            getattr(batch, method)(*arguments)


@pytest.fixture
def singers(create_database: CreateDatabase, dialect: Dialect) -> Singers:
    return Singers(create_database(*TABLES[dialect]), dialect)


def text_of(error: PermissionDenied) -> str:
    """The server's text: the client adds the id of the request to some."""
    return str(error.message).partition(", request_id")[0]


def refuse(work: Callable[[], object], what: str = "table Singers") -> None:
    with pytest.raises(PermissionDenied) as refused:
        work()
    assert text_of(refused.value) == f"Role r does not have required privileges on {what}."


@pytest.mark.parametrize("role", ["nobody", "gone"])
def test_a_role_that_does_not_exist_has_no_session(singers: Singers, role: str) -> None:
    singers.change("CREATE ROLE gone", "DROP ROLE gone")
    database = singers.owner._instance.database(singers.owner.database_id, database_role=role)
    with pytest.raises(PermissionDenied) as refused, database.snapshot() as snapshot:
        list(snapshot.execute_sql("SELECT 1"))
    assert text_of(refused.value) == f"Role not found: {role}."


NAMES = "SELECT s.`SingerId`, s.`FirstName` FROM `Singers` AS s"
NEEDS_SELECT = {
    NAMES: "SingerId, FirstName",
    f"SELECT x.`SingerId` FROM ({NAMES} WHERE s.`LastName` IS NULL) AS x": (
        "SingerId, FirstName, LastName"
    ),
    "SELECT * FROM `Singers`": "SingerId, FirstName, LastName, Info",
    "SELECT COUNT(*) FROM `Singers`": "Info",
    "SELECT MAX(`LastName`) FROM `Singers`": "LastName",
    "SELECT 1 FROM `Singers` AS a JOIN `Singers` AS b USING (`SingerId`)": "SingerId",
    "SELECT `FirstName` FROM `Singers` ORDER BY `LastName`": "FirstName, LastName",
    "WITH w AS (SELECT `Info` FROM `Singers`) SELECT w.`Info` FROM w": "Info",
}


@pytest.mark.parametrize("sql", NEEDS_SELECT)
def test_a_query_needs_every_column_that_it_reads_and_no_other(singers: Singers, sql: str) -> None:
    columns = NEEDS_SELECT[sql].split(", ")
    refuse(lambda: singers.query(sql))
    quoted = [f"`{column}`" for column in columns]
    singers.change(f"GRANT SELECT({', '.join(quoted)}) ON TABLE `Singers` TO ROLE r")
    assert len(singers.query(sql)) == 1
    for column in quoted:
        singers.change(f"REVOKE SELECT({column}) ON TABLE `Singers` FROM ROLE r")
        refuse(lambda: singers.query(sql))
        singers.change(f"GRANT SELECT({column}) ON TABLE `Singers` TO ROLE r")


def test_a_read_needs_its_columns(singers: Singers) -> None:
    singers.change("GRANT SELECT(`SingerId`, `FirstName`) ON TABLE `Singers` TO ROLE r")
    assert singers.read("SingerId", "FirstName") == [[1, "Marc"]]
    assert singers.read("SingerId", index="SingersByName") == [[1]]
    refuse(lambda: singers.read("SingerId", "LastName"))


UPDATE = "UPDATE `Singers` SET `FirstName` = `LastName` WHERE `SingerId` = 1"
INSERT = "INSERT INTO `Singers` (`SingerId`, `LastName`) VALUES (2, 'x')"
COPY = "INSERT INTO `Singers` (`SingerId`) SELECT `SingerId` + 9 FROM `Singers`"
NEEDS = {
    UPDATE: ("UPDATE(`FirstName`)", "SELECT(`SingerId`, `LastName`)"),
    INSERT: ("INSERT(`SingerId`, `LastName`)",),
    COPY: ("INSERT(`SingerId`)", "SELECT(`SingerId`)"),
    "DELETE FROM `Singers` WHERE `SingerId` = 1": ("DELETE", "SELECT(`SingerId`)"),
    "DELETE FROM `Singers` WHERE TRUE": ("DELETE",),
}


@pytest.mark.parametrize("sql", NEEDS)
def test_dml_needs_what_it_writes_and_what_it_reads(singers: Singers, sql: str) -> None:
    for privilege in NEEDS[sql]:
        refuse(lambda: singers.execute(sql))
        singers.change(f"GRANT {privilege} ON TABLE `Singers` TO ROLE r")
    singers.execute(sql)


MUTATIONS = {
    "insert": "INSERT(`SingerId`, `LastName`)",
    "update": "UPDATE(`SingerId`, `LastName`)",
    "insert_or_update": "INSERT(`SingerId`, `LastName`), UPDATE(`SingerId`, `LastName`)",
    "replace": "INSERT(`SingerId`, `LastName`), UPDATE(`SingerId`, `LastName`), DELETE",
}


@pytest.mark.parametrize("method", MUTATIONS)
def test_a_mutation_needs_its_columns(singers: Singers, method: str) -> None:
    key = 2 if method == "insert" else 1
    arguments = ("Singers", ("SingerId", "LastName"), [(key, "x")])
    refuse(lambda: singers.commit(method, *arguments))
    singers.change(f"GRANT {MUTATIONS[method]} ON TABLE `Singers` TO ROLE r")
    singers.commit(method, *arguments)
    refuse(lambda: singers.commit(method, "Singers", ("SingerId", "FirstName"), [(key, "x")]))


def test_a_delete_needs_its_table(singers: Singers) -> None:
    refuse(lambda: singers.commit("delete", "Singers", KeySet(all_=True)))
    singers.change("GRANT DELETE ON TABLE `Singers` TO ROLE r")
    singers.commit("delete", "Singers", KeySet(all_=True))


def test_a_view_has_the_rights_that_it_was_created_with(singers: Singers) -> None:
    invoked, defined = (f"SELECT v.`LastName` FROM `{n}` AS v" for n in ("Invoked", "Defined"))
    kind = "VIEW" if singers.dialect is Dialect.GOOGLESQL else "TABLE"
    refuse(lambda: singers.query(defined), "table Defined")
    singers.change(*(f"GRANT SELECT ON {kind} `{n}` TO ROLE r" for n in ("Invoked", "Defined")))
    assert singers.query(defined) == [[None]]
    refuse(lambda: singers.query(invoked))
    singers.change("GRANT SELECT(`SingerId`, `LastName`) ON TABLE `Singers` TO ROLE r")
    assert singers.query(invoked) == [[None]]


def test_a_role_has_what_its_roles_have(singers: Singers) -> None:
    member = "GRANT ROLE" if singers.dialect is Dialect.GOOGLESQL else "GRANT"
    singers.change(
        "CREATE ROLE a", "CREATE ROLE b", f"{member} a TO ROLE r", f"{member} b TO ROLE a"
    )
    refuse(lambda: singers.query(NAMES))
    singers.change("GRANT SELECT ON TABLE `Singers` TO ROLE b")
    assert singers.query(NAMES) == [[1, "Marc"]]
    singers.change("REVOKE SELECT ON TABLE `Singers` FROM ROLE b")
    refuse(lambda: singers.query(NAMES))
    singers.change("GRANT SELECT ON TABLE `Singers` TO ROLE public")
    assert singers.query(NAMES) == [[1, "Marc"]]


def test_an_object_of_a_named_schema_needs_the_schema(singers: Singers) -> None:
    rooms = "SELECT r.`Id` FROM app.`Rooms` AS r"
    singers.change("GRANT SELECT ON TABLE app.`Rooms` TO ROLE r")
    refuse(lambda: singers.query(rooms), "table app.Rooms")
    singers.change("GRANT USAGE ON SCHEMA app TO ROLE r")
    assert singers.query(rooms) == []


def test_the_catalog_shows_what_a_role_may_use(singers: Singers) -> None:
    sees, columns = SEES[singers.dialect], COLUMNS[singers.dialect]
    assert singers.query(sees) == []
    singers.change("GRANT SELECT(`FirstName`), UPDATE(`Info`) ON TABLE `Singers` TO ROLE r")
    assert singers.query(sees) == [["Singers"]]
    assert sorted(singers.query(columns)) == [["FirstName"], ["Info"]]
    member = "GRANT ROLE" if singers.dialect is Dialect.GOOGLESQL else "GRANT"
    singers.change(f"{member} spanner_info_reader TO ROLE r")
    assert sorted(singers.query(sees)) == [["Hidden"], ["Singers"]]
    assert len(singers.query(columns)) == 4


def test_the_catalog_tells_privileges(singers: Singers) -> None:
    googlesql = singers.dialect is Dialect.GOOGLESQL
    member, view = ("GRANT ROLE", "VIEW") if googlesql else ("GRANT", "TABLE")
    read = "TABLE FUNCTION READ_Everything"
    function = read if googlesql else 'FUNCTION spanner."read_json_Everything"'
    singers.change(
        "CREATE ROLE other",
        "GRANT SELECT, UPDATE(`Info`, `LastName`) ON TABLE `Singers` TO ROLE r",
        f"GRANT SELECT ON {view} `Defined` TO ROLE r",
        "GRANT DELETE ON TABLE app.`Rooms` TO ROLE other",
        "GRANT SELECT ON CHANGE STREAM `Everything` TO ROLE r",
        f"GRANT EXECUTE ON {function} TO ROLE r",
        f"{member} other TO ROLE r",
    )
    public, owner = ("", "") if googlesql else ("public", "spanner")
    wanted: dict[str, list[list[str]]] = {
        "TABLE_SCHEMA, TABLE_NAME, PRIVILEGE_TYPE, GRANTEE FROM {}.TABLE_PRIVILEGES": [
            ["app", "Rooms", "DELETE", "other"],
            [public, "Defined", "SELECT", "r"],
            [public, "Singers", "SELECT", "r"],
        ],
        "TABLE_NAME, COLUMN_NAME, IS_GRANTABLE FROM {}.ROLE_COLUMN_GRANTS"
        " WHERE PRIVILEGE_TYPE = 'UPDATE' AND GRANTEE = 'r'": [
            ["Singers", "Info", "NO"],
            ["Singers", "LastName", "NO"],
        ],
        "COLUMN_NAME FROM {}.COLUMN_PRIVILEGES WHERE PRIVILEGE_TYPE = 'SELECT'"
        " AND TABLE_NAME = 'Singers'": [["FirstName"], ["Info"], ["LastName"], ["SingerId"]],
        "CHANGE_STREAM_NAME, PRIVILEGE_TYPE FROM {}.CHANGE_STREAM_PRIVILEGES": [
            ["Everything", "SELECT"]
        ],
        "SPECIFIC_SCHEMA, PRIVILEGE_TYPE, GRANTEE FROM {}.ROUTINE_PRIVILEGES": [
            [owner, "EXECUTE", "r"]
        ],
        "GRANTEE, ROLE_NAME FROM {}." + ("ROLE_GRANTEES" if googlesql else "APPLICABLE_ROLES"): [
            ["r", "other"]
        ],
    }
    for text, rows in wanted.items():
        assert sorted(singers.query("SELECT " + text.format("INFORMATION_SCHEMA"))) == sorted(rows)
    singers.change(f"REVOKE SELECT ON {view} `Defined` FROM ROLE r")
    (privileges, *_) = wanted
    assert len(singers.query("SELECT " + privileges.format("INFORMATION_SCHEMA"))) == 2


def test_statistics_need_their_reader(singers: Singers) -> None:
    name = "SPANNER_SYS.QUERY_STATS_TOP_MINUTE"
    sql = f"SELECT t.text FROM {name} AS t"
    refuse(lambda: singers.query(sql), "schema SPANNER_SYS")
    member = "GRANT ROLE" if singers.dialect is Dialect.GOOGLESQL else "GRANT"
    singers.change(f"{member} spanner_sys_reader TO ROLE r")
    singers.query(sql)


def test_a_change_stream_needs_itself_and_its_function(singers: Singers) -> None:
    start = datetime.now(UTC) - timedelta(milliseconds=1)
    end = start.isoformat()
    if singers.dialect is Dialect.GOOGLESQL:
        function, call = (
            "TABLE FUNCTION READ_Everything",
            (f"SELECT ChangeRecord FROM READ_Everything('{end}', '{end}', NULL, 1000)"),
        )
    else:
        function, call = (
            'FUNCTION spanner."read_json_Everything"',
            (f"SELECT * FROM spanner.\"read_json_Everything\"('{end}', '{end}', NULL, 1000, NULL)"),
        )
    refuse(lambda: singers.query(call), "change stream Everything")
    singers.change("GRANT SELECT ON CHANGE STREAM `Everything` TO ROLE r")
    refused = function.split(" ")[-1].replace('"', "")
    refuse(lambda: singers.query(call), f"table function {refused}")
    singers.change(f"GRANT EXECUTE ON {function} TO ROLE r")
    singers.query(call)


def test_partitions_of_a_query_need_its_columns(singers: Singers) -> None:
    batch = singers.limited.batch_snapshot()
    sql = singers.write("SELECT s.`SingerId` FROM `Singers` AS s")
    refuse(lambda: list(batch.generate_query_batches(sql)))
    singers.change("GRANT SELECT(`SingerId`) ON TABLE `Singers` TO ROLE r")
    (part, *_) = list(singers.limited.batch_snapshot().generate_query_batches(sql))
    assert part
