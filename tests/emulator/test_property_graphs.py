"""Property graphs are kept with everything written out, checked and shown; queries of them are
refused by name."""

from __future__ import annotations

import pytest
from fixtures.queries import ask, change
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1.database import Database

TABLES = (
    "CREATE TABLE Person (Id INT64 NOT NULL, Name STRING(MAX), Age INT64, Note STRING(9))"
    " PRIMARY KEY (Id)",
    "CREATE TABLE Account (Id INT64 NOT NULL, Kind STRING(MAX), Doc JSON) PRIMARY KEY (Id)",
    "CREATE TABLE Owns (Id INT64 NOT NULL, AccountId INT64 NOT NULL, Since STRING(9))"
    " PRIMARY KEY (Id, AccountId)",
    "CREATE VIEW Adults SQL SECURITY INVOKER AS SELECT p.Id, p.Name FROM Person AS p",
)
WRITTEN = (
    "CREATE OR REPLACE PROPERTY GRAPH G NODE TABLES (Account AS A, Person LABEL Client PROPERTIES"
    " (Name AS Called, CONCAT(Name, ',', CAST(Age AS STRING)) AS Both) LABEL Known NO PROPERTIES,)"
    " EDGE TABLES (Owns SOURCE KEY (Id) REFERENCES Person DESTINATION KEY (AccountId) REFERENCES"
    " A (Id) LABEL Has PROPERTIES ARE ALL COLUMNS EXCEPT (Since))"
)
TOLD = """CREATE PROPERTY GRAPH G
  NODE TABLES(
    Account AS A
      KEY(Id)
      LABEL A PROPERTIES(
        Doc,
        Id,
        Kind),
    Person
      KEY(Id)
      LABEL Client PROPERTIES(
        Name AS Called,
        CONCAT(Name, ',', CAST(Age AS STRING)) AS Both)
      LABEL Known NO PROPERTIES
  )
  EDGE TABLES(
    Owns
      KEY(Id, AccountId)
      SOURCE KEY(Id) REFERENCES Person(Id)
      DESTINATION KEY(AccountId) REFERENCES A(Id)
      LABEL Has PROPERTIES(
        AccountId,
        Id)
  )"""
pytestmark = pytest.mark.ddl(*TABLES, WRITTEN)


def test_a_graph_is_told_with_everything_written_out(database: Database) -> None:
    statements = change(database, "ALTER TABLE Account ADD COLUMN Later INT64")
    assert statements[-1] == TOLD
    assert change(database, TOLD.replace("CREATE", "CREATE OR REPLACE", 1))[-1] == TOLD


def test_its_definition_is_shown_as_json(database: Database) -> None:
    sql = (
        "SELECT PROPERTY_GRAPH_NAME, PROPERTY_GRAPH_METADATA_JSON"
        " FROM INFORMATION_SCHEMA.PROPERTY_GRAPHS"
    )
    ((name, graph),) = ask(database, sql).rows
    assert name == "G"
    assert isinstance(graph, dict)
    assert graph["labels"] == [
        {"name": "A", "propertyDeclarationNames": ["Doc", "Id", "Kind"]},
        {"name": "Client", "propertyDeclarationNames": ["Called", "Both"]},
        {"name": "Known", "propertyDeclarationNames": []},
        {"name": "Has", "propertyDeclarationNames": ["AccountId", "Id"]},
    ]
    types = {each["name"]: each["type"] for each in graph["propertyDeclarations"]}
    assert types["Doc"] == "JSON"
    assert types["Both"] == "STRING"
    (edge,) = graph["edgeTables"]
    assert edge["kind"] == "EDGE"
    assert edge["keyColumns"] == ["Id", "AccountId"]
    assert edge["destinationNodeTable"] == {
        "nodeTableName": "A",
        "edgeTableColumns": ["AccountId"],
        "nodeTableColumns": ["Id"],
    }
    person = graph["nodeTables"][1]
    assert (person["baseTableName"], person["labelNames"]) == ("Person", ["Client", "Known"])
    assert person["propertyDefinitions"][0]["valueExpressionSql"] == "Name"


def test_graphs_of_views_dynamic_labels_and_named_schemas(database: Database) -> None:
    statements = change(
        database,
        "CREATE SCHEMA s",
        "CREATE PROPERTY GRAPH s.H NODE TABLES (Adults KEY (Id) DYNAMIC LABEL (Name))"
        " EDGE TABLES (Account KEY (Id) SOURCE KEY (Id) REFERENCES Adults DESTINATION KEY (Id)"
        " REFERENCES Adults DYNAMIC LABEL (Kind) DYNAMIC PROPERTIES (Doc))",
    )
    assert "DYNAMIC LABEL(Name)" in statements[-1]
    assert "DYNAMIC PROPERTIES(Doc)" in statements[-1]
    for statement, message in (
        ("DROP VIEW Adults", "dependent property graphs: s.H"),
        ("DROP SCHEMA s", "Dependent property graphs: s.H"),
        (
            "CREATE OR REPLACE VIEW Adults SQL SECURITY INVOKER AS SELECT p.Id FROM Person AS p",
            "definition of PROPERTY GRAPH `s.H` to become invalid",
        ),
    ):
        with pytest.raises(GoogleAPICallError, match=message):
            change(database, statement)
    assert (
        len(change(database, "DROP PROPERTY GRAPH s.H", "DROP VIEW Adults", "DROP SCHEMA s")) == 4
    )


def test_a_table_keeps_its_name_in_the_graph(database: Database) -> None:
    told = change(database, "DROP VIEW Adults", "RENAME TABLE Person TO Human")[-1]
    assert told == TOLD.replace("    Person\n", "    Human AS Person\n")


def test_what_no_graph_needs_may_go(database: Database) -> None:
    change(database, "ALTER TABLE Person DROP COLUMN Note", "ALTER TABLE Owns DROP COLUMN Since")
    change(database, "CREATE PROPERTY GRAPH IF NOT EXISTS G NODE TABLES (Person)")
    statements = change(database, "CREATE OR REPLACE PROPERTY GRAPH G NODE TABLES (Person)")
    assert "Account" not in statements[-1]
    change(database, "DROP TABLE Owns", "DROP TABLE Account", "DROP PROPERTY GRAPH IF EXISTS G")


NODES = "CREATE PROPERTY GRAPH H NODE TABLES"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE Owns", "Cannot drop TABLE `Owns` on which there are dependent property gr"),
        ("ALTER TABLE Person DROP COLUMN Age", "dependent property graphs: G"),
        ("ALTER TABLE Owns DROP COLUMN AccountId", "Cannot drop key column"),
        ("CREATE PROPERTY GRAPH G NODE TABLES (Person)", "Duplicate name in schema: G"),
        ("CREATE PROPERTY GRAPH Person NODE TABLES (Person)", "Duplicate name in schema: Person"),
        ("CREATE TABLE G (K INT64) PRIMARY KEY (K)", "Duplicate name in schema: G"),
        ("CREATE PROPERTY GRAPH s.H NODE TABLES (Person)", "Schema not found: s"),
        ("CREATE PROPERTY GRAPH _H NODE TABLES (Person)", "Property Graph name not valid"),
        (f"{NODES} (Nobody)", "Table not found: Nobody"),
        (f"{NODES} (Person, Person)", "duplicate element table name: Person"),
        (f"{NODES} (Person KEY (X))", "Column not found in table Person: X"),
        (f"{NODES} (Adults)", "needs a KEY"),
        (f"{NODES} (Person PROPERTIES (Id + 1))", "must have a name"),
        (f"{NODES} (Person PROPERTIES (X))", "Unrecognized name: X"),
        (f"{NODES} (Person PROPERTIES (Id, Name AS Id))", "has types INT64 and STRING"),
        (f"{NODES} (Person PROPERTIES (Id, Id))", "duplicate property declaration name"),
        (f"{NODES} (Person LABEL L LABEL L)", "duplicate label name: L"),
        (f"{NODES} (Person LABEL L, Account LABEL L)", "The label `L` of property graph `H`"),
        (
            f"{NODES} (Person PROPERTIES (Id AS P), Account PROPERTIES (Kind AS P))",
            "`P` of property graph `H` has types INT64 and STRING",
        ),
        (f"{NODES} (Account DYNAMIC LABEL (Doc))", "must hold expression of type STRING"),
        (f"{NODES} (Account DYNAMIC PROPERTIES (Kind))", "must hold expression of type JSON"),
        (f"{NODES} (Account DYNAMIC LABEL (Kind), Person)", "both dynamic label node table"),
        (
            f"{NODES} (Account DYNAMIC LABEL (Kind), Person DYNAMIC LABEL (Name))",
            "has multiple node tables with dynamic label",
        ),
        (
            f"{NODES} (Person) EDGE TABLES (Owns SOURCE KEY (Id) REFERENCES Nobody DESTINATION KEY"
            " (Id) REFERENCES Person)",
            "does not have source node table `Nobody`",
        ),
        (
            f"{NODES} (Person) EDGE TABLES (Owns SOURCE KEY (Id) REFERENCES Person DESTINATION KEY"
            " (Id, AccountId) REFERENCES Person)",
            "The destination key of graph edge table `Owns` has 2 columns",
        ),
        (
            f"{NODES} (Person) EDGE TABLES (Owns SOURCE KEY (Since) REFERENCES Person DESTINATION"
            " KEY (Id) REFERENCES Person)",
            "has type STRING, but Id of `Person` has INT64",
        ),
        (NODES, "Syntax error"),
        (f"{NODES} ()", "Syntax error"),
        (f"{NODES} (Person) EDGE TABLES (Owns)", "Syntax error"),
        (f"{NODES} (Person PROPERTIES (CONCAT(Name))", "Syntax error"),
        ("CREATE OR REPLACE PROPERTY GRAPH IF NOT EXISTS H NODE TABLES (Person)", "Syntax error"),
        ("DROP PROPERTY GRAPH H", "Property graph not found: H"),
    ],
)
def test_what_spanner_refuses_is_refused(database: Database, statement: str, message: str) -> None:
    with pytest.raises(GoogleAPICallError) as refused:
        change(database, statement)
    assert message in str(refused.value)
    database.reload()
    assert len(database.ddl_statements) == 5
