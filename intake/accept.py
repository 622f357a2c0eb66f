"""From messages to accepted turns: mask, count, seal, commit. The raw text exists in this call's memory only."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg
from cachetools import LRUCache

from gateways import ledger
from gateways.key_store import KeyGone, KeyStore
from intake.batcher import Batcher, Call, OwnerGone, PreparedTurn, ToldBefore, Took
from intake.called import Called
from intake.identity import Claim, Identity, People
from intake.messages import Message
from intake.pseudonymous import steadily
from intake.rules import Rules
from memory import tokens
from memory.turn import Role, ToolCall
from models.api_key import Credential
from models.append import Address, ConversationName, LogName, Rebirth
from models.columns import utc_now
from models.content import offset_minutes, seal_turn
from models.conversation import SEALED_ID
from models.log import Rhythm
from models.turn import Skip, State
from privacy.known import Known
from privacy.masking import mask
from privacy.policy import Policy
from privacy.sealing import SealingKey

_IN_A_THREAD = 32 * 1024  # characters past which masking would hold up the other requests
_CALLS_KNOWN = timedelta(hours=24)  # that long an idempotency key tells what is from before an erasure
_ALL_PERSONAL = re.compile(r"<[A-Z_]+>")  # a placeholder without a number or a hash, which would tell one from another
_SILENT_ROLES = (Role.SYSTEM, Role.DEVELOPER)


class SubjectErased(Exception):
    """What was sent is from before the erasure of whom it is about: it must not bring anything back."""


@dataclass(frozen=True, slots=True)
class Said:
    """One request's turns as they were said."""

    agent: str
    conversation_id: str
    messages: Sequence[Message]
    context: str = "corporate"
    task_id: str | None = None
    no_memory: bool = False
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class _Names:
    """What a call's turns are masked, sealed and named by: `key_id` of the caller, `key` of the person who speaks."""

    key_id: str
    key: SealingKey
    policy: Policy
    known: Known
    given: dict[str, str] | None
    task: bytes | None
    call: bytes | None

    def masked(self, text: str) -> str:
        return mask(text, self.policy, self.known, pseudonyms=self.given).text


@dataclass(frozen=True, slots=True)
class Accepted:
    """What the caller is told."""

    identity: Identity
    took: Took
    due: bool
    flush_at: datetime | None


@dataclass(slots=True)
class Intake:
    """Everything that accepting turns needs; one per process."""

    people: People
    keys: KeyStore
    batcher: Batcher
    rules: Rules
    rhythm: Rhythm
    memory_on: bool
    called: Called
    has_models: bool = False  # a models layer is to look for names afterwards
    _rebirths: "LRUCache[ConversationName, Rebirth]" = field(default_factory=lambda: LRUCache(maxsize=10_000))

    async def accept(self, credential: Credential, claim: Claim, said: Said) -> Accepted:
        """Commits the turns. Raises OtherAgent when the conversation belongs to another agent, SubjectErased."""
        arrived = utc_now()
        identity = await self.people.meet(credential, claim)
        try:
            return await self._take(credential, claim, identity, said, arrived)
        except (OwnerGone, KeyGone, asyncpg.ForeignKeyViolationError):
            self.people.forget(identity.owner, identity.speaker)
            self.called.forget(_both(identity))
            identity = await self.people.meet(credential, claim)
            return await self._take(credential, claim, identity, said, arrived)

    async def _take(
        self, credential: Credential, claim: Claim, identity: Identity, said: Said, arrived: datetime
    ) -> Accepted:
        erased_at = await self.people.reborn_at(credential.space, *_both(identity))
        if erased_at is not None:
            if any(at <= erased_at for at in (arrived, *_times(said))):
                raise SubjectErased
            await self._refuse_what_was_heard(credential, claim, said, erased_at)
        took = await self._submit(credential, said, await self._prepare(credential, identity, said), arrived)
        return self._answer(identity, took)

    async def _submit(self, credential: Credential, said: Said, call: Call, arrived: datetime) -> Took:
        """Commits the call, unless it is from before an erasure of its conversation."""
        name = call.address.conversation
        while True:
            rebirth: Rebirth | None = self._rebirths.get(name)
            if rebirth is not None:
                await self._refuse_what_was_told(credential, said, rebirth, arrived)
            try:
                return await self.batcher.submit(call if rebirth is None else replace(call, since=rebirth.at))
            except ToldBefore as told:
                self._rebirths[name] = told.rebirth

    async def _refuse_what_was_told(
        self, credential: Credential, said: Said, rebirth: Rebirth, arrived: datetime
    ) -> None:
        if any(at <= rebirth.at for at in (arrived, *_times(said))):
            raise SubjectErased
        call = await self._call(credential, said)
        if call is not None and utc_now() - rebirth.at <= _CALLS_KNOWN:
            key = await ledger.suppression_key(self.keys)
            named = ledger.call_digest(key, credential.space, call)
            if await ledger.ended_call(self.keys, named, rebirth.erasure):
                raise SubjectErased

    async def _refuse_what_was_heard(
        self, credential: Credential, claim: Claim, said: Said, erased_at: datetime
    ) -> None:
        call = await self._call(credential, said)
        if call is None or utc_now() - erased_at > _CALLS_KNOWN:
            return
        if await self.people.was_heard(credential.space, claim, call):
            raise SubjectErased

    async def _call(self, credential: Credential, said: Said) -> bytes | None:
        """What names the call by its idempotency key, for as long as the space stands."""
        if said.idempotency_key is None:
            return None
        lookup = await self.keys.key(credential.lookup_key)
        return lookup.digest(f"{credential.key_id}\0{said.idempotency_key}", "idempotency/turns")

    async def _prepare(self, credential: Credential, identity: Identity, said: Said) -> Call:
        owner, speaker = _both(identity)
        policy, known = await self.rules.of(credential), await self.called.names(credential.space, owner, speaker)
        key = await self.keys.key(speaker)
        lookup = await self.keys.key(credential.lookup_key)
        task = None if said.task_id is None else lookup.digest(said.task_id, "task")
        names = _Names(credential.key_id, key, policy, known, None, task, await self._call(credential, said))
        if policy.gives_pseudonyms:
            turns = await steadily(
                self.people.database, credential.space, key, lambda given: self._said(said, replace(names, given=given))
            )
        else:
            turns = await self._said(said, names)
        return Call(
            space=credential.space,
            address=Address(
                LogName(owner, said.agent, said.context),
                ConversationName(speaker, key.digest(said.conversation_id, SEALED_ID)),
                key.seal(said.conversation_id, SEALED_ID),
                lookup.digest(said.conversation_id, SEALED_ID),
            ),
            turns=turns,
        )

    async def _said(self, said: Said, names: "_Names") -> list[PreparedTurn]:
        if sum(map(_size, said.messages)) > _IN_A_THREAD:
            return await asyncio.to_thread(self._turns, said, names)
        return self._turns(said, names)

    def _turns(self, said: Said, names: "_Names") -> list[PreparedTurn]:
        now = utc_now()
        return [
            self._turn(said, _masked(message, names), names, _message_digest(said, index, message, names), now)
            for index, message in enumerate(said.messages)
        ]

    def _turn(self, said: Said, masked: Message, names: "_Names", digest: bytes | None, now: datetime) -> PreparedTurn:
        reason = self._skip(said, masked)
        at = masked.said_at or now
        return PreparedTurn(
            role=masked.role,
            sealed=seal_turn(
                names.key,
                masked.text,
                message_id=masked.id,
                name=masked.name,
                tool_calls=masked.tool_calls,
                tool_call_id=masked.tool_call_id,
            ),
            tokens=tokens.of_turn(masked.text, masked.tool_calls),
            said_at=at,
            said_offset=offset_minutes(at),
            state=State.SKIPPED if reason else State.PENDING,
            reason=reason,
            message_digest=digest,
            task_digest=names.task,
            call_digest=names.call,
            unmasked=self.has_models and bool(masked.text.strip() or masked.name or masked.tool_calls),
        )

    def _skip(self, said: Said, message: Message) -> Skip | None:
        if message.role in _SILENT_ROLES:
            return Skip.ROLE
        if said.no_memory:
            return Skip.NO_MEMORY
        if not self.memory_on:
            return Skip.MEMORY_OFF
        if not message.text.strip() and not message.tool_calls:
            return Skip.EMPTY
        return None

    def _answer(self, identity: Identity, took: Took) -> Accepted:
        if took.oldest_pending_at is None:
            return Accepted(identity, took, due=False, flush_at=None)
        over = took.pending_tokens > self.rhythm.threshold
        wait = timedelta(0) if over else self.rhythm.max_age
        return Accepted(identity, took, due=over, flush_at=took.oldest_pending_at + wait)


def _masked(message: Message, names: "_Names") -> Message:
    text = names.masked(message.text)
    if text is message.text and message.name is None and not message.tool_calls:
        return message
    return Message(
        role=message.role,
        text=text,
        said_at=message.said_at,
        id=message.id,
        name=_speaker(message.name, names),
        tool_calls=tuple(
            ToolCall(call.id, names.masked(call.name), names.masked(call.arguments)) for call in message.tool_calls
        ),
        tool_call_id=message.tool_call_id,
    )


def _speaker(name: str | None, names: "_Names") -> str | None:
    """Who spoke; nobody where the name is personal as a whole: what is left of it would name nobody."""
    told = None if name is None else names.masked(name)
    return None if told is None or _ALL_PERSONAL.fullmatch(told) else told


def _both(identity: Identity) -> tuple[UUID, UUID]:
    if identity.owner is None or identity.speaker is None:
        raise LookupError("meeting a person always gives a subject")
    return identity.owner, identity.speaker


def _times(said: Said) -> list[datetime]:
    return [message.said_at for message in said.messages if message.said_at is not None]


def _size(message: Message) -> int:
    """Characters that masking reads, and what each call costs besides."""
    calls = sum(len(call.name) + len(call.arguments) + 100 for call in message.tool_calls)
    return len(message.text) + len(message.name or "") + calls


def _message_digest(said: Said, index: int, message: Message, names: "_Names") -> bytes | None:
    """What makes a message the same one when it is sent again; None when nothing says so."""
    if message.id is not None:
        return names.key.digest(message.id, "message")
    if said.idempotency_key is None:
        return None
    # The content counts: a key that is used twice by mistake, for other turns, must not lose them.
    content = hashlib.sha256(repr((message.role, message.text, message.name, message.tool_calls)).encode()).hexdigest()
    return names.key.digest(f"{names.key_id}\0{said.idempotency_key}\0{index}\0{content}", "idempotency")
