"""What agent memory's requests and answers are made of, and whose memory a request is about."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from api import problems
from api.auth import Caller
from api.problems import Problem
from api.shapes import AgentName, AnyId, Ask, one_of
from intake.kept_text import storable
from memory.note import LONGEST_BODY, LONGEST_TAG, LONGEST_TITLE, MOST_TAGS, Draft, NoteKind, Visibility, folded_tags
from models import note as notes
from models.api_key import Scope
from models.note import Evidence, Written


def _line(value: Any) -> Any:
    return " ".join(storable(value).split()) if isinstance(value, str) else value


def _text(value: Any) -> Any:
    return storable(value).strip() if isinstance(value, str) else value


def _folded(tags: list[str]) -> list[str]:
    return list(folded_tags(tags))


_NOT_BLANK = Field(json_schema_extra={"pattern": r"\S"})
Title = Annotated[str, BeforeValidator(_line), StringConstraints(min_length=1, max_length=LONGEST_TITLE), _NOT_BLANK]
Body = Annotated[str, BeforeValidator(_text), StringConstraints(min_length=1, max_length=LONGEST_BODY), _NOT_BLANK]
Tag = Annotated[str, BeforeValidator(_line), StringConstraints(min_length=1, max_length=LONGEST_TAG), _NOT_BLANK]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS), AfterValidator(_folded)]
Kind = Annotated[NoteKind, Field(strict=False)]
Seen = Annotated[Visibility, Field(strict=False, description="`space` becomes a proposal.")]
NoteId = Annotated[str, Path(pattern="^note_[0-9a-f]{32}$", description="As a list shows it: note_…")]
Status = Literal["active", "retired", "quarantined"]

_WHOSE = "Whose memory. A key of one agent may leave it out, and one that reviews: it sees all of the space."
AgentQuery = Annotated[AgentName | None, Query(description=_WHOSE)]


class Source(Ask):
    """Where a note comes from: one of the two. It is kept as a keyed hash."""

    conversation_id: AnyId | None = None
    task_id: AnyId | None = None

    model_config = ConfigDict(json_schema_extra=one_of("conversation_id", "task_id"))

    @model_validator(mode="after")
    def _one(self) -> "Source":
        if (self.conversation_id is None) == (self.task_id is None):
            raise problems.invalid(("evidence", "takes conversation_id or task_id"))
        return self

    @property
    def named(self) -> tuple[str, str]:
        """What it is, and its id."""
        return ("task", self.task_id) if self.conversation_id is None else ("conversation", self.conversation_id)  # type: ignore[return-value]  # one of them is there


class NoteAsk(Ask):
    """A new note."""

    agent: AgentName | None = Field(None, description="A key of one agent may leave it out.")
    kind: Kind
    title: Title
    body: Body
    tags: Tags = Field([])
    visibility: Seen = Visibility.SOURCE
    evidence: Source | None = None

    def draft(self) -> Draft:
        return Draft(self.kind, self.title, self.body, tuple(self.tags), self.visibility)


class Changes(Ask):
    """What is absent stays as it is."""

    kind: Kind | None = None
    title: Title | None = None
    body: Body | None = None
    tags: Tags | None = None
    visibility: Seen | None = None

    def changed(self) -> dict[str, Any]:
        """The members of a draft that are said."""
        said = {name: getattr(self, name) for name in Changes.model_fields if getattr(self, name) is not None}
        return said | ({"tags": tuple(self.tags)} if self.tags is not None else {})


class EditAsk(Changes):
    """`version`: the one that was read; 409 where another stands since."""

    agent: AgentName | None = None
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None

    @model_validator(mode="after")
    def _something(self) -> "EditAsk":
        if not self.changed():
            raise problems.invalid(("body", "takes one or more of kind, title, body, tags, visibility"))
        return self


class RetireAsk(Ask):
    """May be left out by a key of one agent."""

    agent: AgentName | None = None


class EvidenceShown(BaseModel):
    """Equal for notes of the same conversation or task; it leads to neither."""

    kind: Literal["conversation", "task"]
    id: str


class Said(BaseModel):
    """What a note says."""

    kind: NoteKind
    title: str
    body: str
    tags: list[str]
    visibility: Visibility


class Note(Said):
    """A note as it stands. `revised_at`: when this version was written."""

    id: str
    agent: str
    vendor: str | None = None
    status: Status
    version: int
    evidence: EvidenceShown | None = None
    created_at: datetime
    revised_at: datetime


class Created(Note):
    """`similar` are active notes that say nearly the same."""

    similar: list[str] = []


class Awaited(BaseModel):
    """It waits for a person."""

    proposal_id: str


def agent_of(caller: Caller, *named: str | None) -> str:
    """The agent that a request is about; 404 for another than the key's own, 422 where none is named."""
    agent = viewer_of(caller, *named)
    if agent is None:
        raise problems.invalid(("agent", "is missing"))
    return agent


def viewer_of(caller: Caller, *named: str | None) -> str | None:
    """As `agent_of`; None for a reviewer who names none."""
    own, asked = caller.credential.agent, next((name for name in named if name is not None), None)
    if asked is not None:
        caller.speak_for(asked, "corporate")
        return asked
    if own is not None:
        caller.speak_for(own, "corporate")
    elif Scope.AGENT_MEMORY_REVIEW not in caller.credential.scopes:
        raise problems.invalid(("agent", "is missing"))
    return own


def check_reviewer(caller: Caller) -> None:
    """A key of one agent never reviews, whatever its scopes say."""
    if caller.credential.agent is not None:
        scope = Scope.AGENT_MEMORY_REVIEW
        raise Problem(403, "scope_missing", "A key of one agent does not review", scope=scope)


def said(draft: Draft) -> dict[str, Any]:
    """As a draft's members are shown."""
    return {
        "kind": draft.kind,
        "title": draft.title,
        "body": draft.body,
        "tags": list(draft.tags),
        "visibility": draft.visibility,
    }


def evidence_shown(evidence: Evidence | None) -> dict[str, str] | None:
    """As where it comes from is shown."""
    return None if evidence is None else {"kind": evidence.kind, "id": f"evd_{evidence.digest.hex()}"}


def shown(note: Written) -> dict[str, Any]:
    """As a note is shown."""
    return {
        "id": notes.opaque(note.id),
        "agent": note.agent,
        "vendor": note.vendor,
        "status": note.status,
        "version": note.version,
        **said(note.draft),
        "evidence": evidence_shown(note.evidence),
        "created_at": note.created_at,
        "revised_at": note.revised_at,
    }
