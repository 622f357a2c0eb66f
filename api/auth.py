"""Who calls? A bearer secret, found by its hash; what it may open; and for which agent it may speak."""

import time
from dataclasses import dataclass, field

from cachetools import LRUCache
from starlette.datastructures import Headers

from api import problems
from api.problems import Problem
from intake.identity import HEADERS, Claim, InvalidHandle, weigh
from models import api_key
from models.api_key import Credential, Scope
from models.database import Database
from privacy.hashing import api_secret_digest

_TRUSTED = 0.8  # seconds that a credential is good without asking again: a revoked key ends within one second
_ASKED_AFTER = (
    0.4  # seconds after which one caller asks again, while the others go by what is known: none waits in a crowd
)
_LONGEST_SECRET = 256


@dataclass(frozen=True, slots=True)
class Caller:
    """A request's key, and what the request says about whom it speaks for."""

    credential: Credential
    claim: Claim

    def speak_for(self, agent: str, context: str) -> None:
        """Refuses another agent than the key's own, another vendor's, and a context that the space does not keep apart."""
        if self.credential.agent not in (None, agent) or agent in self.credential.foreign:
            raise problems.not_found()
        if context == "personal" and not self.credential.contexts:
            raise problems.invalid(("context", "takes corporate: this space does not keep contexts apart"))


@dataclass(slots=True)
class _Known:
    """A credential, from when on it is to be asked for again, and until when it is good."""

    credential: Credential
    ask_from: float
    good_until: float


@dataclass(slots=True)
class Doorman:
    """Knows the keys that called within the last second. One per process.

    A secret is looked up by its SHA-256: nothing is compared, so nothing can be learnt from how long it takes.
    """

    database: Database
    _known: "LRUCache[bytes, _Known]" = field(default_factory=lambda: LRUCache(maxsize=10_000))

    async def admit(self, headers: Headers, scope: Scope) -> Caller:
        """The caller, or 401 without a living key, or 403 with the scope that the key lacks."""
        secret = _bearer(headers)
        if secret is None:
            raise problems.unauthorized()
        credential = await self._credential(api_secret_digest(secret))
        if credential is None:
            raise problems.unauthorized(', error="invalid_token"')
        if scope not in credential.scopes:
            raise _scope_missing(scope)
        return Caller(credential, _claim(credential, headers))

    async def _credential(self, digest: bytes) -> Credential | None:
        asked_at = time.monotonic()
        known = self._known.get(digest)
        if known is not None and asked_at < known.ask_from:
            return known.credential
        if known is not None:
            known.ask_from = known.good_until
        async with self.database.pool.acquire() as connection:
            found = await api_key.credential(connection, digest)
        if found is None:
            self._known.pop(digest, None)
        else:
            self._known[digest] = _Known(found, asked_at + _ASKED_AFTER, asked_at + _TRUSTED)
        return found


def _bearer(headers: Headers) -> str | None:
    said = headers.getlist("authorization")
    if len(said) != 1:  # of two, a proxy and we could each go by another
        return None
    kind, _, secret = said[0].partition(" ")
    secret = secret.strip()
    return secret if kind.lower() == "bearer" and 0 < len(secret) <= _LONGEST_SECRET else None


def _claim(credential: Credential, headers: Headers) -> Claim:
    # Read once: each look-up in `headers` goes through all of them.
    named = [(name.decode("latin-1"), value) for name, value in headers.raw if name.startswith(b"x-")]
    if credential.impersonates:  # a proxy that adds a second value must not choose whose memory it is
        came = [name for name, _ in named]
        for header in HEADERS:
            if came.count(header.lower()) > 1:
                raise InvalidHandle(header, "takes one value")
    return weigh(credential, {name: value.decode("latin-1") for name, value in reversed(named)})


def _scope_missing(scope: Scope) -> Problem:
    challenge = {"WWW-Authenticate": f'Bearer realm="afterturn", error="insufficient_scope", scope="{scope}"'}
    return Problem(403, "scope_missing", "The API key lacks the scope", headers=challenge, scope=scope)
