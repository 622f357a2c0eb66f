"""POST /v1/turns: a conversation's new turns, committed before the answer."""

from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field, WithJsonSchema, model_validator
from starlette.datastructures import Headers

from api import problems
from api.desk import caller_of, desk_of
from api.document import Header, opens
from api.door import Door, ReadRequest
from api.shapes import AnyId, LogAsk, Observer, Switch, WriterIdentity, writer
from intake.accept import Accepted, Said
from intake.messages import InvalidMessage, Limits, Message, read
from models.api_key import Scope

PATH = "/v1/turns"

router = APIRouter(route_class=Door, strict_content_type=False)

_MESSAGE = {
    "type": "object",
    "description": "An OpenAI chat message as it is. Members that are not named here are left out, not refused.",
    "required": ["role"],
    "anyOf": [{"required": [one]} for one in ("content", "tool_calls", "refusal", "audio", "function_call")],
    "properties": {
        "id": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": 512,
            "description": "Your message id: sent again, it is a duplicate.",
        },
        "role": {"enum": ["user", "assistant", "system", "developer", "tool"]},
        "content": {
            "description": "Text, or parts: text is kept, images, audio and files leave a marker.",
            "anyOf": [{"type": "string"}, {"type": "null"}, {"type": "array", "items": {"type": "object"}}],
        },
        "at": {
            "type": ["string", "null"],
            "format": "date-time",
            "description": "When it was spoken. Without it: now.",
        },
        "name": {"type": ["string", "null"], "maxLength": 512},
        "tool_calls": {"type": ["array", "null"], "items": {"type": "object"}},
        "tool_call_id": {"type": "string"},
    },
}


class TurnsAsk(LogAsk):
    """New turns of one conversation, in order."""

    conversation_id: AnyId | None = Field(None, description="Also taken from metadata.conversation_id.")
    metadata: dict[str, Any] | None = None
    task_id: AnyId | None = None
    no_memory: bool = Field(default=False, description="Kept for replay, and never observed.")
    turns: list[Annotated[Any, WithJsonSchema(_MESSAGE)]] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _named_in_metadata(cls, said: Any) -> Any:
        if isinstance(said, dict) and said.get("conversation_id") is None and isinstance(said.get("metadata"), dict):
            return said | {"conversation_id": said["metadata"].get("conversation_id")}
        return said


class TurnsTaken(BaseModel):
    """What became of the turns; `pending_tokens` are the log's."""

    accepted: int
    duplicates: int
    memory: Switch
    memory_identity: WriterIdentity
    pending_tokens: int
    observer: Observer


_IDEMPOTENCY = Header("Idempotency-Key", 255, "Makes the whole call idempotent where turns have no id.")


@router.post(
    PATH,
    status_code=202,
    response_model=TurnsTaken,
    **opens(Scope.TURNS_WRITE, 409, body=TurnsAsk, headers=[_IDEMPOTENCY]),
)
async def take_turns(request: ReadRequest) -> Response:
    """Takes the turns of one conversation. The same message id again is a duplicate, also when two calls race."""
    # The hot route does by hand what FastAPI would do for it: a test holds it to what the document says.
    desk, caller = desk_of(request), caller_of(request)
    ask = request.read_as(TurnsAsk)
    caller.speak_for(ask.agent, ask.context)
    said = _said(ask, desk.limits, _idempotency_key(request.headers))
    accepted = await desk.intake.accept(caller.credential, caller.claim, said)
    desk.meters.count_turns(accepted.took.accepted, accepted.took.duplicates)
    desk.meters.count_ignored(accepted.identity.ignored)
    body = pydantic_core.to_json(_taken(accepted, desk.intake.rhythm.threshold, on=desk.intake.memory_on))
    return Response(body, status_code=202, media_type="application/json")


def _idempotency_key(headers: Headers) -> str | None:
    key = headers.get(_IDEMPOTENCY.name)
    if key is not None and not 0 < len(key) <= _IDEMPOTENCY.longest:
        raise problems.invalid((f"header.{_IDEMPOTENCY.name}", f"takes 1 to {_IDEMPOTENCY.longest} characters"))
    return key


def _said(ask: TurnsAsk, limits: Limits, idempotency_key: str | None) -> Said:
    if ask.conversation_id is None:
        raise problems.invalid(("conversation_id", "is missing"))
    if len(ask.turns) > limits.turns:
        raise problems.too_large("turns", limits.turns)
    return Said(
        agent=ask.agent,
        conversation_id=ask.conversation_id,
        messages=[_message(raw, index, limits) for index, raw in enumerate(ask.turns)],
        context=ask.context,
        task_id=ask.task_id,
        no_memory=ask.no_memory,
        idempotency_key=idempotency_key,
    )


def _message(raw: Any, index: int, limits: Limits) -> Message:
    try:
        return read(raw, limits)
    except InvalidMessage as error:
        place = f"turns[{index}]"
        raise InvalidMessage(f"{place}.{error.path}" if error.path else place, error.why) from None


def _taken(accepted: Accepted, threshold: int, *, on: bool) -> dict[str, Any]:
    took = accepted.took
    return {
        "accepted": took.accepted,
        "duplicates": took.duplicates,
        "memory": "on" if on else "off",
        "memory_identity": writer(accepted.identity),
        "pending_tokens": took.pending_tokens,
        "observer": {"due": accepted.due, "threshold": threshold, "flush_at": accepted.flush_at},
    }
