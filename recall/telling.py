"""Lines as a program gets them: with their ids, and with what they rest on in the names that the caller's own chat gave."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from gateways.key_store import KeyGone
from jobs.resources import Resources
from memory.observation import Line
from models import turn
from models.content import at_offset, message_id
from models.conversation import SEALED_ID, Conversation
from models.turn import StoredTurn
from privacy.sealing import SealingKey


async def tell(resources: Resources, space: int, lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Each line as a document. Of a turn that is gone, its `evidence` has the turn's number alone."""
    wanted = {turn_id for line in lines for turn_id in line.evidence}
    async with resources.database.begin(space) as tx:
        spoken = await turn.spoken(tx, space, wanted)
    keys = await _keys(resources, {said.subject_id for said, _ in spoken})
    # Opening a long log's turns takes a while, and the other requests go on meanwhile.
    named = await asyncio.to_thread(lambda: {said.id: _named(said, where, keys) for said, where in spoken})
    return [_document(line, named) for line in lines]


async def _keys(resources: Resources, subjects: set[UUID]) -> dict[UUID, SealingKey]:
    keys = {}
    for subject in subjects:
        try:
            keys[subject] = await resources.keys.key(subject)
        except KeyGone:  # whoever spoke is erased; the log is another person's
            continue
    return keys


def _named(said: StoredTurn, where: Conversation, keys: Mapping[UUID, SealingKey]) -> dict[str, Any]:
    key = keys.get(said.subject_id)
    if key is None:
        return {"turn_id": said.id}
    return {
        "turn_id": said.id,
        "conversation_id": key.open(where.sealed_id, SEALED_ID),
        "message_id": message_id(said.sealed, key),
        "at": at_offset(said.said_at, said.said_offset),
    }


def _document(line: Line, named: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    days = line.refers_to
    return {
        "id": line.id,
        "text": line.text,
        "kind": line.kind,
        "priority": line.priority,
        "observed_at": line.observed_at,
        "refers_to": None if days is None else {"start": days.start, "end": days.end},
        "tokens": line.tokens,
        "evidence": [named.get(turn_id, {"turn_id": turn_id}) for turn_id in line.evidence],
        "supersedes": line.supersedes,
    }
