"""What an agent's code finds again: its state, without whatever has expired."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gateways.key_store import KeyGone
from gateways.scopes import place_of
from jobs.resources import Resources
from memory.state import ScopeKind
from models import state as states
from models import state_rules
from models.api_key import Credential
from models.database import driver
from models.state import SEALED_FIELD, Stored


@dataclass(frozen=True, slots=True)
class Read:
    """A state as it is read; version 0 where it was never written, was erased, or has expired."""

    body: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
    generation: str | None = None
    updated_at: datetime | None = None
    expires_at: Mapping[str, datetime] = field(default_factory=dict)


async def read(resources: Resources, credential: Credential, named: tuple[ScopeKind, str], agent: str) -> Read:
    """The state of a scope. StateOff, OtherScope."""
    async with resources.database.begin(credential.space) as tx:
        rules = await state_rules.opened(await driver(tx), credential.space, credential.lookup_key, agent)
    place = await place_of(resources.keys, credential.space, rules, named, agent)
    async with resources.database.begin(credential.space) as tx:
        stored = await states.find(await driver(tx), place)
    return Read() if stored is None else await _opened(resources, stored)


async def _opened(resources: Resources, stored: Stored) -> Read:
    try:
        key = await resources.keys.key(stored.key_id)
    except KeyGone:  # whose state it is is being erased
        return Read()
    return Read(
        body={name: json.loads(key.open(kept.sealed, SEALED_FIELD)) for name, kept in stored.fields.items()},
        version=stored.version,
        generation=stored.generation.hex,
        updated_at=stored.updated_at,
        expires_at={
            name: min(kept.expires_at or stored.expires_at, stored.expires_at) for name, kept in stored.fields.items()
        },
    )
