"""CREATE, ALTER and DROP PROTO BUNDLE, and columns of its types."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from fixtures.music import (
    BUNDLE,
    DESCRIPTORS,
    GENRE,
    GENRES,
    HOME,
    MUSIC,
    OPEN,
    PACKAGE,
    SINGER,
    SingerInfo,
    describe_music,
    serialize,
)
from fixtures.server import CreateDatabase, connect, spawn
from google.api_core import exceptions
from google.cloud.spanner_admin_database_v1 import GetDatabaseDdlRequest
from google.cloud.spanner_v1.database import Database
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from talk import commit, dml, insert, rows

SINGERS = f"""CREATE TABLE Singers (
  Id INT64, Info {SINGER}, Infos ARRAY<{SINGER}>, Genre `{GENRE}`, Genres ARRAY<{GENRE}>, Mood Mood
) PRIMARY KEY (Id)"""
bundled = pytest.mark.ddl(BUNDLE, proto_descriptors=DESCRIPTORS)
with_singers = pytest.mark.ddl(BUNDLE, SINGERS, proto_descriptors=DESCRIPTORS)


def change_bundle(database: Database, *statements: str, descriptors: bytes = DESCRIPTORS) -> None:
    """Changes the schema, with descriptors."""
    database.update_ddl(statements, proto_descriptors=descriptors).result(60)


def read_ddl(database: Database) -> tuple[list[str], FileDescriptorSet]:
    """What GetDatabaseDdl tells."""
    api = database._instance._client.database_admin_api
    answer = api.get_database_ddl(request=GetDatabaseDdlRequest(database=database.name))
    return list(answer.statements), FileDescriptorSet.FromString(answer.proto_descriptors)


@with_singers
def test_a_schema_with_messages_and_enums_is_told_and_can_be_made_again(
    database: Database, create_database: CreateDatabase
) -> None:
    statements, descriptors = read_ddl(database)
    assert statements[0].startswith("CREATE PROTO BUNDLE")
    assert f"Info {SINGER}," in statements[1]
    assert f"Genres ARRAY<{GENRE}>" in statements[1]
    assert "Mood `Mood`" in statements[1]
    again = create_database(*statements, proto_descriptors=descriptors.SerializeToString())
    assert read_ddl(again) == (statements, descriptors)


@with_singers
def test_information_schema_names_the_types(database: Database) -> None:
    columns = rows(
        database,
        "SELECT COLUMN_NAME, SPANNER_TYPE FROM INFORMATION_SCHEMA.COLUMNS"
        " WHERE TABLE_NAME = 'Singers' ORDER BY ORDINAL_POSITION",
    )
    assert columns[1:] == [
        ["Info", f"PROTO<{SINGER}>"],
        ["Infos", f"ARRAY<PROTO<{SINGER}>>"],
        ["Genre", f"ENUM<{GENRE}>"],
        ["Genres", f"ARRAY<ENUM<{GENRE}>>"],
        ["Mood", "ENUM<Mood>"],
    ]
    bundles = "SELECT PROTO_BUNDLE FROM INFORMATION_SCHEMA.SCHEMATA WHERE SCHEMA_NAME = ''"
    assert SINGER in rows(database, bundles)[0][0]


@bundled
def test_a_type_that_is_not_in_the_bundle_is_refused(database: Database) -> None:
    for type_ in (f"{PACKAGE}.Award", "third.other.Type", "`Nothing`"):
        with pytest.raises(exceptions.InvalidArgument, match="unrecognized column type"):
            change_bundle(database, f"CREATE TABLE T (K INT64, V {type_}) PRIMARY KEY (K)")
    change_bundle(database, "CREATE TABLE T (K INT64) PRIMARY KEY (K)")
    with pytest.raises(exceptions.InvalidArgument, match="unrecognized column type"):
        change_bundle(database, f"ALTER TABLE T ADD COLUMN V ARRAY<{PACKAGE}.Award>")
    with pytest.raises(exceptions.InvalidArgument, match="Encountered 'Nothing'"):
        change_bundle(database, "ALTER TABLE T ADD COLUMN V Nothing")


@bundled
def test_an_enum_may_be_a_key_and_a_message_may_not(database: Database) -> None:
    change_bundle(
        database,
        f"CREATE TABLE T (G {GENRE}, M {SINGER}) PRIMARY KEY (G DESC)",
        "CREATE UNIQUE INDEX ByG ON T (G)",
    )
    commit(database, insert("T", "G", (0,), (3,), (1,)))
    assert rows(database, "SELECT CAST(G AS STRING) FROM T ORDER BY G") == [
        ["POP"],
        ["JAZZ"],
        ["ROCK"],
    ]
    with pytest.raises(exceptions.InvalidArgument, match="is part of the primary key"):
        change_bundle(database, f"CREATE TABLE U (M {SINGER}) PRIMARY KEY (M)")
    with pytest.raises(exceptions.FailedPrecondition, match=f"Cannot reference {SINGER} M"):
        change_bundle(database, "CREATE INDEX ByM ON T (M)")


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("DROP PROTO BUNDLE", exceptions.FailedPrecondition, "does not yet exist; cannot drop"),
        (
            f"ALTER PROTO BUNDLE INSERT ({SINGER})",
            exceptions.FailedPrecondition,
            "does not yet exist; cannot alter",
        ),
        (
            "CREATE PROTO BUNDLE (spanner.Thing)",
            exceptions.InvalidArgument,
            "spanner.Thing is not in the proto_descriptors",
        ),
        ("CREATE PROTO BUNDLE (a.b.C", exceptions.InvalidArgument, "Expecting ','"),
    ],
)
def test_statements_without_a_bundle(
    database: Database, statement: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        change_bundle(database, statement)


@bundled
@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        (BUNDLE, exceptions.FailedPrecondition, "already exists"),
        (f"ALTER PROTO BUNDLE INSERT ({SINGER})", exceptions.Conflict, "Type already exists"),
        (f"ALTER PROTO BUNDLE UPDATE ({PACKAGE}.Award)", exceptions.NotFound, "Tried to update"),
        (f"ALTER PROTO BUNDLE DELETE ({PACKAGE}.Award)", exceptions.NotFound, "Tried to remove"),
        ("ALTER PROTO BUNDLE", exceptions.InvalidArgument, "INSERT, UPDATE or DELETE"),
        (
            "ALTER PROTO BUNDLE INSERT (no.Such)",
            exceptions.InvalidArgument,
            "no.Such is not in the proto_descriptors",
        ),
    ],
)
def test_statements_that_do_not_fit_the_bundle(
    database: Database, statement: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        change_bundle(database, statement)


def test_descriptors_that_lack_an_import_or_use_a_reserved_package(database: Database) -> None:
    alone = FileDescriptorProto(name="a.proto", package="spanner", dependency=["b.proto"])
    alone.message_type.add(name="A").field.add(name="b", number=1, type=11, label=1, type_name="B")
    with pytest.raises(exceptions.InvalidArgument, match=r"a\.proto is not complete"):
        change_bundle(database, "CREATE PROTO BUNDLE (spanner.A)", descriptors=serialize(alone))
    del alone.message_type[0].field[:], alone.dependency[:]
    with pytest.raises(exceptions.FailedPrecondition, match="reserved package `spanner`"):
        change_bundle(database, "CREATE PROTO BUNDLE (spanner.A)", descriptors=serialize(alone))
    with pytest.raises(exceptions.InvalidArgument, match="FileDescriptorSet"):
        change_bundle(database, "CREATE PROTO BUNDLE (a.B)", descriptors=b"\xff")


@with_singers
def test_a_used_type_stays(database: Database) -> None:
    used = f"Removed type {SINGER} is still being used by column Singers.Info"
    for statement in ("DROP PROTO BUNDLE", f"ALTER PROTO BUNDLE DELETE ({SINGER})"):
        with pytest.raises(exceptions.FailedPrecondition, match=used):
            change_bundle(database, statement)
    change_bundle(database, "DROP TABLE Singers", "DROP PROTO BUNDLE")
    statements, descriptors = read_ddl(database)
    assert (statements, len(descriptors.file)) == ([], 0)
    with pytest.raises(exceptions.InvalidArgument, match="unrecognized column type"):
        change_bundle(database, f"CREATE TABLE T (K INT64, V {GENRE}) PRIMARY KEY (K)")
    change_bundle(database, BUNDLE, SINGERS)


@with_singers
def test_alter_takes_what_it_names_and_leaves_the_rest(database: Database) -> None:
    commit(database, insert("Singers", "Id Genre Info", (1, 3, SingerInfo(nationality="FR"))))
    changed = describe_music("POP", "JAZZ", "FOLK", "METAL", "PUNK")
    changed.message_type[0].field[2].name = "country"
    change_bundle(
        database,
        f"ALTER PROTO BUNDLE INSERT ({PACKAGE}.Award) UPDATE ({GENRE}) DELETE (Note)",
        descriptors=serialize(changed),
    )
    texts = "SELECT CAST(Genre AS STRING), Info.nationality FROM Singers"
    assert rows(database, texts) == [["METAL", "FR"]]
    change_bundle(database, f"ALTER PROTO BUNDLE UPDATE ({SINGER})", descriptors=serialize(changed))
    assert rows(database, "SELECT Info.country, Info.has_country FROM Singers") == [["FR", True]]
    assert rows(database, f"SELECT NEW {PACKAGE}.Award(5 AS year).year") == [[5]]
    with pytest.raises(exceptions.InvalidArgument, match="Type not found: Note"):
        rows(database, "SELECT CAST('' AS Note)")
    assert [each for each in (SINGER, f"{PACKAGE}.Award") if each in read_ddl(database)[0][0]]


@with_singers
def test_an_enum_loses_only_values_that_no_row_has(database: Database) -> None:
    commit(database, insert("Singers", "Id Genre Genres", (1, 0, [2])))
    update = f"ALTER PROTO BUNDLE UPDATE ({GENRE})"
    change_bundle(database, update, descriptors=serialize(describe_music(*GENRES[:3])))
    with pytest.raises(exceptions.FailedPrecondition, match="column Genres failed at key"):
        change_bundle(database, update, descriptors=serialize(describe_music(*GENRES[:2])))
    with pytest.raises(exceptions.FailedPrecondition, match="none of its values"):
        commit(database, insert("Singers", "Id Genre", (2, 3)))


@pytest.mark.ddl(
    BUNDLE,
    f"""CREATE TABLE T (K INT64, M {SINGER}, N STRING(MAX) AS (M.nationality) STORED,
      G {GENRE} DEFAULT ('JAZZ'), CHECK (M.singer_id > 0)) PRIMARY KEY (K)""",
    "CREATE VIEW V SQL SECURITY INVOKER AS SELECT T.K, T.M.birth_date AS Born FROM T",
    proto_descriptors=DESCRIPTORS,
)
@pytest.mark.parametrize(
    ("number", "message"),
    [(0, "of a check"), (1, "VIEW `V`"), (2, r"of column `T\.N`")],
)
def test_a_field_that_is_used_stays(database: Database, number: int, message: str) -> None:
    changed = describe_music()
    changed.message_type[0].field[number].name = "another"
    with pytest.raises(exceptions.FailedPrecondition, match=message):
        change_bundle(
            database, f"ALTER PROTO BUNDLE UPDATE ({SINGER})", descriptors=serialize(changed)
        )


@pytest.mark.ddl(
    BUNDLE,
    "CREATE TABLE T (K INT64, I INT64, B BYTES(MAX), A ARRAY<INT64>) PRIMARY KEY (K)",
    proto_descriptors=DESCRIPTORS,
)
def test_columns_become_messages_and_enums_if_their_values_fit(database: Database) -> None:
    data = SingerInfo(singer_id=7).SerializeToString()
    sql = f"INSERT INTO T (K, I, B, A) VALUES (1, 9, b'\\xff', [1, NULL, 9]), (2, 1, {data!r}, [])"
    dml(database, sql)
    changes = (("I", GENRE, "I"), ("B", SINGER, "B"), ("A", f"ARRAY<{GENRE}>", "A"))
    for column, type_, _ in changes:
        with pytest.raises(exceptions.FailedPrecondition, match=f"column {column} failed at key"):
            change_bundle(database, f"ALTER TABLE T ALTER COLUMN {column} {type_}")
    with pytest.raises(exceptions.InvalidArgument, match="Cannot change type of column `I`"):
        change_bundle(database, f"ALTER TABLE T ALTER COLUMN I {SINGER}")
    dml(database, "DELETE FROM T WHERE K = 1")
    change_bundle(database, *(f"ALTER TABLE T ALTER COLUMN {c} {t}" for c, t, _ in changes))
    answer = rows(database, "SELECT CAST(I AS STRING), B.singer_id, A FROM T")
    assert answer == [["JAZZ", 7, []]]
    change_bundle(
        database, "ALTER TABLE T ALTER COLUMN I INT64", "ALTER TABLE T ALTER COLUMN B BYTES(MAX)"
    )
    assert rows(database, "SELECT I + 1, LENGTH(B) FROM T") == [[2, 2]]


@with_singers
def test_reads_of_the_past_know_the_messages_of_then(database: Database) -> None:
    info = SingerInfo(nationality="FR")
    committed = commit(database, insert("Singers", "Id Genre Info", (1, 3, info)))
    changed = describe_music("POP", "JAZZ", "FOLK", "METAL")
    changed.message_type[0].field[2].name = "country"
    change_bundle(
        database,
        f"ALTER PROTO BUNDLE UPDATE ({GENRE}, {SINGER})",
        descriptors=serialize(changed),
    )
    texts = "SELECT CAST(Genre AS STRING), Info.nationality FROM Singers"
    assert rows(database, texts, read_timestamp=committed) == [["ROCK", "FR"]]
    assert rows(database, texts.replace("nationality", "country")) == [["METAL", "FR"]]


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    sql = "SELECT CAST(Genre AS STRING), Info.nationality, N FROM Singers"
    with spawn(data_dir=tmp_path) as process:
        database = connect(process.address).database(
            "kept", ddl_statements=[BUNDLE, SINGERS], proto_descriptors=DESCRIPTORS
        )
        database.create().result(60)
        commit(database, insert("Singers", "Id Genre Info", (1, 3, SingerInfo(nationality="FR"))))
        column = "ALTER TABLE Singers ADD COLUMN N STRING(MAX) AS (Info.nationality) STORED"
        change_bundle(database, column, f"ALTER PROTO BUNDLE DELETE ({HOME})")
        statements = read_ddl(database)
        assert rows(database, sql) == [["ROCK", "FR", "FR"]]
    with spawn(data_dir=tmp_path) as process:
        database = connect(process.address).database("kept")
        assert read_ddl(database) == statements
        assert rows(database, sql) == [["ROCK", "FR", "FR"]]
        dml(database, "UPDATE Singers SET Info.nationality = 'DE' WHERE Genre = 'ROCK'")
        assert rows(database, sql) == [["ROCK", "DE", "DE"]]


@bundled
def test_the_descriptors_of_both_files_are_told(database: Database) -> None:
    assert list(read_ddl(database)[1].file) == [MUSIC, OPEN]


def test_the_file_of_an_older_server_has_its_bundle(tmp_path: Path) -> None:
    with spawn(data_dir=tmp_path) as process:
        database = connect(process.address).database(
            "old", ddl_statements=[BUNDLE], proto_descriptors=DESCRIPTORS
        )
        database.create().result(60)
        statements = read_ddl(database)
    (file,) = tmp_path.glob("**/*.sqlite")
    connection = apsw.Connection(str(file))
    connection.execute('CREATE TABLE "$proto_bundle" (descriptors BLOB NOT NULL)')
    connection.execute('INSERT INTO "$proto_bundle" VALUES (?)', (DESCRIPTORS,))
    connection.execute('ALTER TABLE "$statements" DROP COLUMN descriptors')
    connection.close()
    with spawn(data_dir=tmp_path) as process:
        database = connect(process.address).database("old")
        assert read_ddl(database) == statements
        change_bundle(database, SINGERS)
