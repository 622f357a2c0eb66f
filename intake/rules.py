"""How does a space mask? Its document, its phone regions, and under both the deployment's own."""

from dataclasses import dataclass, field
from uuid import UUID

from cachetools import LRUCache

from gateways.key_store import KeyStore
from models import policy as policies
from models.api_key import Credential
from privacy.policy import Policy


@dataclass(slots=True)
class Rules:
    """Reads a document once per change: a credential brings it along, so a change is seen when the key is looked at."""

    keys: KeyStore
    default: Policy
    _read: "LRUCache[tuple[int, str], Policy]" = field(default_factory=lambda: LRUCache(maxsize=1_000))

    async def of(self, credential: Credential) -> Policy:
        """The rules for what a key brings."""
        if not credential.rules:
            return self.default
        place = (credential.space, credential.rules)
        policy = self._read.get(place)
        if policy is None:
            policy = await self.read(credential.rules, credential.lookup_key)
            self._read[place] = policy
        return policy

    async def read(self, rules: str, lookup_key: UUID) -> Policy:
        """The rules in what `models.policy.rules` answers."""
        return policies.masking(rules, await self.keys.key(lookup_key), self.default) if rules else self.default

    async def check(self, document: object, lookup_key: UUID) -> Policy:
        """The rules in a document. PolicyError names what is wrong with it."""
        return policies.checked(document, await self.keys.key(lookup_key))
