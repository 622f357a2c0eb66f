"""What a space says of its agents' states, as a request goes by it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from memory.state import StateType
from models import object_type, policy, state
from models.database import Connection


class StateOff(Exception):
    """The space's agents keep no state."""


@dataclass(frozen=True, slots=True)
class Rules:
    """`type` None: no field is declared. `scope_keys` are newest first."""

    type: StateType | None
    scope_keys: tuple[UUID, ...]


async def opened(connection: Connection, space: int, lookup_key: UUID, agent: str) -> Rules:
    """The rules of an agent; StateOff where the feature is off."""
    if not (await policy.features(connection, space)).get("agent_state", False):
        raise StateOff
    types, _ = await object_type.read(connection, space)
    return Rules(object_type.declared(types, agent), await state.scope_keys(connection, space, lookup_key))


_SHORTEN = """
WITH whole AS (
    UPDATE states SET expires_at = least(expires_at, updated_at + $3::interval)
    WHERE space_id = $1 AND agent = $2 AND expires_at > updated_at + $3::interval
)
UPDATE state_fields f SET expires_at = least(f.expires_at, f.written_at + make_interval(secs => t.term))
FROM states s, unnest($4::text[], $5::double precision[]) AS t (field, term)
WHERE s.space_id = $1 AND s.agent = $2 AND f.state_id = s.id AND f.field = t.field
    AND coalesce(f.expires_at, 'infinity') > f.written_at + make_interval(secs => t.term)
"""


async def shorten(connection: Connection, space: int, types: list[dict[str, Any]]) -> None:
    """Terms that are shorter than before hold for what is stored at once; longer ones from the next write on."""
    rows = await connection.fetch("SELECT DISTINCT agent FROM states WHERE space_id = $1", space)
    for agent in (row["agent"] for row in rows):
        kind = object_type.declared(types, agent)
        if kind is not None:
            terms = _terms(kind)
            secs = [term.total_seconds() for term in terms.values()]
            await connection.execute(_SHORTEN, space, agent, kind.term, list(terms), secs)


def _terms(kind: StateType) -> Mapping[str, timedelta]:
    return {name: rule.term for name, rule in kind.fields.items() if rule.term is not None}
