"""Writing an agent's state: by its version, by its declared fields, masked, within its cap, or not at all."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from gateways.key_store import KeyGone
from gateways.scopes import place_of
from intake.accept import SubjectErased
from intake.called import Called
from intake.identity import Claim, People
from intake.kept_text import storable
from intake.pseudonymous import steadily
from intake.rules import Rules as Masking
from jobs.resources import Resources
from memory import state as shapes
from memory.state import Change, Mode, ScopeKind, StateType, WrongValue
from models import conversation as conversations
from models import state as states
from models import state_rules
from models.api_key import Credential, lock_owner
from models.columns import utc_now
from models.conversation import SEALED_ID
from models.database import Connection, driver
from models.dataset import see_expired
from models.state import SEALED_FIELD, Kept, Place, Stored
from models.state_rules import Rules
from models.subject import HandleKind
from privacy.known import Known
from privacy.masking import mask
from privacy.policy import Policy
from privacy.sealing import SealingKey

_IN_A_THREAD = 32 * 1024  # characters past which masking would hold up the other requests
_TRIES = 3


class Conflict(Exception):
    """The stored state has another version or generation than the write goes by: these are the stored ones."""

    def __init__(self, version: int, generation: str | None) -> None:
        super().__init__(version)
        self.version, self.generation = version, generation


class OtherMode(Exception):
    """The type takes writes in this mode alone."""

    def __init__(self, takes: Mode) -> None:
        super().__init__(takes)
        self.takes = takes


class _Gone(Exception):
    """Whom it is about was erased between the look-up and the commit."""


class _Rotated(Exception):
    """The space has another key for scopes since they were hashed."""


@dataclass(frozen=True, slots=True)
class Said:
    """A write as it came. `scope` is its kind and id; `subjects` are handles of whom it is about, by scope or by name."""

    scope: tuple[ScopeKind, str]
    agent: str
    mode: Mode
    body: Mapping[str, Any]
    subjects: tuple[tuple[HandleKind, str], ...] = ()
    if_version: int | None = None
    if_generation: str | None = None
    written_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a write: the version and generation that stand now."""

    stored: bool
    version: int
    generation: str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _About:
    """Whom a state is about, and in which conversation of theirs it is."""

    subjects: tuple[UUID, ...]
    conversation: int | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A write weighed before anything is locked: what is wrong with it is told only where its version stands."""

    kind: StateType | None
    change: Change
    told: Mapping[str, str] = field(default_factory=dict)  # compact JSON by field, masked
    declared: bool = True
    wrong: WrongValue | None = None


@dataclass(frozen=True, slots=True)
class StateIntake:
    """Everything that writing a state needs."""

    resources: Resources
    people: People
    masking: Masking
    called: Called

    async def write(self, credential: Credential, claim: Claim, said: Said) -> Outcome:
        """Stores the state or says why not. StateOff, OtherScope, OtherMode, SubjectErased, Conflict, WrongValue."""
        arrived = utc_now()
        while True:
            try:
                return await self._write(credential, claim, said, arrived)
            except _Rotated:
                continue

    async def _write(self, credential: Credential, claim: Claim, said: Said, arrived: datetime) -> Outcome:
        space = credential.space
        async with self.resources.database.begin(space) as tx:
            rules = await state_rules.opened(await driver(tx), space, credential.lookup_key, said.agent)
        place = await place_of(self.resources.keys, space, rules, said.scope, said.agent)
        if rules.type is not None and said.mode not in rules.type.modes:
            raise OtherMode(*rules.type.modes)
        for _ in range(_TRIES):
            about = await self._about(credential, claim, said)
            await self._refuse_former(space, about, arrived, said)
            try:
                ready = await self._weigh(credential, about, rules.type, said)
                return await self._commit(place, rules, about, ready, arrived, said)
            except (_Gone, KeyGone, asyncpg.ForeignKeyViolationError):
                self.people.forget(*about.subjects)
                self.called.forget(about.subjects)
        raise SubjectErased

    async def _about(self, credential: Credential, claim: Claim, said: Said) -> _About:
        space, named = credential.space, []
        for handle in said.subjects:
            found = await self.people.subject(space, credential.lookup_key, handle, make=True)
            named += [] if found is None else [found]
        kind, scope = said.scope
        owner, conversation = None, None
        if kind is ScopeKind.CONVERSATION:
            owner, conversation = await self._conversation(credential, claim, scope)
        known = dict.fromkeys(named if owner is None else [*named, owner])
        return _About(tuple(known), conversation)

    async def _conversation(self, credential: Credential, claim: Claim, named: str) -> tuple[UUID | None, int | None]:
        """The caller's conversation of that id, and whose it is; None where it has not begun, or is another's."""
        speaker = (await self.people.find(credential, claim)).speaker
        if speaker is None:
            return None, None
        try:
            digest = (await self.resources.keys.key(speaker)).digest(named, SEALED_ID)
        except KeyGone:
            return None, None
        async with self.resources.database.begin(credential.space) as tx:
            number = await conversations.number(await driver(tx), credential.space, speaker, digest)
        return (None, None) if number is None else (speaker, number)

    async def _refuse_former(self, space: int, about: _About, arrived: datetime, said: Said) -> None:
        if not about.subjects:
            return
        reborn = await self.people.reborn_at(space, *about.subjects)
        if reborn is not None and min(arrived, said.written_at or arrived) <= reborn:
            raise SubjectErased

    async def _weigh(self, credential: Credential, about: _About, kind: StateType | None, said: Said) -> _Ready:
        change = shapes.change_of(said.mode, said.body)
        if kind is None or not shapes.all_declared(kind, said.body):
            return _Ready(kind, change, declared=False)
        try:
            shapes.check_types(kind, change)
        except WrongValue as wrong:
            return _Ready(kind, change, wrong=wrong)
        clean = {name: shapes.masked(value, storable) for name, value in change.sets.items()}
        told = await self._masked(credential, about, {name for name in clean if kind.fields[name].pii}, clean)
        return _Ready(kind, change, {name: shapes.compact(value) for name, value in told.items()})

    async def _masked(
        self, credential: Credential, about: _About, personal: set[str], body: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The body with its `pii` fields masked by the space's rules."""
        if not personal:
            return body
        policy, known = await self.masking.of(credential), Known.compile(())
        if about.subjects:
            known = await self.called.names(credential.space, about.subjects[0], about.subjects[-1])
        if not policy.gives_pseudonyms or not about.subjects:
            return await _covered(body, personal, policy, known, {})
        key = await self.resources.keys.key(about.subjects[0])
        return await steadily(
            self.resources.database,
            credential.space,
            key,
            lambda given: _covered(body, personal, policy, known, given),
        )

    async def _commit(
        self, place: Place, rules: Rules, about: _About, ready: _Ready, arrived: datetime, said: Said
    ) -> Outcome:
        async with self.resources.database.begin(place.space) as tx:
            connection = await driver(tx)
            await see_expired(connection)
            await _keep_alive(connection, place.space, about)
            at = await states.lock(connection, place.space, place.scopes)
            if await states.scope_keys(connection, place.space, rules.scope_keys[-1]) != rules.scope_keys:
                raise _Rotated
            erased = await states.erased_at(connection, place)
            if erased is not None and min(arrived, said.written_at or arrived) <= erased:
                raise SubjectErased
            before = await states.find(connection, place)
            _check_version(before, said)
            if ready.kind is None or not ready.declared:
                return _refused(before, "not_declared_field")
            if ready.wrong is not None:
                raise ready.wrong
            if not _fits(before, ready, ready.kind):
                return _refused(before, "over_cap")
            after = await self._merged(before, about, ready, ready.kind, at)
            await states.save(connection, place, after, about.conversation)
        return Outcome(stored=True, version=after.version, generation=after.generation.hex)

    async def _merged(
        self, before: Stored | None, about: _About, ready: _Ready, kind: StateType, at: datetime
    ) -> Stored:
        """The state as it is to be: what the write does not touch stays, each with its own time."""
        subjects = tuple(dict.fromkeys((*(before.subjects if before else ()), *about.subjects)))
        key = await self._key(before, subjects)
        stays = {} if before is None else {name: before.fields[name] for name in _untouched(before, ready.change)}
        if before is not None and before.key_id != key.id:  # it is known only now whom it is about
            former = await self.resources.keys.key(before.key_id)
            stays = {name: replace(kept, sealed=_again(kept, former, key)) for name, kept in stays.items()}
        sets = {name: _kept(kind, name, told, key, at) for name, told in ready.told.items()}
        return Stored(
            id=0,
            version=before.version + 1 if before else 1,
            generation=before.generation if before else uuid4(),
            key_id=key.id,
            subjects=subjects,
            updated_at=at,
            expires_at=at + kind.term,
            fields={**stays, **sets},
        )

    async def _key(self, before: Stored | None, subjects: tuple[UUID, ...]) -> SealingKey:
        """Of whom it is about; where nobody knows that, a key of its own."""
        if subjects:
            return await self.resources.keys.key(subjects[0])
        if before is not None:
            return await self.resources.keys.key(before.key_id)
        return await self.resources.keys.make(uuid4(), "space")


async def _keep_alive(connection: Connection, space: int, about: _About) -> None:
    """Nobody whom it is about, and not its conversation, is erased before the commit. _Gone where that has happened."""
    for subject in sorted(about.subjects):
        if not await lock_owner(connection, space, subject):
            raise _Gone
    if about.conversation is not None:
        query = "SELECT true FROM conversations WHERE space_id = $1 AND id = $2 FOR KEY SHARE"
        if not await connection.fetchval(query, space, about.conversation):
            raise _Gone


def _check_version(before: Stored | None, said: Said) -> None:
    version, generation = (before.version, before.generation.hex) if before else (0, None)
    if said.if_generation is not None and said.if_generation != generation:
        raise Conflict(version, generation)
    if said.if_version is not None and said.if_version != version:
        raise Conflict(version, generation)


def _refused(before: Stored | None, reason: str) -> Outcome:
    if before is None:
        return Outcome(stored=False, version=0, generation=None, reason=reason)
    return Outcome(stored=False, version=before.version, generation=before.generation.hex, reason=reason)


def _untouched(before: Stored, change: Change) -> set[str]:
    return set() if change.whole else before.fields.keys() - change.sets.keys() - change.removes


def _fits(before: Stored | None, ready: _Ready, kind: StateType) -> bool:
    stays = {} if before is None else {name: before.fields[name].size for name in _untouched(before, ready.change)}
    sets = {name: shapes.size_of(name, told) for name, told in ready.told.items()}
    return shapes.size_of_all({**stays, **sets}) <= kind.max_bytes


def _kept(kind: StateType, name: str, told: str, key: SealingKey, at: datetime) -> Kept:
    term = kind.fields[name].term
    return Kept(key.seal(told, SEALED_FIELD), shapes.size_of(name, told), at, None if term is None else at + term)


def _again(kept: Kept, former: SealingKey, key: SealingKey) -> Any:
    return key.seal(former.open(kept.sealed, SEALED_FIELD), SEALED_FIELD)


async def _covered(
    body: Mapping[str, Any], personal: set[str], policy: Policy, known: Known, given: dict[str, str]
) -> Mapping[str, Any]:
    def one(text: str) -> str:
        return mask(text, policy, known, pseudonyms=given).text

    def all_of_them() -> Mapping[str, Any]:
        return {name: shapes.masked(value, one) if name in personal else value for name, value in body.items()}

    if sum(len(json.dumps(body[name])) for name in personal) > _IN_A_THREAD:
        return await asyncio.to_thread(all_of_them)
    return all_of_them()
