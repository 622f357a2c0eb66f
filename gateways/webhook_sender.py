"""One signed POST to an endpoint that a customer named, and to nothing inside our own network.

The name is resolved once, every address that it has must be public, and the connection goes to that very address, so
that a second answer of the name server cannot lead elsewhere. No redirect is followed, no proxy asked, no answer read.
Certificates are checked against the public authorities, or those that SSL_CERT_FILE names.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from uuid import UUID

import httpx
from standardwebhooks.webhooks import Webhook

DEADLINE = 10.0  # seconds for all of it: resolving, connecting, sending, the answer's head
GONE = "gone"  # the endpoint says that it is no more

_BUSY = (
    "http_401",
    "http_403",
    "http_404",
    "http_408",
    "http_425",
    "http_429",
)  # said of the endpoint, not of a message
_GLOBAL_UNICAST = ip_network("2000::/3")
_LEADS_ELSEWHERE = [
    ip_network(net) for net in ("2002::/16", "2001::/23", "192.88.99.0/24")
]  # tunnels to other addresses
_METADATA = ip_network("168.63.129.16/32")  # a cloud's own service at a public address
_PORTS = range(1, 2**16)


class Refused(Exception):
    """The URL must not be called; the message is a code."""


@dataclass(frozen=True, slots=True)
class Message:
    """`body` is what is signed and sent, byte for byte; `id` is the same at every delivery of it."""

    id: str
    body: bytes
    at: datetime


async def send(url: str, secrets: Sequence[str], message: Message, *, allow_private: bool) -> str | None:
    """None when the endpoint took it (2xx), else a code that says why not: `gone`, `http_500`, `timeout`, `bad_certificate`, …"""
    try:
        async with asyncio.timeout(DEADLINE):
            status = await _post(url, _headers(secrets, message), message.body, allow_private=allow_private)
    except Refused as refused:
        return str(refused)
    except (TimeoutError, httpx.TimeoutException):
        return "timeout"
    except (httpx.HTTPError, ssl.SSLError, OSError) as error:
        return "bad_certificate" if _is_about_certificate(error) else "unreachable"
    if status == httpx.codes.GONE:
        return GONE
    return None if httpx.codes.is_success(status) else f"http_{status}"


def message_id(announcement: UUID) -> str:
    """The webhook-id under which an announcement is sent, each time."""
    return f"msg_{announcement.hex}"


def is_refusal(error: str) -> bool:
    """Whether it was this one message that the endpoint would not take, so that others may well arrive."""
    return error.startswith("http_4") and error not in _BUSY


async def address(url: str, *, allow_private: bool) -> str:
    """The address to which a call of the URL goes. Refused: by its form, its name, or one of its addresses."""
    host, port = _checked(url, allow_private=allow_private)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Refused("unresolved") from None
    addresses = [str(place[4][0]) for place in found]
    if not addresses:
        raise Refused("unresolved")
    if not allow_private and not all(is_public(one) for one in addresses):
        raise Refused("private_address")
    return addresses[0]


def is_public(text: str) -> bool:
    """Whether it is an address of the open internet, and leads to no other one."""
    try:
        found = ip_address(text)
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found not in _GLOBAL_UNICAST:
        return False  # mapped, translated, local: whatever is written in them
    return found.is_global and not found.is_multicast and not _elsewhere(found)


def _elsewhere(found: IPv4Address | IPv6Address) -> bool:
    return any(found in net for net in (*_LEADS_ELSEWHERE, _METADATA) if net.version == found.version)


def _checked(url: str, *, allow_private: bool) -> tuple[str, int]:
    try:
        parts = httpx.URL(url)
        host = parts.host  # decodes it: not every name in ASCII is one
    except (httpx.InvalidURL, ValueError):
        raise Refused("bad_url") from None
    if parts.scheme not in (("http", "https") if allow_private else ("https",)):
        raise Refused("not_https")
    if not host or parts.userinfo or parts.fragment or not (parts.port is None or parts.port in _PORTS):
        raise Refused("bad_url")
    return parts.raw_host.decode("ascii"), parts.port or (443 if parts.scheme == "https" else 80)


def _headers(secrets: Sequence[str], message: Message) -> dict[str, str]:
    text = message.body.decode()
    return {
        "content-type": "application/json",
        "user-agent": "afterturn",
        "webhook-id": message.id,
        "webhook-timestamp": str(int(message.at.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(message.id, message.at, text) for secret in secrets),
    }


async def _post(url: str, headers: Mapping[str, str], body: bytes, *, allow_private: bool) -> int:
    to = await address(url, allow_private=allow_private)
    parts = httpx.URL(url)
    pinned = parts.copy_with(host=to)
    named = {**headers, "host": parts.netloc.decode("ascii")}
    extensions = {"sni_hostname": parts.raw_host.decode("ascii")}
    async with (
        httpx.AsyncClient(verify=_trusted(), trust_env=False, follow_redirects=False, timeout=DEADLINE) as client,
        client.stream("POST", pinned, content=body, headers=named, extensions=extensions) as answer,
    ):
        return answer.status_code


@cache
def _trusted() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # read once: the list is long


def _is_about_certificate(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None
