"""Values of messages and enums: mutations, reads, parameters, results, change streams."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from fixtures.music import (
    BUNDLE,
    DESCRIPTORS,
    GENRE,
    SINGER,
    Genre,
    Mood,
    Note,
    SingerInfo,
)
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeySet, TypeCode, param_types
from google.cloud.spanner_v1.database import Database
from talk import commit, delete, dml, insert, read, rows

TABLE = f"""CREATE TABLE Singers (
  Id INT64, Info {SINGER}, Infos ARRAY<{SINGER}>, Genre `{GENRE}`, Genres ARRAY<{GENRE}>, Mood Mood,
  Nationality STRING(MAX) AS (Info.nationality) STORED
) PRIMARY KEY (Id)"""
pytestmark = pytest.mark.ddl(
    BUNDLE,
    TABLE,
    "CREATE INDEX ByGenre ON Singers (Genre) STORING (Info)",
    "CREATE INDEX ByNationality ON Singers (Nationality, Genre)",
    proto_descriptors=DESCRIPTORS,
)
COLUMNS = "Id Info Infos Genre Genres Mood"
FRENCH = SingerInfo(singer_id=1, nationality="FR", genre=Genre.Value("ROCK"))
DUTCH = SingerInfo(singer_id=2, nationality="NL", songs=["a", "b"])
BYTES = FRENCH.SerializeToString()
ROCK, FOLK = 3, 2


def query(database: Database, sql: str, types: dict[str, Any], **values: Any) -> list[list[Any]]:
    """A query with parameters."""
    with database.snapshot() as snapshot:
        return [list(row) for row in snapshot.execute_sql(sql, values, types)]


@pytest.fixture
def singers(database: Database) -> Database:
    """Two singers, one of them unknown."""
    commit(
        database,
        insert("Singers", COLUMNS, (1, FRENCH, [FRENCH, None, DUTCH], ROCK, [ROCK, None], 1)),
        insert("Singers", COLUMNS, (2, None, None, None, None, None)),
    )
    return database


def test_values_come_back_with_their_types(singers: Database) -> None:
    with singers.snapshot() as snapshot:
        result = snapshot.execute_sql(
            f"SELECT {', '.join(COLUMNS.split())} FROM Singers ORDER BY Id",
            column_info={"Info": SingerInfo(), "Infos": SingerInfo(), "Genre": Genre},
        )
        first, second = list(result)
    assert first == [1, FRENCH, [FRENCH, None, DUTCH], "ROCK", [ROCK, None], 1]
    assert second == [2, *[None] * 5]
    _, info, infos, genre, genres, mood = [field.type_ for field in result.fields]
    assert (info.code, info.proto_type_fqn) == (TypeCode.PROTO, SINGER)
    assert (genre.code, genre.proto_type_fqn) == (TypeCode.ENUM, GENRE)
    assert infos.array_element_type == info
    assert genres.array_element_type == genre
    assert mood.proto_type_fqn == "Mood"
    assert read(singers, "Singers", "Id Info", KeySet(keys=[[1]])) == [[1, BYTES]]


def test_an_index_over_an_enum_and_over_a_field(singers: Database) -> None:
    assert read(singers, "Singers", "Id Genre", KeySet(keys=[[ROCK]]), "ByGenre") == [[1, ROCK]]
    french = KeySet(keys=[["FR", ROCK]])
    assert read(singers, "Singers", "Id", french, "ByNationality") == [[1]]
    forced = "SELECT Id FROM Singers@{FORCE_INDEX=ByNationality}"
    assert rows(singers, f"{forced} WHERE Nationality = 'FR' AND Genre = 'ROCK'") == [[1]]
    change_nationality = "UPDATE Singers SET Info = 'nationality: \"DE\"' WHERE Id = 1"
    dml(singers, change_nationality)
    assert read(singers, "Singers", "Id", french, "ByNationality") == []
    with pytest.raises(exceptions.FailedPrecondition, match="key part"):
        read(singers, "Singers", "Id", KeySet(keys=[["ROCK"]]), "ByGenre")


def test_a_key_that_is_an_enum(database: Database) -> None:
    database.update_ddl([f"CREATE TABLE Charts (G {GENRE}, Id INT64) PRIMARY KEY (G, Id)"]).result(
        60
    )
    commit(database, insert("Charts", "G Id", (0, 1), (2, 1), (2, 2), (3, 1)))
    assert read(database, "Charts", "Id", KeySet(keys=[[2, 2]])) == [[2]]
    commit(database, delete("Charts", [FOLK, 1]))
    assert rows(database, "SELECT Id FROM Charts WHERE G = 'FOLK'") == [[2]]
    with pytest.raises(exceptions.AlreadyExists):
        commit(database, insert("Charts", "G Id", (3, 1)))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("Info", b"/w==", f"the bytes are not a message {SINGER}"),
        ("Info", "no base64", "Expected BYTES"),
        ("Info", 5, "the bytes are not|Expected"),
        ("Genre", 9, f"Expected ENUM<{GENRE}>: 9 is none of its values"),
        ("Genre", "ROCK", "Expected INT64"),
        ("Genres", [1, 9], "none of its values"),
        ("Mood", 1 << 40, "none of its values"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    database: Database, column: str, value: Any, message: str
) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match=message):
        commit(database, insert("Singers", f"Id {column}", (1, value)))


def test_an_open_enum_takes_any_number(database: Database) -> None:
    commit(database, insert("Singers", "Id Mood", (1, 7), (2, 1)))
    moods = rows(database, "SELECT Mood, CAST(Mood AS STRING) FROM Singers ORDER BY Id")
    assert moods == [[7, "7"], [1, "WILD"]]


def test_parameters(singers: Database) -> None:
    info, genre = param_types.ProtoMessage(SingerInfo()), param_types.ProtoEnum(Genre)
    types = {"i": info, "g": genre, "l": param_types.Array(info), "m": param_types.ProtoEnum(Mood)}
    answer = query(
        singers,
        "SELECT @i.nationality, @i, @g, @l[OFFSET(1)].songs, @m",
        types,
        i=FRENCH,
        g=ROCK,
        l=[None, DUTCH],
        m=1,
    )
    assert answer == [["FR", BYTES, ROCK, ["a", "b"], 1]]
    where = "SELECT Id FROM Singers WHERE Genre = @g AND Info.nationality = @i.nationality"
    assert query(singers, where, types, g=ROCK, i=FRENCH) == [[1]]
    among = "SELECT Id FROM Singers WHERE Genre IN UNNEST(@g)"
    assert query(singers, among, {"g": param_types.Array(genre)}, g=[ROCK, FOLK]) == [[1]]


def test_parameters_of_other_types_become_messages_and_enums(singers: Database) -> None:
    for type_, value in ((param_types.INT64, ROCK), (param_types.STRING, "ROCK")):
        sql = "SELECT Id FROM Singers WHERE Genre = @g"
        assert query(singers, sql, {"g": type_}, g=value) == [[1]]
    statement = "INSERT INTO Singers (Id, Info, Genre) VALUES (9, @i, @g)"
    types = {"i": param_types.BYTES, "g": param_types.INT64}

    def write(transaction: Any) -> None:
        transaction.execute_update(statement, {"i": FRENCH, "g": FOLK}, types)

    singers.run_in_transaction(write)
    answer = rows(singers, "SELECT Nationality, CAST(Genre AS STRING) FROM Singers WHERE Id = 9")
    assert answer == [["FR", "FOLK"]]
    wrong = {"i": b"/w==", "g": FOLK}
    with pytest.raises(exceptions.OutOfRange, match="not a message"):
        singers.run_in_transaction(lambda t: t.execute_update(statement, wrong, types))


@pytest.mark.parametrize(
    ("type_", "value", "error", "message"),
    [
        (param_types.ProtoMessage(SingerInfo()), b"/w==", exceptions.InvalidArgument, "not a me"),
        (param_types.ProtoEnum(Genre), 9, exceptions.InvalidArgument, "none of its values"),
        (param_types.ProtoMessage(Note()), b"", None, ""),
    ],
)
def test_parameters_that_do_not_fit_their_type(
    database: Database, type_: Any, value: Any, error: type[Exception] | None, message: str
) -> None:
    if error is None:
        assert query(database, "SELECT @v", {"v": type_}, v=value) == [[b""]]
        return
    with pytest.raises(error, match=message):
        query(database, "SELECT @v", {"v": type_}, v=value)


def test_parameters_of_types_that_are_not_in_the_bundle(database: Database) -> None:
    message = param_types.ProtoMessage(SingerInfo())
    message.proto_type_fqn = "tests.music.Award"
    with pytest.raises(exceptions.NotFound, match="Type not found: `tests"):
        query(database, "SELECT @v", {"v": message}, v=b"")
    enum = param_types.ProtoEnum(Genre)
    enum.proto_type_fqn = SINGER
    with pytest.raises(exceptions.NotFound, match=f"Enum type not found: `{SINGER}`"):
        query(database, "SELECT @v", {"v": enum}, v=1)


def test_a_change_stream_has_the_types_and_the_values(database: Database) -> None:
    database.update_ddl(["CREATE CHANGE STREAM S FOR Singers"]).result(60)
    start = datetime.now(UTC)
    end = commit(database, insert("Singers", COLUMNS, (1, FRENCH, [DUTCH], ROCK, [FOLK], None)))
    sql = (
        "SELECT ChangeRecord FROM READ_S(start_timestamp => @s, end_timestamp => @e,"
        " partition_token => @t, heartbeat_milliseconds => 1000)"
    )
    types = {
        "s": param_types.TIMESTAMP,
        "e": param_types.TIMESTAMP,
        "t": param_types.STRING,
    }
    records: list[Any] = []
    tokens: list[str | None] = [None]
    while tokens:
        for (structs,) in query(database, sql, types, s=start, e=end, t=tokens.pop()):
            for data, _, children in structs:
                records += data
                tokens += [token for child in children for token, _ in child[2]]
    (record,) = records
    described = {column[0]: dict(column[1]) for column in record[5]}
    assert described["Info"] == {"code": "PROTO", "proto_type_fqn": SINGER}
    assert described["Genre"] == {"code": "ENUM", "proto_type_fqn": GENRE}
    assert described["Genres"]["array_element_type"] == described["Genre"]
    values = record[6][0][1]
    assert values["Info"] == "CAEaAkZSIAM="
    assert (values["Genre"], values["Genres"], values["Mood"]) == ("3", ["2"], None)
    assert values["Infos"] == ["CAIaAk5MOgFhOgFi"]
