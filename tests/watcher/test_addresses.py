"""What an address of a database says: where its API is, as whom, and which replicas serve reads."""

from __future__ import annotations

import pytest
from fixtures.wrong_values import run_here
from hypothesis import given
from hypothesis import strategies as st

from watcher.model.errors import AddressError, ConfigurationError
from watcher.settings.spark_parsing import parse_source_options
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.address import CLOUD_ENDPOINT, DatabaseAddress, Endpoint
from watcher.spanner.read_options import DirectedRead, Replica, ReplicaType

PLACE = "projects/p1/instances/i1/databases/d1"
FILES = "ca_certificate=/etc/ca.pem&client_certificate=own.pem&client_key=own.key"
EAST = DirectedRead(include=(Replica("us-east4", ReplicaType.READ_ONLY),))
names = st.text("abcz-19", min_size=1, max_size=9)
hosts = st.text("abcz-19.:[]%&", min_size=1, max_size=9)
paths = st.text("/ab c&%=?#é", min_size=1, max_size=9)
replicas = st.tuples(
    st.builds(Replica, names, st.sampled_from([None, *ReplicaType]))
    | st.builds(Replica, st.none(), st.sampled_from(ReplicaType))
)
directed = st.one_of(
    st.builds(DirectedRead, include=replicas, auto_failover_disabled=st.booleans()),
    st.builds(DirectedRead, exclude=replicas),
)
endpoints = st.one_of(
    st.builds(Endpoint, hosts, google_credentials=st.sampled_from([None, True, False])),
    st.builds(Endpoint, hosts, st.none(), st.booleans()),
    st.builds(Endpoint, hosts, st.none(), st.just(False), paths, paths, paths),
    st.builds(Endpoint, impersonate=st.just("first@p1.example,watcher@p-2.example")),
)


@given(endpoints | st.none(), st.none() | st.just("reader"), directed | st.none())
def test_an_address_is_read_as_it_is_written(
    endpoint: Endpoint | None, role: str | None, directed_read: DirectedRead | None
) -> None:
    address = DatabaseAddress("p1", "i1", "d1", endpoint, role, directed_read)
    assert DatabaseAddress.parse(str(address)) == address
    assert address.path == PLACE


def test_parameters_say_where_the_api_is() -> None:
    address = DatabaseAddress.parse(f"{PLACE}?endpoint=spanner.example:15000&{FILES}")
    expected = Endpoint(
        "spanner.example:15000",
        ca_certificate="/etc/ca.pem",
        client_certificate="own.pem",
        client_key="own.key",
    )
    assert address.endpoint == expected


@pytest.mark.parametrize(
    ("parameters", "google"),
    [
        ("ca_certificate=/etc/ca.pem", True),
        ("endpoint=spanner.europe-west3.rep.googleapis.com:443", True),
        ("endpoint=spanner-psc.p.googleapis.com", True),
        ("endpoint=spanner.example:15000", False),
        ("endpoint=googleapis.com.example:443", False),
        ("endpoint=evilgoogleapis.com:443", False),
        ("endpoint=10.0.0.7:443&google_credentials=true", True),
        ("endpoint=spanner.googleapis.com:443&google_credentials=false", False),
    ],
)
def test_google_gets_its_credentials_and_nobody_else(parameters: str, google: bool) -> None:
    endpoint = DatabaseAddress.parse(f"{PLACE}?{parameters}").endpoint
    assert endpoint is not None
    assert endpoint.is_google is google
    assert endpoint.api_endpoint == CLOUD_ENDPOINT or "endpoint" in parameters


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("endpiont=x:1", "unknown parameter 'endpiont'; did you mean 'endpoint'"),
        ("database_role=1", "'1' is not the name of a database role"),
        ("database_role=", "write database_role=VALUE once"),
        ("endpoint=x:1&endpoint=y:1", "write endpoint=VALUE once"),
        ("plain_text=yes&endpoint=x:1", "'plain_text' is true or false, not 'yes'"),
        ("endpoint=x:1&client_key=k", "'client_certificate' and 'client_key' need each other"),
        ("endpoint=x:1&plain_text=true&ca_certificate=c", "without TLS"),
        ("endpoint=https://spanner.example:443", "write HOST:PORT"),
        ("impersonate=watcher", "'watcher' is not the e-mail address of a service account"),
        ("impersonate=a@p.example,", "'' is not the e-mail address of a service account"),
        ("endpoint=x:1&impersonate=a@p.example", "add google_credentials=true"),
        ("plain_text=true", "send Google's credentials for anybody to read"),
        ("directed_read=us-east4:readonly", "'readonly' is not a type of replicas"),
        ("directed_read=exclude:a&auto_failover_disabled=true", "not with 'exclude'"),
        ("directed_read=,", "a replica needs a location"),
        ("auto_failover_disabled=true", "needs 'directed_read'"),
    ],
)
def test_what_an_address_cannot_say_is_refused(parameters: str, words: str) -> None:
    with pytest.raises(AddressError, match=words):
        DatabaseAddress.parse(f"{PLACE}?{parameters}")


def test_only_one_of_address_and_section_names_the_endpoint() -> None:
    values = {"database": f"{PLACE}?endpoint=x:1", "endpoint": {"api_endpoint": "y:1"}}
    with pytest.raises(AddressError, match="both say where Spanner's API is"):
        _ = parse_watch_config(values)


def test_only_one_of_address_and_options_directs_reads() -> None:
    database, words = f"{PLACE}?directed_read=us-east4", "use one of them"
    section = {"include": [{"location": "us-east1"}]}
    with pytest.raises(ConfigurationError, match=words):
        parse_watch_config({"database": database, "directed_read": section})
    text = '{"include": [{"location": "us-east1"}]}'
    with pytest.raises(ConfigurationError, match=words):
        parse_source_options({"database": database, "table": "T", "directedRead": text})


def test_a_query_of_spark_takes_an_address() -> None:
    written = f"spanner://{PLACE}?database_role=r&directed_read=us-east4:read-only"
    address = parse_source_options({"database": written, "table": "T"}).address
    assert address == DatabaseAddress("p1", "i1", "d1", None, "r", EAST)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"database": PLACE, "project": "p1"}, "leave out project"),
        ({"database": PLACE, "databaseRole": "r"}, "leave out databaseRole"),
        ({"database": "d1", "project": "p1"}, "option 'instance' is missing"),
    ],
)
def test_a_query_of_spark_names_its_database_once(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_source_options({**options, "table": "T"})


@pytest.mark.parametrize(
    "command",
    [
        ["clear", "-t", "T"],
        ["ctl", "pause", "me"],
        ["ctl", "forget", "me"],
        ["ctl", "merge", "me"],
        ["ddl", "apply", "-t", "T"],
        ["ddl", "rollback"],
        ["ddl", "grants", "--role", "r", "--for", "watch", "-t", "T"],
    ],
)
def test_what_writes_refuses_a_directed_read(command: list[str]) -> None:
    outcome = run_here([*command, "-d", f"{PLACE}?directed_read=us-east4"])
    assert outcome.code != 0
    assert "changes of the schema: leave directed_read out" in outcome.err


def test_positions_are_not_read_at_other_replicas() -> None:
    config = parse_watch_config({"database": f"{PLACE}?directed_read=us-east4"})
    assert config.address.directed_read is not None
    assert config.positions_address.directed_read is None
    assert not config.keeps_positions_apart
    values = {"database": PLACE, "positions": {"database": f"{PLACE}?directed_read=us-east4"}}
    with pytest.raises(AddressError, match="the leader alone serves"):
        parse_watch_config(values)
