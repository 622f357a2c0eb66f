"""Webhooks go to public addresses only, to the very one that was checked, signed, and follow nothing."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from standardwebhooks.webhooks import Webhook

from gateways import webhook_sender
from gateways.webhook_sender import Message, Refused, address, is_public, is_refusal, send

_PRIVATE = """127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 255.255.255.255 ::
    ::1 fe80::1 fc00::1 fd00:ec2::254 ff02::1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 64:ff9b::a00:1 64:ff9b:1::1
    2002:7f00:1::1 ::7f00:1"""
_SECRETS = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")


@pytest.mark.parametrize("text", _PRIVATE.split())
def test_an_address_that_is_not_the_internets_is_refused(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111"])
def test_an_address_of_the_internet_is_taken(text: str) -> None:
    assert is_public(text)


@pytest.mark.parametrize("host", ["0177.0.0.1", "2130706433", "0x7f.1", "127.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_other_spellings_of_loopback_are_refused(host: str) -> None:
    with pytest.raises(Refused):
        await address(f"https://{host}/", allow_private=False)


async def test_one_private_answer_among_public_ones_refuses_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    _answers(monkeypatch, "8.8.8.8", "10.0.0.1")
    with pytest.raises(Refused):
        await address("https://mixed.example/", allow_private=False)


@pytest.mark.parametrize("url", ["http://a.example/", "ftp://a.example/", "https://u:p@a.example/", "https://", "x"])
async def test_a_url_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        await address(url, allow_private=False)


@pytest.mark.parametrize(
    "url",
    [
        *(f"https://localhost:{port}/" for port in (0, 65_536, 99_999)),
        *(f"https://{host}/" for host in ("xn--", "xn--a.example", "xn--zzzzzzzz", "\u200d.example", "a\nb")),
    ],
)
async def test_a_port_or_name_that_cannot_be_is_an_answer_and_no_crash(url: str) -> None:
    with pytest.raises(Refused, match="bad_url"):
        await address(url, allow_private=True)
    message = Message("msg_1", b"{}", datetime(2026, 1, 1, tzinfo=UTC))
    assert await send(url, _SECRETS, message, allow_private=True) == "bad_url"


async def test_the_name_is_looked_up_once_both_secrets_sign_and_no_redirect_is_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"{}"))
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 99999999\r\n\r\n")
        await writer.drain()
        writer.close()

    message = Message("msg_1", b"{}", datetime.now(UTC))
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        asked = _answers(monkeypatch, "127.0.0.1")
        assert await send(f"http://hook.example:{port}/in", _SECRETS, message, allow_private=True) == "http_302"
    assert asked.count("hook.example") == 1
    assert len(heard) == 1
    lines = heard[0].decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    assert headers["host"] == f"hook.example:{port}"
    for secret in _SECRETS:
        assert Webhook(secret).verify(b"{}", headers) == {}


async def test_a_receiver_that_never_answers_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_sender, "DEADLINE", 0.2)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    message = Message("msg_1", b"{}", datetime.now(UTC))
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await send(f"http://127.0.0.1:{port}/", _SECRETS, message, allow_private=True) == "timeout"


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[trustme.CA]:
    """One that is trusted here, as an operator's own would be."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    webhook_sender._trusted.cache_clear()
    yield authority
    webhook_sender._trusted.cache_clear()


@asynccontextmanager
async def _secured(authority: trustme.CA, *names: str) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server with a certificate for these names: its port, and what it heard."""
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"{}"))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1], heard


async def test_over_tls_the_certificate_must_be_the_name_s_though_an_address_is_called(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = Message("msg_1", b"{}", datetime.now(UTC))
    _answers(monkeypatch, "127.0.0.1")
    async with _secured(authority, "hook.example") as (port, heard):
        assert await send(f"https://hook.example:{port}/in", _SECRETS, message, allow_private=True) is None
        for other in ("other.example", "127.0.0.1"):
            said = await send(f"https://{other}:{port}/in", _SECRETS, message, allow_private=True)
            assert said == "bad_certificate"
    assert len(heard) == 1


async def test_a_certificate_of_an_authority_that_nobody_knows_is_refused(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answers(monkeypatch, "127.0.0.1")
    async with _secured(trustme.CA(), "hook.example") as (port, heard):
        message = Message("msg_1", b"{}", datetime.now(UTC))
        said = await send(f"https://hook.example:{port}/", _SECRETS, message, allow_private=True)
    assert (said, heard) == ("bad_certificate", [])


@pytest.mark.parametrize(
    ("error", "of_one"),
    [
        ("http_422", True),
        ("http_413", True),
        ("http_401", False),
        ("http_404", False),
        ("http_429", False),
        ("http_500", False),
        ("http_302", False),
        ("timeout", False),
    ],
)
def test_what_is_said_of_one_message_is_told_from_what_is_said_of_the_endpoint(error: str, of_one: bool) -> None:  # noqa: FBT001 - a case's answer
    assert is_refusal(error) is of_one


def _answers(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Every name now has these addresses; the list tells which names were looked up by name."""
    asked: list[str] = []
    loop = asyncio.get_running_loop()
    real = loop.getaddrinfo

    async def found(host: str, port: int, **how: int) -> list[object]:
        if host in addresses:
            return list(await real(host, port, **how))
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]

    monkeypatch.setattr(loop, "getaddrinfo", found)
    return asked
