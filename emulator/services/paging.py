"""Pages of a list, as the List methods give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from emulator import limits
from emulator.errors import invalid_argument
from emulator.wire.messages import Message

Item = TypeVar("Item")


def cut_page(items: Sequence[Item], request: Message) -> tuple[Sequence[Item], str]:
    """The items of the page that a request asks for, and the token of the next one."""
    token = request.page_token or "0"
    if not token.isascii() or not token.isdigit() or request.page_size < 0:
        raise invalid_argument("Invalid page token or page size.")
    start = int(token)
    size = min(request.page_size or limits.PAGE_SIZE_MAX, limits.PAGE_SIZE_MAX)
    end = start + size
    return items[start:end], str(end) if end < len(items) else ""
