"""Distilling, as far as it only reads and thinks: whose turns are meant, and what an agent could learn from them.

Whether that may be kept, and as what, is for `intake.distilling`, which runs it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from gateways.key_store import KeyGone
from jobs.asking import Asker, Wait
from jobs.resources import Workshop
from memory import batches, distiller, observer, procedures
from memory.note import Draft
from memory.outcome import Outcome
from memory.turn import Turn
from models import distillation, note_book
from models.content import open_turn
from models.database import driver
from models.distillation import Asked, Reason
from models.turn import StoredTurn
from models.work import Claim
from privacy.sealing import SealingKey

_MOST = 2_000  # turns that are read, the newest
_TRIES = 3  # runs in which a model may answer nothing of use
_UNTIL_MASKED, _UNTIL_ON = 30.0, 900.0  # seconds


@dataclass(frozen=True, slots=True)
class Heard:
    """What there is to learn from. `subject` and `key` seal what a model answers about it."""

    asked: Asked
    turns: Sequence[Turn]
    subject: UUID
    key: SealingKey


async def hear(claim: Claim, workshop: Workshop) -> Heard | Reason | None:
    """The turns, or why there is nothing to learn from them. None: the request is gone, or done already.

    Raises Wait while the models layer has not looked at them, or the space's agents have no memory.
    """
    space, named = claim.space_id, UUID(claim.payload["distillation"])
    async with workshop.database.begin(space) as tx:
        connection = await driver(tx)
        asked = await distillation.lock(connection, space, named)
        if asked is None or asked.state != "waiting":
            return None
        if not (await note_book.rules(connection, space)).on:
            raise Wait("agent_memory_off", _UNTIL_ON)
        meant = await distillation.sources(connection, asked.whose, asked.evidence, asked.known_as)
        rows = await distillation.turns(tx, asked, meant, _MOST)
        read = sorted({row.conversation_id for row in rows}), sorted({row.log_id for row in rows})
        if not rows or not await distillation.still_there(connection, space, *read):
            return Reason.NO_TURNS
        await distillation.read_from(connection, space, named, *read)
        if await distillation.only_unconfirmed(connection, space, read[1]):
            return Reason.UNCONFIRMED_IDENTITY_LINK
    if any(row.unmasked for row in rows):
        raise Wait("unmasked", _UNTIL_MASKED)
    return await _opened(replace(asked, conversations=read[0], logs=read[1]), rows, workshop)


async def _opened(asked: Asked, rows: Sequence[StoredTurn], workshop: Workshop) -> Heard | Reason:
    try:
        keys = await workshop.keys.keys(sorted({row.subject_id for row in rows}))
    except KeyGone:  # erased since the read
        return Reason.NO_TURNS
    turns = batches.in_conversation_order([open_turn(row, keys[row.subject_id]) for row in rows])
    last = rows[-1].subject_id
    return Heard(asked, turns, last, keys[last])


async def learn(claim: Claim, heard: Heard, workshop: Workshop) -> Draft | None:
    """A note about the work, or None. Raises Wait for what passes by itself, and for a model that answers nothing of use."""
    if workshop.asker is None:
        return await workshop.mind.think(procedures.distil, heard.turns)
    return await _ask_twice(claim, heard, workshop.asker, workshop.room)


async def _ask_twice(claim: Claim, heard: Heard, asker: Asker, room: int) -> Draft | None:
    prompt = distiller.prompt(heard.turns, room)
    for _ in range(2):
        reading = distiller.read(await asker.ask(claim, heard.subject, heard.key, prompt))
        if reading.outcome is Outcome.OK:
            return reading.draft
        prompt = replace(prompt, data=f"{prompt.data}\n{observer.complaint(reading.outcome)}")
    if claim.attempt - claim.crashes < _TRIES:
        raise OfNoUse(reading.outcome)
    return None


class OfNoUse(Exception):
    """The model answered twice, and neither answer holds a note or says that there is none."""
