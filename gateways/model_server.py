"""A model server that speaks the OpenAI protocol, asked one question at a time; whatever it does comes back as an Answer."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx2
import openai

from gateways.model_dialect import Dialect, concede, request_body
from gateways.model_reply import read_completion, read_error
from memory import tokens
from memory.outcome import Answer, Outcome, Prompt

_LARGEST_BODY = 4 * 1024 * 1024  # bytes; no answer within any output limit comes near
_CONNECT_WITHIN = 10.0  # seconds


class ModelServer:
    """One model behind one base URL. Safe for concurrent calls; close it at the end."""

    def __init__(
        self, base_url: str, model: str, *, api_key: str, timeout: float, window_tokens: int, max_output_tokens: int
    ) -> None:
        """`timeout` in seconds bounds one call of `ask` as a whole, however slowly the server drips.

        Raises ValueError for a URL or a key that can be sent to nobody.
        """
        self._model, self._timeout = model, timeout
        self._window_tokens, self._max_output_tokens = window_tokens, max_output_tokens
        self._client = _client(_sendable_url(base_url), _sendable_key(api_key), timeout)
        self._dialect, self._proven = Dialect(), False

    async def ask(self, prompt: Prompt) -> Answer:
        """How the question ended. Raises for nothing that a server or a network can do."""
        output = min(prompt.max_output_tokens, self._max_output_tokens)
        if tokens.count(prompt.instructions) + tokens.count(prompt.data) + output > self._window_tokens:
            return Answer(Outcome.OVER_LONG, detail=f"more than the model's window of {self._window_tokens} tokens")
        try:
            async with asyncio.timeout(self._timeout):
                return await self._converse(prompt, output)
        except TimeoutError:
            return Answer(Outcome.TIMEOUT, detail=f"no answer within {self._timeout:g} s")
        except openai.APITimeoutError as error:
            return Answer(Outcome.TIMEOUT, detail=type(error.__cause__ or error).__name__)
        except openai.OpenAIError as error:
            return Answer(Outcome.PROVIDER_ERROR, detail=type(error.__cause__ or error).__name__)

    async def close(self) -> None:
        await self._client.close()

    async def _converse(self, prompt: Prompt, output: int) -> Answer:
        dialect, proven = self._dialect, self._proven
        while True:
            try:
                reply = await self._post(request_body(prompt, dialect, model=self._model, max_output_tokens=output))
            except openai.APIStatusError as error:
                complaint = error.response.text
                answer = read_error(error.status_code, error.response.headers, complaint, now=datetime.now(UTC))
                softer = concede(dialect, error.status_code, complaint, proven=proven)
                if answer.outcome is not Outcome.PROVIDER_ERROR or softer is None:
                    return answer
                dialect = softer
            else:
                # Only what worked is remembered: a server that fails for another reason teaches nothing.
                self._dialect, self._proven = dialect, True
                return read_completion(reply)

    async def _post(self, body: dict[str, Any]) -> bytes:
        reply = await self._client.post("/chat/completions", body=body, cast_to=httpx2.Response)
        return reply.content


class BodyTooLarge(httpx2.ReadError):
    """A server sent more than any answer needs."""


class CompressedBody(httpx2.ReadError):
    """A server compressed what was asked for as it is: a small body could unfold without bound."""


class _Wire(httpx2.AsyncBaseTransport):
    """Sends the headers that a chat completion needs and no others, and reads bodies whole, up to a bound."""

    def __init__(self) -> None:
        # Proxies and certificates of the environment are not taken: the base URL alone says where text goes.
        self._wire = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        kept = [(name, value) for name, value in request.headers.raw if name.lower() in _HEADERS_SENT]
        request.headers = httpx2.Headers([*kept, (b"accept-encoding", b"identity"), (b"user-agent", b"afterturn")])
        reply = await self._wire.handle_async_request(request)
        try:
            body = await _read(reply)
        finally:
            await reply.aclose()
        return httpx2.Response(reply.status_code, headers=reply.headers, content=body, extensions=reply.extensions)

    async def aclose(self) -> None:
        await self._wire.aclose()


# The SDK's own would tell of this machine, and carry the organisation and any header named in the environment.
_HEADERS_SENT = frozenset({b"host", b"authorization", b"content-type", b"content-length", b"accept"})


async def _read(reply: httpx2.Response) -> bytes:
    if reply.headers.get("content-encoding", "identity") != "identity":
        raise CompressedBody("the body is compressed")
    body = bytearray()
    async for chunk in reply.aiter_raw():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise BodyTooLarge("the body is too large")
    return bytes(body)


def _client(base_url: str, api_key: str, timeout: float) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(transport=_Wire(), trust_env=False, follow_redirects=False)
    limits = httpx2.Timeout(timeout, connect=min(_CONNECT_WITHIN, timeout))
    return openai.AsyncOpenAI(base_url=base_url, api_key=api_key, timeout=limits, max_retries=0, http_client=http)


def _sendable_url(base_url: str) -> str:
    try:
        url = httpx2.URL(base_url)
    except httpx2.InvalidURL as error:
        raise ValueError(f"the model server's URL is wrong: {error}") from None
    if url.scheme not in {"http", "https"} or not url.host or (url.port or 0) > 65_535:
        raise ValueError("the model server's URL must be http:// or https:// with a host and a port up to 65535")
    return base_url


def _sendable_key(api_key: str) -> str:
    key = api_key.strip()  # a key out of a file ends in a line break
    if not key or not key.isascii() or not key.isprintable():
        raise ValueError("the model server's API key must be printable ASCII; any word will do where none is needed")
    return key
