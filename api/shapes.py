"""What requests and answers are made of, as far as several routes share it."""

import re
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, get_args

from phonenumbers import SUPPORTED_REGIONS
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from api.problems import invalid
from intake.identity import Identity
from intake.kept_text import kept_id, storable
from models.subject import opaque


def _kept_id(value: Any) -> Any:
    # The same at write and read, so that what was written under an odd id is found under it again.
    return kept_id(value) if isinstance(value, str) else value


def _storable(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


AgentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$", max_length=128)]
AnyId = Annotated[str, BeforeValidator(_kept_id), StringConstraints(min_length=1, max_length=512)]
AnyText = Annotated[str, BeforeValidator(_storable), StringConstraints(min_length=1, max_length=4_000)]
Region = Annotated[str, WithJsonSchema({"type": "string", "enum": sorted(SUPPORTED_REGIONS)})]
Context = Literal["corporate", "personal"]
Switch = Literal["on", "off"]
TokenBudget = Annotated[int, Field(ge=1, le=1_000_000)]

_SLIP = re.compile(r"[a-z][A-Za-z_]{0,31}")
_MOST_NAMED = 10  # members that one refusal names


class Ask(BaseModel):
    """A request's body: types as JSON has them, and no member that nobody knows: a misspelt `no_memory` must not pass."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_only(cls, said: Any) -> Any:
        if isinstance(said, dict) and (unknown := said.keys() - _fields(cls)):
            taken = f"is not known here; taken are {', '.join(cls.model_fields)}"
            # A name that is none of ours may be anybody's words: only what can be a slip of the pen is repeated.
            places = {name if _SLIP.fullmatch(name) else "body" for name in unknown}
            raise invalid(*((place, taken) for place in sorted(places)[:_MOST_NAMED]))
        return {name: cls._whole(name, value) for name, value in said.items()} if isinstance(said, dict) else said

    @classmethod
    def _whole(cls, name: str, value: Any) -> Any:
        """In JSON 3.0 is the whole number 3, and some clients write it so."""
        if not isinstance(value, float) or not value.is_integer():
            return value
        taken = cls.model_fields[name].annotation
        takes_int = taken is int or any(one is int or int in get_args(one) for one in get_args(taken))
        return int(value) if takes_int else value


@cache
def _fields(ask: type[Ask]) -> frozenset[str]:
    return frozenset(ask.model_fields)


class LogAsk(Ask):
    """Names one of the caller's logs."""

    agent: AgentName
    context: Context = "corporate"


def one_of(*members: str) -> dict[str, Any]:
    """What a schema says where exactly one of these members, which may all be null, is to be there."""
    nothing = {"type": "null"}
    forms = [
        {
            "required": [one],
            "properties": {name: {} if name == one else nothing for name in members},
            "not": {"properties": {one: nothing}},
        }
        for one in members
    ]
    return {"oneOf": forms}


class ReaderIdentity(BaseModel):
    """Whose memory was read. It never tells whether that person is known."""

    kind: str
    ignored: list[str] = Field(description="Identity headers that this key may not use.")


class WriterIdentity(ReaderIdentity):
    """Whose memory was written, by the person's opaque id."""

    id: str


class Observer(BaseModel):
    """When the pending turns are observed: past `threshold` tokens, or at `flush_at`."""

    due: bool
    threshold: int
    flush_at: datetime | None


def reader(identity: Identity) -> ReaderIdentity:
    """As a read's answer tells it."""
    return ReaderIdentity(kind=identity.kind, ignored=list(identity.ignored))


def writer(identity: Identity) -> dict[str, Any]:
    """As a write's answer tells it; the fields of WriterIdentity, on the fast path."""
    owner = None if identity.owner is None else opaque(identity.owner)
    return {"kind": identity.kind, "ignored": identity.ignored, "id": owner}
