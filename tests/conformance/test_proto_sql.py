"""Messages and enums in queries and DML."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.music import BUNDLE, DESCRIPTORS, GENRE, HOME, NESTED, SINGER, Note, SingerInfo
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from talk import commit, dml, insert, rows

TABLE = f"""CREATE TABLE Singers (
  Id INT64, Info {SINGER}, Infos ARRAY<{SINGER}>, Genre `{GENRE}`, Genres ARRAY<{GENRE}>,
  Mood Mood, Note Note) PRIMARY KEY (Id)"""
pytestmark = pytest.mark.ddl(BUNDLE, TABLE, proto_descriptors=DESCRIPTORS)
INFO = SingerInfo(singer_id=1, nationality="FR", genre=3, songs=["a", "b"], genres=[1, 2])
INFO.residence.add(start_year=1999)
INFO.residence.add(start_year=2005, city="Lyon")
INFO.home.start_year = 2000


@pytest.fixture
def singers(database: Database) -> Database:
    """A singer of whom all is known, and one of whom nothing is."""
    commit(
        database,
        insert(
            "Singers",
            "Id Info Infos Genre Genres Mood Note",
            (1, INFO, [INFO, None], 3, [1, None], 1, Note(text="x")),
            (2, *[None] * 6),
        ),
    )
    return database


def value_of(database: Database, expression: str) -> Any:
    """An expression over the first singer."""
    return rows(database, f"SELECT {expression} FROM Singers AS s WHERE s.Id = 1")[0][0]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("Info.nationality", "FR"),
        ("s.Info.NATIONALITY", "FR"),
        ("Info.genre", 3),
        ("Info.birth_date", ""),
        ("Info.home.start_year", 2000),
        ("Info.home.city", "nowhere"),
        ("Info.songs", ["a", "b"]),
        ("Info.genres", [1, 2]),
        ("ARRAY_LENGTH(Info.residence)", 2),
        ("Info.residence[OFFSET(1)].city", "Lyon"),
        ("Infos[OFFSET(0)].home.start_year", 2000),
        ("(Info).home", b"\x08\xd0\x0f"),
        ("Info.photo", b""),
        ("Info.height", 0.0),
        ("Info.alive", False),
        ("Info.has_nationality", True),
        ("Info.has_birth_date", False),
        ("Info.has_home", True),
        ("Info.home.has_city", False),
        ("Note.text", "x"),
    ],
)
def test_fields(singers: Database, expression: str, value: Any) -> None:
    assert value_of(singers, expression) == value
    column = expression.rpartition(".")[2]
    with singers.snapshot() as snapshot:
        result = snapshot.execute_sql(f"SELECT {expression} FROM Singers AS s WHERE s.Id = 2")
        assert [list(row) for row in result] == [[None]]
        if column.isidentifier():
            assert result.fields[0].name == column


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("Info.nothing", f"Protocol buffer {SINGER} does not have a field called nothing"),
        ("Info.has_songs", "does not have a field called has_songs"),
        ("Info.home.nothing", f"{HOME} does not have a field called nothing"),
        ("Info.nationality.x", "Cannot access field x on a value with type STRING"),
        ("Info.albums", "has a type of protocol buffers that SQL does not have"),
        ("Info.secret", r"Type not found: tests\.music\.Hidden"),
        ("Info.email", "part of a oneof"),
        ("Note.has_text", "Checking the presence of scalar field"),
        ("Genre.x", f"Cannot access field x on a value with type {GENRE}"),
        ("Info = Info", "not defined for arguments of type"),
        ("Info IN (Info)", "not defined for"),
        ("Genre = Mood", "No matching signature"),
        ("Genre + 1", "No matching signature"),
        ("Genre = 'SALSA'", f"Could not cast literal 'SALSA' to type {GENRE}"),
        ("Genre = 9", "Could not cast literal '9'"),
        ("COALESCE(Info, 'x: 1')", "Error parsing proto"),
        ("CAST(Genre AS FLOAT64)", f"Invalid cast from {GENRE} to FLOAT64"),
        ("CAST(Genre AS Mood)", f"Invalid cast from {GENRE} to Mood"),
        ("CAST(Info AS INT64)", f"Invalid cast from {SINGER} to INT64"),
        ("CAST('' AS no_such.Type)", r"Type not found: no_such\.Type"),
        ("NEW no_such.Type()", r"Type not found: no_such\.Type"),
        (f"NEW {GENRE}(1 AS x)", "Type not found"),
        (f"NEW {HOME}(1 AS x)", "does not have a field called x"),
        (f"NEW {HOME}('a' AS start_year)", "Could not store value with type STRING"),
        (f"NEW {HOME}(1 + 1)", "an argument has no name"),
        (f"NEW {SINGER}(1 AS singer_id, Id AS singer_id)", "singer_id is set twice"),
        ("REPLACE_FIELDS(Info, NULL AS home, 'x' AS home.city)", "is set twice"),
        ("REPLACE_FIELDS(Genre, 1 AS x)", "not defined for type"),
        ("`REPLACE_FIELDS`(Info, 1)", "takes values with the path of a field"),
        ("`$new`()", "Function not found"),
        ("ARRAY_IS_DISTINCT(Infos)", "not defined for"),
        ("REPLACE_FIELDS(Info, 1 AS residence.start_year)", "Cannot access field start_year"),
    ],
)
def test_expressions_that_are_refused(singers: Database, expression: str, message: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=message):
        value_of(singers, expression)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT Info FROM Singers ORDER BY Info", "ORDER BY does not support"),
        ("SELECT 1 FROM Singers GROUP BY Info", "Grouping by expressions of type"),
        ("SELECT DISTINCT Info FROM Singers", "cannot be used in SELECT DISTINCT"),
        ("SELECT COUNT(DISTINCT Info) FROM Singers", "DISTINCT cannot be used"),
        ("SELECT MAX(Info) FROM Singers", "MAX"),
        ("SELECT Genre FROM Singers UNION ALL SELECT Mood FROM Singers", "No matching signature"),
        ("SELECT Info FROM Singers UNION DISTINCT SELECT Info FROM Singers", "UNION DISTINCT"),
    ],
)
def test_messages_are_not_compared(singers: Database, query: str, message: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=message):
        rows(singers, query)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("Genre = 'ROCK'", True),
        ("Genre = 3", True),
        ("'POP' < Genre", True),
        ("Genre IN ('POP', 'JAZZ')", False),
        ("Genre BETWEEN 'FOLK' AND 'ROCK'", True),
        ("Info.genre = Genre", True),
        ("IF(TRUE, Genre, 'POP')", 3),
        ("GREATEST(Genre, 'POP')", 3),
        ("COALESCE(NULL, Info, 'singer_id: 9').singer_id", 1),
        ("CAST(Genre AS STRING)", "ROCK"),
        ("CAST(Genre AS INT64) + 1", 4),
        (f"CAST('JAZZ' AS {GENRE})", 1),
        (f"CAST(s.Id + 1 AS `{GENRE}`)", 2),
        (f"CAST(CONCAT('JA', 'ZZ') AS {GENRE})", 1),
        (f"SAFE_CAST(CONCAT('SAL', 'SA') AS {GENRE})", None),
        (f"SAFE_CAST('SALSA' AS {GENRE})", None),
        ("CAST(7 AS Mood)", 7),
        (f"CAST('singer_id: 5 home {{ start_year: 4 }}' AS {SINGER}).home.start_year", 4),
        (f"CAST(b'\\x08\\x05' AS {SINGER}).singer_id", 5),
        (f"CAST(CAST(Info AS BYTES) AS {SINGER}).nationality", "FR"),
        ("CAST(Note AS STRING)", 'text: "x"'),
        (f"SAFE_CAST('no field' AS {SINGER})", None),
        (f"SAFE_CAST(b'\\xff' AS {SINGER})", None),
        (f"ARRAY<{GENRE}>['POP', 'ROCK']", [0, 3]),
        (f"ARRAY<{SINGER}>['singer_id: 4'][OFFSET(0)].singer_id", 4),
        (f"STRUCT<g {GENRE}>('JAZZ').g", 1),
        ("(SELECT MAX(Genre) FROM Singers)", 3),
        (f"CAST(NULL AS {SINGER})", None),
    ],
)
def test_enums_and_casts(singers: Database, expression: str, value: Any) -> None:
    assert value_of(singers, expression) == value


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        (f"CAST(s.Id + 8 AS {GENRE})", exceptions.OutOfRange, "Out of range cast of integer 9"),
        (f"CAST(CONCAT('a') AS {GENRE})", exceptions.OutOfRange, "Could not cast 'a'"),
        (f"CAST(b'\\xff' AS {SINGER})", exceptions.OutOfRange, "not a message"),
        (f"CAST(b'\\x12\\x01\\xff' AS {SINGER}).birth_date", exceptions.OutOfRange, "is not UTF-8"),
        (
            f"CAST(CONCAT('', REPEAT('inner {{', 3000), REPEAT('}}', 3000)) AS {NESTED})",
            exceptions.OutOfRange,
            "nested too deeply",
        ),
        (f"CAST(CONCAT('x') AS {SINGER})", exceptions.OutOfRange, "Error parsing proto"),
        (f"CAST('' AS {HOME})", exceptions.InvalidArgument, "required fields start_year"),
        (f"NEW {HOME}('x' AS city)", exceptions.OutOfRange, "required fields start_year"),
        (
            "REPLACE_FIELDS(Info, NULL AS home.start_year)",
            exceptions.OutOfRange,
            "Cannot clear required proto field",
        ),
        (
            f"REPLACE_FIELDS(NEW {SINGER}(), 'x' AS home.city)",
            exceptions.OutOfRange,
            "home, which is not set",
        ),
        ("TO_JSON(Info)", exceptions.MethodNotImplemented, "in JSON and FORMAT"),
        ("FORMAT('%t', Genre)", exceptions.MethodNotImplemented, "in JSON and FORMAT"),
        (f"NEW {HOME} {{ start_year: 1 }}", exceptions.MethodNotImplemented, "braced constructor"),
        ("REPLACE_FIELDS(Info, 1 AS (a.b.c))", exceptions.MethodNotImplemented, "extension"),
    ],
)
def test_errors_of_values_and_what_is_missing(
    singers: Database, expression: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        value_of(singers, expression)


def test_new_and_replace_fields(singers: Database) -> None:
    made = value_of(
        singers,
        f"NEW {SINGER}(s.Id AS singer_id, 'ROCK' AS genre, Info.songs, NULL AS nationality,"
        f" NEW `{HOME}`(1 AS start_year) AS home, [NEW {HOME}(2 AS start_year)] AS residence,"
        " 1.5 AS height, b'x' AS photo, TRUE AS alive, ['POP', 'JAZZ'] AS genres)",
    )
    expected = SingerInfo(
        singer_id=1, genre=3, songs=["a", "b"], height=1.5, photo=b"x", alive=True, genres=[0, 1]
    )
    expected.home.start_year = 1
    expected.residence.add(start_year=2)
    assert SingerInfo.FromString(made) == expected
    changed = SingerInfo.FromString(
        value_of(
            singers,
            "REPLACE_FIELDS(Info, 'DE' AS nationality, 5 AS home.start_year, NULL AS songs,"
            " NULL AS singer_id)",
        )
    )
    expected.CopyFrom(INFO)
    expected.nationality, expected.home.start_year = "DE", 5
    expected.ClearField("songs")
    expected.ClearField("singer_id")
    assert changed == expected


def test_queries_over_messages(singers: Database) -> None:
    assert rows(
        singers,
        "SELECT Genre, COUNT(*), MIN(Mood) FROM Singers GROUP BY Genre ORDER BY Genre DESC",
    ) == [[3, 1, 1], [None, 1, None]]
    lived = "SELECT r.start_year, r.city FROM Singers AS s, s.Info.residence AS r ORDER BY 1"
    assert rows(singers, lived) == [[1999, "nowhere"], [2005, "Lyon"]]
    unnested = (
        "SELECT i.nationality, o FROM Singers, UNNEST(Infos) AS i WITH OFFSET AS o ORDER BY o"
    )
    assert rows(singers, unnested) == [["FR", 0], [None, 1]]
    all_fields = "SELECT s.Info.home.* FROM Singers AS s WHERE s.Id = 1"
    assert rows(singers, all_fields) == [[2000, "nowhere"]]
    named_alike = "SELECT text.text FROM UNNEST([NEW Note('x' AS text)]) AS text"
    assert rows(singers, named_alike) == [["x"]]
    fields = f"SELECT * FROM UNNEST([NEW {HOME}(1 AS start_year, 'x' AS city)])"
    assert rows(singers, fields) == [[1, "x"]]
    exists = (
        "SELECT Id FROM Singers AS s WHERE EXISTS"
        " (SELECT * FROM s.Info.residence AS item WHERE item.city = 'Lyon')"
    )
    assert rows(singers, exists) == [[1]]
    gathered = rows(singers, "SELECT ARRAY_AGG(Info IGNORE NULLS), ANY_VALUE(Genre) FROM Singers")
    assert gathered[0][0] == [INFO.SerializeToString()]
    structs = rows(singers, "SELECT ARRAY(SELECT AS STRUCT Info, Genre FROM Singers WHERE Id = 1)")
    assert structs == [[[[INFO.SerializeToString(), 3]]]]
    inner = "SELECT p.home.city FROM (SELECT Info AS p FROM Singers) WHERE p.home IS NOT NULL"
    assert rows(singers, inner) == [["nowhere"]]
    with pytest.raises(exceptions.MethodNotImplemented, match="SELECT AS with the name of a type"):
        rows(singers, f"SELECT AS {HOME} 1 AS start_year")


def test_dml(singers: Database) -> None:
    dml(
        singers,
        "INSERT INTO Singers (Id, Info, Infos, Genre, Genres) VALUES"
        " (3, 'nationality: \"US\"', ['singer_id: 4'], 'FOLK', ['FOLK', 'POP'])",
        f"UPDATE Singers SET Genre = 'POP', Infos = [NEW {SINGER}(8 AS singer_id)] WHERE Genre = 2",
        "DELETE FROM Singers WHERE Info.nationality = 'FR'",
    )
    answer = rows(
        singers,
        "SELECT Id, Info.nationality, Infos[OFFSET(0)].singer_id, CAST(Genre AS STRING), Genres"
        " FROM Singers ORDER BY Id",
    )
    assert answer == [[2, None, None, None, None], [3, "US", 8, "POP", [2, 0]]]
    returned = dml(
        singers, "UPDATE Singers SET Genre = 'JAZZ' WHERE Id = 3 THEN RETURN Info.nationality"
    )
    assert returned == [["US"]]


def test_update_sets_fields(singers: Database) -> None:
    dml(
        singers,
        "UPDATE Singers AS s SET s.Info.nationality = 'DE', Info.home.city = 'Bonn',"
        " Info.songs = ['c'], Mood = 'CALM' WHERE s.Id = 1",
    )
    answer = rows(
        singers,
        "SELECT Info.nationality, Info.home.city, Info.home.start_year, Info.songs, Mood,"
        " Info.singer_id FROM Singers WHERE Id = 1",
    )
    assert answer == [["DE", "Bonn", 2000, ["c"], 0, 1]]
    for sql, error, message in (
        ("SET Info.nationality = 'DE' WHERE Id = 2", exceptions.OutOfRange, "field of NULL"),
        ("SET Info.nothing = 1 WHERE TRUE", exceptions.InvalidArgument, "called nothing"),
        (
            "SET Info.songs = ['a'], Info.songs = NULL WHERE TRUE",
            exceptions.InvalidArgument,
            "twic",
        ),
        ("SET Info.songs = ['a'], Info = NULL WHERE TRUE", exceptions.InvalidArgument, "twice"),
        (
            "SET (INSERT Info.songs VALUES ('x')) WHERE TRUE",
            exceptions.MethodNotImplemented,
            "Nested DML",
        ),
    ):
        with pytest.raises(error, match=message):
            dml(singers, f"UPDATE Singers {sql}")


def test_partitioned_dml_over_a_field(singers: Database) -> None:
    sql = f"UPDATE Singers SET Genre = CAST('POP' AS {GENRE}) WHERE Info.nationality = 'FR'"
    assert singers.execute_partitioned_dml(sql) == 1
    assert value_of(singers, "Genre") == 0


def test_transactions_over_fields(singers: Database) -> None:
    def work(transaction: Any) -> list[Any]:
        sql = f"SELECT Info.singer_id FROM Singers WHERE Genre = CAST('ROCK' AS {GENRE})"
        answer = [row[0] for row in transaction.execute_sql(sql)]
        transaction.execute_update("UPDATE Singers SET Info.singer_id = 77 WHERE Genre = 'ROCK'")
        answer += [row[0] for row in transaction.execute_sql(sql)]
        return answer

    assert singers.run_in_transaction(work) == [1, 77]
