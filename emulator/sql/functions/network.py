"""NET. functions: IP addresses as bytes, the host of a URL and its domain."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from emulator.errors import out_of_range
from emulator.sql.functions.served import ServedFunctions
from emulator.values.types import BYTES, INT64, STRING

SIZES = {4: "IPv4", 16: "IPv6"}
SCHEME = re.compile(r"(?:[^:/?#\\]*:)?[/\\]{2}")
PLACE = re.compile(r"[^/?#\\]*")
ADDRESS = re.compile(r"(?:\[[^\[\]]*[\[\]]?)?[^:]*")
BLANKS = " \t\n\v\f\r"
LABEL_MAX = 63
"""Characters between two dots of a host (RFC 1035)."""


def check_size(address: bytes, name: str) -> bytes:
    """An address of 4 or 16 bytes."""
    if len(address) not in SIZES:
        raise out_of_range(
            f"The first argument of {name}() must have length 4 (for IPv4) or 16 (for IPv6);"
            f" got {len(address)}"
        )
    return address


def ip_from_string(text: str) -> bytes:
    """NET.IP_FROM_STRING."""
    try:
        if "%" in text:
            raise ValueError("an address with a zone")
        return ipaddress.ip_address(text).packed
    except ValueError as error:
        raise out_of_range(
            f"NET.IP_FROM_STRING() encountered an unparseable IP-address: {text}"
        ) from error


def ip_to_string(address: bytes) -> str:
    """NET.IP_TO_STRING."""
    parsed = ipaddress.ip_address(check_size(address, "NET.IP_TO_STRING"))
    mapped = getattr(parsed, "ipv4_mapped", None)
    return f"::ffff:{mapped}" if mapped is not None else str(parsed)


def ip_net_mask(size: int, prefix: int) -> bytes:
    """NET.IP_NET_MASK."""
    if size not in SIZES:
        raise out_of_range(f"The first argument of NET.IP_NET_MASK() must be 4 or 16; got {size}")
    if not 0 <= prefix <= size * 8:
        raise out_of_range(
            "The second argument of NET.IP_NET_MASK() must be between 0 and the first argument"
            f" * 8; got {prefix}"
        )
    return ((1 << size * 8) - (1 << size * 8 - prefix)).to_bytes(size, "big")


def ip_trunc(address: bytes, prefix: int) -> bytes:
    """NET.IP_TRUNC."""
    size = len(check_size(address, "NET.IP_TRUNC"))
    if not 0 <= prefix <= size * 8:
        raise out_of_range(
            "The second argument of NET.IP_TRUNC() must be between 0 and the first argument's"
            f" bits; got {prefix}"
        )
    mask = int.from_bytes(ip_net_mask(size, prefix), "big")
    return (int.from_bytes(address, "big") & mask).to_bytes(size, "big")


def ipv4_from_int64(number: int) -> bytes:
    """NET.IPV4_FROM_INT64."""
    if not -0x80000000 <= number <= 0xFFFFFFFF:
        raise out_of_range(
            "NET.IPV4_FROM_INT64() encountered an invalid integer IP. Expected range:"
            f" [-0x80000000, 0xFFFFFFFF]; got {number}"
        )
    return (number & 0xFFFFFFFF).to_bytes(4, "big")


def ipv4_to_int64(address: bytes) -> int:
    """NET.IPV4_TO_INT64."""
    if len(address) != 4:
        raise out_of_range(
            "NET.IPV4_TO_INT64() encountered a non-IPv4 address. Expected 4 bytes but got"
            f" {len(address)}"
        )
    return int.from_bytes(address, "big")


def host(url: str) -> str | None:
    """NET.HOST: as it is written, without dots before it and all but one behind; NULL of none."""
    text = url.strip(BLANKS)
    scheme = SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    place = PLACE.match(rest)
    after_user = place.group().rpartition("@")[2] if place else ""
    address = ADDRESS.match(after_user)
    name = address.group().lstrip(".") if address else ""
    bare = name.rstrip(".")
    return name[: len(bare) + 1] or None


@lru_cache(maxsize=1)
def read_suffixes() -> PublicSuffixList:
    """The list of publicsuffix.org that was installed, without the domains of companies."""
    return PublicSuffixList(accept_unknown=False, only_icann=True)


def public_suffix(url: str) -> str | None:
    """NET.PUBLIC_SUFFIX: of the host as it is written; NULL where it has none."""
    return take_labels(url, 0)


def registered_domain(url: str) -> str | None:
    """NET.REG_DOMAIN: the public suffix and the label before it."""
    return take_labels(url, 1)


def take_labels(url: str, before: int) -> str | None:
    """The public suffix of a host, with some labels before it. Letters' case, scripts and a last
    dot stay."""
    written = host(url) or ""
    name = written.rstrip(".")
    labels = name.split(".")
    if max(map(len, labels)) > LABEL_MAX:
        return None
    try:
        known = ".".join(label.encode("idna").decode().lower() for label in labels)
    except UnicodeError:  # an empty label, or one that no name can have
        return None
    suffix = read_suffixes().publicsuffix(known) if name else None
    count = suffix.count(".") + 1 + before if suffix else len(labels) + 1
    if count > len(labels):
        return None
    return ".".join(labels[-count:]) + written[len(name) :]


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("fn_")
    add = served.add
    add("NET.HOST", [STRING], STRING, host, function="fn_net_host")
    add("NET.PUBLIC_SUFFIX", [STRING], STRING, public_suffix, function="fn_net_public_suffix")
    add("NET.REG_DOMAIN", [STRING], STRING, registered_domain, function="fn_net_reg_domain")
    parse = "fn_ip_from_string"
    add("NET.IP_FROM_STRING", [STRING], BYTES, ip_from_string, function=parse)
    add("NET.SAFE_IP_FROM_STRING", [STRING], BYTES, f"safe_{parse}")
    add("NET.IP_TO_STRING", [BYTES], STRING, ip_to_string, function="fn_ip_to_string")
    add("NET.IP_NET_MASK", [INT64, INT64], BYTES, ip_net_mask, function="fn_ip_net_mask")
    add("NET.IP_TRUNC", [BYTES, INT64], BYTES, ip_trunc, function="fn_ip_trunc")
    add("NET.IPV4_FROM_INT64", [INT64], BYTES, ipv4_from_int64, function="fn_ipv4_from_int64")
    add("NET.IPV4_TO_INT64", [BYTES], INT64, ipv4_to_int64, function="fn_ipv4_to_int64")
    return served


SERVED = build_served()
FUNCTIONS = SERVED.at_run_time
