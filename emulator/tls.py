"""TLS of the server: the certificate that it shows, and whose certificates it asks of clients."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import grpc

from emulator.data_directories import StartError


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM. With ``client_ca`` a client needs a certificate that this authority has
    signed (mutual TLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def load(self) -> grpc.ServerCredentials:
        """The credentials of a port. Raises StartError for a file that cannot be read."""
        chain = [(read_pem(self.key), read_pem(self.certificate))]
        authority = read_pem(self.client_ca) if self.client_ca is not None else None
        return grpc.ssl_server_credentials(chain, authority, authority is not None)

    def list_options(self) -> list[str]:
        """The options of ``python -m emulator``."""
        options = ["--tls-certificate", str(self.certificate), "--tls-key", str(self.key)]
        authority = ["--tls-client-ca", str(self.client_ca)] if self.client_ca is not None else []
        return options + authority


def choose_tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> Tls | None:
    """What the options of a command say; None without any. Raises StartError for half of it."""
    if certificate is not None and key is not None:
        return Tls(certificate, key, client_ca)
    if certificate is None and key is None and client_ca is None:
        return None
    raise StartError("TLS needs --tls-certificate and --tls-key; --tls-client-ca goes with them")


def read_pem(path: Path) -> bytes:
    """A file of PEM. Raises StartError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StartError(f"cannot read {path}: {error.strerror}") from error
    if b"-----BEGIN " not in content:
        raise StartError(f"{path} has no PEM: name the file of a certificate, or of its key")
    return content
