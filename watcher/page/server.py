"""Serves the page over HTTP, by waitress."""

from __future__ import annotations

import logging
import threading
from importlib import import_module

from watcher.errors import ConfigurationError
from watcher.extras import require_extras
from watcher.page.requests import BODY_BYTES_MAX, WsgiApp

THREADS = 6
CONNECTIONS_MAX = 200


class PageServer:
    """Listens from now on; ``start`` answers."""

    def __init__(self, app: WsgiApp, host: str, port: int) -> None:
        """Raises ConfigurationError when the address cannot be listened on, MissingExtraError
        without waitress, which watchers without a page do not need."""
        require_extras("page")
        logging.getLogger("waitress").setLevel(logging.ERROR)
        try:
            self._server = import_module("waitress.server").create_server(
                app,
                host=host.strip("[]"),
                port=port,
                threads=THREADS,
                connection_limit=CONNECTIONS_MAX,
                max_request_body_size=BODY_BYTES_MAX,
                ident=None,
                clear_untrusted_proxy_headers=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigurationError(
                f"cannot listen on {host}, port {port}: {reason}; choose others with --host and"
                " --port, or in [page]"
            ) from error

    @property
    def port(self) -> int:
        """The port, which the system has chosen for 0."""
        sockets = getattr(self._server, "effective_listen", None)
        return int(sockets[0][1] if sockets else self._server.effective_port)

    def start(self) -> None:
        """Answers in a thread of its own, until the process ends."""
        threading.Thread(target=self._server.run, name="page", daemon=True).start()
