"""Who may read the page, and who may change something through it.

Without a token the page answers on loopback only, and only under a name of loopback: a page of
another site that has its own name resolve to 127.0.0.1 is refused, and so is what a proxy sends on.
Whatever changes something must come from the page itself or bring the token, so that no other site
can send it.

A browser gets a cookie instead of the token, which is of use for nothing else, under a path that
nobody else knows: cookies go to every port of a host, where other programs may listen.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import SplitResult, urlsplit

from watcher.overview.page.requests import Request, RequestRefusedError, Response

TOKEN_BYTES = 32
COOKIE = "spanner_watcher_page"
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What probes ask without a token: it says nothing of the database."""
SAFE_METHODS = frozenset({"GET", "HEAD"})
PROXY_HEADERS = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "x-original-host"})
PROXY_PREFIX = "x-forwarded-"
OLD_PROTOCOL = "HTTP/1.0"
"""What nginx speaks to the server behind it, unless it is configured; browsers do not."""
PATH_CHARACTERS = 32


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

    def check(self, request: Request) -> Request:
        """The request as it is answered: without the path of a browser that has the token. Raises
        RequestRefusedError for one that may not be answered."""
        if request.path in OPEN_PATHS:
            return request
        inner = self._leave_room(request)
        if self.token is None:
            check_host(request)
            check_direct(request)
        elif not self._has_bearer(request) and (inner is None or not self._has_cookie(request)):
            raise RequestRefusedError(
                HTTPStatus.UNAUTHORIZED,
                "this page needs its token: open the address that 'spanner-watcher page' printed,"
                " or send the header 'Authorization: Bearer TOKEN'",
            )
        if request.method not in SAFE_METHODS and not self._has_bearer(request):
            check_origin(request)
        return inner or request

    def accept_link(self, request: Request) -> Response | None:
        """For an address with the right token: keeps it in a cookie, and leads to the address
        without it, so that it is not in the history. None for other requests."""
        token = request.query.get("token")
        if self.token is None or token is None or not equal_texts(token, self.token):
            return None
        cookie = f"{COOKIE}={self._derive('cookie')}; Path={self._room}; HttpOnly; SameSite=Lax"
        headers = {"Location": self._room, "Set-Cookie": cookie}
        return Response(HTTPStatus.SEE_OTHER, b"", headers=headers)

    @property
    def _room(self) -> str:
        """The path of browsers that have the token."""
        return f"/{self._derive('path')[:PATH_CHARACTERS]}/"

    def _leave_room(self, request: Request) -> Request | None:
        """A request under that path, without it; None for another one."""
        if self.token is None or not request.path.startswith(self._room):
            return None
        return replace(request, path="/" + request.path.removeprefix(self._room))

    def _derive(self, purpose: str) -> str:
        """A secret that leads to the token from nowhere. It is the same after a restart."""
        assert self.token is not None, "without a token there is nothing to derive"
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()

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
            self.token is not None
            and morsel is not None
            and equal_texts(morsel.value, self._derive("cookie"))
        )


def check_host(request: Request) -> None:
    """Raises RequestRefusedError unless the page is asked for under a name of loopback."""
    address = split_address(f"//{request.headers.get('host', '')}")
    if not is_loopback((address and address.hostname) or ""):
        raise RequestRefusedError(
            HTTPStatus.FORBIDDEN,
            "without a token this page answers as localhost only: start it with --token-file",
        )


def check_direct(request: Request) -> None:
    """Raises RequestRefusedError for what a proxy has sent on: everybody whom the proxy lets in
    would be taken for a user of this machine."""
    headers = request.headers
    forwarded = PROXY_HEADERS & headers.keys() or [n for n in headers if n.startswith(PROXY_PREFIX)]
    if forwarded or request.protocol == OLD_PROTOCOL:
        raise RequestRefusedError(
            HTTPStatus.FORBIDDEN,
            "this request came through a proxy, or by HTTP/1.0 as proxies send it: without a token"
            " the page answers on this machine alone; start it with --token-file",
        )


def split_address(text: str) -> SplitResult | None:
    """The parts of an address; None when it is not one."""
    try:
        return urlsplit(text)
    except ValueError:
        return None


def check_origin(request: Request) -> None:
    """Raises RequestRefusedError unless a browser says that the page itself sends the request."""
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    if origin is None:
        same = request.headers.get("sec-fetch-site") == "same-origin"
    else:
        address = split_address(origin)
        same = bool(host) and address is not None and address.netloc == host
    if not same:
        raise RequestRefusedError(
            HTTPStatus.FORBIDDEN,
            "requests that change something must come from the page itself, or bring its token",
        )
