"""Who may read the page, and who may change something through it.

Without a token the page answers on loopback only, and only under a name of loopback: a page of
another site that has its own name resolve to 127.0.0.1 is refused. Whatever changes something must
come from the page itself or bring the token, so that no other site can send it.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from watcher.page.requests import Request, RequestRefusedError, Response

TOKEN_BYTES = 32
COOKIE = "spanner_watcher_page"
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What probes ask without a token: it says nothing of the database."""
SAFE_METHODS = frozenset({"GET", "HEAD"})


def make_token() -> str:
    """A new token, which cannot be guessed."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def is_loopback(host: str) -> bool:
    """True for an address, or a name, that only this machine reaches."""
    name = host.strip("[]").casefold()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def equal_texts(first: str, second: str) -> bool:
    """Compares in a time that does not depend on where they differ."""
    return hmac.compare_digest(first.encode(), second.encode())


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one page; ``token`` None asks for none, on loopback."""

    token: str | None

    def check(self, request: Request) -> None:
        """Raises RequestRefusedError for a request that may not be answered."""
        if request.path in OPEN_PATHS:
            return
        if self.token is None:
            check_host(request)
        elif not (self._has_bearer(request) or self._has_cookie(request)):
            raise RequestRefusedError(
                HTTPStatus.UNAUTHORIZED,
                "this page needs its token: open the address that 'spanner-watcher page' printed,"
                " or send the header 'Authorization: Bearer TOKEN'",
            )
        if request.method not in SAFE_METHODS and not self._has_bearer(request):
            check_origin(request)

    def accept_link(self, request: Request) -> Response | None:
        """For an address with the right token: keeps it in a cookie, and leads to the address
        without it, so that it is not in the history. None for other requests."""
        token = request.query.get("token")
        if self.token is None or token is None or not equal_texts(token, self.token):
            return None
        cookie = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Lax"
        headers = {"Location": "/", "Set-Cookie": cookie}
        return Response(HTTPStatus.SEE_OTHER, b"", headers=headers)

    def _has_bearer(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return (
            self.token is not None
            and scheme.casefold() == "bearer"
            and equal_texts(token.strip(), self.token)
        )

    def _has_cookie(self, request: Request) -> bool:
        try:
            morsel = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return (
            self.token is not None and morsel is not None and equal_texts(morsel.value, self.token)
        )


def check_host(request: Request) -> None:
    """Raises RequestRefusedError unless the page is asked for under a name of loopback."""
    if not is_loopback(find_host_name(request.headers.get("host", ""))):
        raise RequestRefusedError(
            HTTPStatus.FORBIDDEN,
            "without a token this page answers as localhost only: start it with --token-file",
        )


def find_host_name(host: str) -> str:
    """The name in a header ``Host``, without its port; empty when it is not one."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def check_origin(request: Request) -> None:
    """Raises RequestRefusedError unless a browser says that the page itself sends the request."""
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    if origin is None:
        same = request.headers.get("sec-fetch-site") == "same-origin"
    else:
        same = bool(host) and urlsplit(origin).netloc == host
    if not same:
        raise RequestRefusedError(
            HTTPStatus.FORBIDDEN,
            "requests that change something must come from the page itself, or bring its token",
        )
