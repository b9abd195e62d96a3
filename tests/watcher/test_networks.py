"""Between client and Spanner: TLS, credentials, a proxy, routing to the leader, directed reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from fixtures.certificates import Certificate
from fixtures.consumers import clear, watcher_of, write
from fixtures.sent_requests import RequestRecorder, SentRequests
from fixtures.server import VARIABLE
from fixtures.singers import SINGERS, address_of, make_watchable, write_singers
from fixtures.stalling_network import ConnectProxy
from google.cloud.spanner_v1.database import Database

from emulator.server import Server, start
from emulator.tls import Tls
from watcher import Change, Watcher
from watcher.model.errors import ConfigurationError, UnavailableError
from watcher.spanner import database as database_module
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect, create_on_emulator

PATH = "projects/default/instances/default/databases/networks"
CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
Metadata = dict[str, str]
Calls = list[tuple[str, Metadata]]


class CallRecorder(grpc.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Notes the metadata with which calls arrive."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        """As gRPC's."""
        metadata = {key: str(value) for key, value in details.invocation_metadata}
        self._calls.append((details.method.rpartition("/")[2], metadata))
        return continuation(details)


@pytest.fixture
def arrived(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The calls that arrive at servers that this process starts from now on."""
    calls: Calls = []
    recorded = partial(grpc.server, interceptors=[CallRecorder(calls)])
    monkeypatch.setattr(grpc, "server", recorded)
    return calls


@pytest.fixture
def serve(
    server_certificate: Certificate, arrived: Calls, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Server]]:
    """Starts servers that speak TLS, and that no variable names."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(database_module, "REFUSED_SECONDS_MAX", 0.5)
    started: list[Server] = []

    def serve(client_ca: Path | None = None) -> Server:
        tls = Tls(server_certificate.certificate, server_certificate.key, client_ca)
        started.append(start(tls=tls))
        return started[-1]

    yield serve
    for each in started:
        each.stop()


def name_address(server: Server, **parameters: object) -> str:
    given = {"endpoint": server.address} | parameters
    return f"spanner://{PATH}?" + "&".join(f"{name}={value}" for name, value in given.items())


def watch(address: str) -> list[int]:
    """The keys that a watcher delivers of a database that is made, and written, through the same
    address."""
    create_on_emulator(DatabaseAddress.parse(address), [SINGERS])
    database = connect(DatabaseAddress.parse(address))
    make_watchable(database)
    write_singers(database, [1, 2], "name")
    seen: list[Change] = []
    watcher = Watcher(database=address, tables=["Singers"], start="earliest", consumer="me")
    watcher.on_change(seen.append)
    watcher.run_once()
    return sorted(int(str(change.key["SingerId"])) for change in seen)


def test_a_server_with_a_certificate_of_ones_own(
    serve: Callable[..., Server], server_certificate: Certificate
) -> None:
    assert watch(name_address(serve(), ca_certificate=server_certificate.certificate)) == [1, 2]


def test_a_server_that_asks_for_a_certificate(
    serve: Callable[..., Server], server_certificate: Certificate, client_certificate: Certificate
) -> None:
    server = serve(client_certificate.certificate)
    files = {"ca_certificate": server_certificate.certificate}
    own = {
        "client_certificate": client_certificate.certificate,
        "client_key": client_certificate.key,
    }
    assert watch(name_address(server, **files, **own)) == [1, 2]
    with pytest.raises(UnavailableError, match="check the network, and the endpoint and the cert"):
        connect(DatabaseAddress.parse(name_address(server, **files)))


def test_a_server_that_is_not_trusted_is_named(
    serve: Callable[..., Server], client_certificate: Certificate, tmp_path: Path
) -> None:
    server = serve()
    other = name_address(server, ca_certificate=client_certificate.certificate)
    with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        connect(DatabaseAddress.parse(other))
    missing = name_address(server, ca_certificate=tmp_path / "ca.pem")
    with pytest.raises(ConfigurationError, match=r"cannot read .*ca\.pem: No such file"):
        connect(DatabaseAddress.parse(missing))


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a service account, which signs its tokens itself."""
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    content = {
        "type": "service_account",
        "project_id": "default",
        "private_key_id": "1",
        "client_email": "watcher@default.iam.gserviceaccount.com",
        "private_key": pem.decode(),
        "token_uri": "http://127.0.0.1:1/token",
    }
    path = tmp_path / "account.json"
    path.write_text(json.dumps(content))
    monkeypatch.setenv(CREDENTIALS, str(path))
    monkeypatch.setenv("SPANNER_DISABLE_BUILTIN_METRICS", "true")


@pytest.mark.parametrize("google", [True, False])
def test_an_endpoint_of_ones_own_gets_googles_credentials_where_the_address_says_so(
    serve: Callable[..., Server],
    server_certificate: Certificate,
    arrived: Calls,
    account: None,
    google: bool,
) -> None:
    more = {"google_credentials": "true"} if google else {}
    server = serve()
    assert watch(name_address(server, ca_certificate=server_certificate.certificate, **more)) == [
        1,
        2,
    ]
    methods = {method for method, _ in arrived}
    assert {"Commit", "ExecuteStreamingSql", "UpdateDatabaseDdl", "CreateInstance"} <= methods
    signed = [metadata.get("authorization", "").startswith("Bearer ") for _, metadata in arrived]
    assert set(signed) == {google}


def test_calls_go_through_a_proxy(
    serve: Callable[..., Server], server_certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    proxy = ConnectProxy(server.address)
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", f"http://{proxy.address}")
    port = server.address.rpartition(":")[2]
    files = {"ca_certificate": server_certificate.certificate}
    assert watch(name_address(server, endpoint=f"localhost:{port}", **files)) == [1, 2]
    assert set(proxy.asked) == {f"localhost:{port}"}
    proxy.close()


ROUTED = "x-goog-spanner-route-to-leader"


class MetadataRecorder(RequestRecorder):
    """Notes which requests are routed to the leader, in their order."""

    routed: list[bool]

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """As gRPC's."""
        self.routed.append((ROUTED, "true") in (details.metadata or ()))
        return super().intercept_unary_unary(continuation, details, request)


def needs_leader(method: str, request: Any) -> bool | None:
    """Whether a request needs the leader; None where its transaction alone says so."""
    if method == "Commit":
        return True
    if method == "BeginTransaction":
        return "read_only" not in request.options
    selector = getattr(request, "transaction", None)
    if selector is None or selector.id:
        return None
    return "read_write" in selector.begin


def test_what_writes_is_routed_to_the_leader(
    singers: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = MetadataRecorder([])
    recorder.routed = []
    real = grpc.insecure_channel

    def open_channel(*given: Any, **more: Any) -> grpc.Channel:
        return grpc.intercept_channel(real(*given, **more), recorder)

    monkeypatch.setattr(grpc, "insecure_channel", open_channel)
    write(singers, 1, 2)
    watcher = watcher_of(singers, [], consumer="me")
    watcher.run_once()
    clear(connect(address_of(singers)))
    routed = list(zip(recorder.seen, recorder.routed, strict=True))
    of_writes = {seen[0] for (seen, leader) in routed if leader}
    assert {"BeginTransaction", "Commit", "ExecuteStreamingSql"} <= of_writes
    for (method, request), leader in routed:
        needed = needs_leader(method, request)
        assert needed in (leader, None), (method, request)


def test_an_address_directs_the_reads_of_captures_alone(
    singers: Database, sent_requests: SentRequests
) -> None:
    write(singers, 1, 2)
    del sent_requests[:]
    address = f"{address_of(singers)}?directed_read=us-east4:read-only"
    watcher = Watcher(database=address, tables=["Singers"], start="earliest", consumer="me")
    seen: list[Change] = []
    watcher.on_change(seen.append)
    watcher.run_once()
    assert len(seen) == 2
    directed, others = 0, 0
    for method, request in sent_requests:
        options = getattr(request, "directed_read_options", None)
        if options is None:
            continue
        if not options.include_replicas.replica_selections:
            others += 1
            continue
        directed += 1
        assert needs_leader(method, request) is False
        (replica,) = options.include_replicas.replica_selections
        assert (replica.location, replica.type_) == ("us-east4", 2)
    assert directed > 2
    assert others  # positions
