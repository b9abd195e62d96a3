"""A server that speaks TLS: who reaches it, and who does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.certificates import Certificate
from google.cloud import spanner

from emulator.data_directories import StartError
from emulator.server import start
from emulator.tls import Tls, choose_tls


@pytest.fixture(autouse=True)
def no_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPANNER_EMULATOR_HOST", raising=False)


def list_instances(address: str, authority: Certificate, own: Certificate | None) -> list[str]:
    """What a client sees that trusts an authority, and shows a certificate of its own."""
    client = spanner.Client(
        client_options={"api_endpoint": address},
        instance_type="omni",
        ca_certificate=str(authority.certificate),
        client_certificate=str(own.certificate) if own else None,
        client_key=str(own.key) if own else None,
    )
    api = client.instance_admin_api
    parent = f"projects/{client.project}"
    listed = api.list_instances(request={"parent": parent}, timeout=5, retry=None)
    return [instance.name for instance in listed]


@pytest.mark.parametrize("mutual", [False, True])
def test_who_trusts_the_certificate_is_served(
    server_certificate: Certificate, client_certificate: Certificate, mutual: bool
) -> None:
    authority = client_certificate.certificate if mutual else None
    tls = Tls(server_certificate.certificate, server_certificate.key, authority)
    own = client_certificate if mutual else None
    with start(tls=tls) as server:
        assert list_instances(server.address, server_certificate, own) == []
        refused = [(client_certificate, own)]
        refused += [(server_certificate, None)] if mutual else []
        for trusted, shown in refused:
            with pytest.raises(Exception, match=r"(?i)unavailable|handshake|connect|deadline"):
                list_instances(server.address, trusted, shown)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), ("no certificate", "has no PEM")]
)
def test_a_file_that_has_no_certificate_is_named(
    tmp_path: Path, server_certificate: Certificate, content: str | None, words: str
) -> None:
    path = tmp_path / "certificate.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(StartError, match=words):
        start(tls=Tls(path, server_certificate.key))


def test_half_of_the_options_is_refused(server_certificate: Certificate) -> None:
    with pytest.raises(StartError, match="needs --tls-certificate and --tls-key"):
        choose_tls(server_certificate.certificate, None, None)
    assert choose_tls(None, None, None) is None
