"""/v1/exports: a package of everything about one person, asked for, watched and fetched."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from api import problems
from api.auth import Caller
from api.desk import AtDesk, Calling, Desk
from api.document import Header, opens
from api.door import Door
from api.shapes import AnyId, Ask
from models.api_key import Credential, Scope
from models.export_package import Package, opaque
from models.subject import HandleKind
from recall import export as exporting
from recall.export import NobodyThere

router = APIRouter(prefix="/v1/exports", route_class=Door, strict_content_type=False)

_Id = Annotated[str, Path(max_length=64, description="As the request was answered: exp_…")]
_IDEMPOTENCY = Header("Idempotency-Key", 255, "The same request again, with the same key, is the same export.")


class Named(Ask):
    """A person, by one of their handles."""

    handle_kind: Annotated[HandleKind, Field(strict=False)]
    handle: AnyId


class ExportAsk(Ask):
    """Whose package, and in which form."""

    subject: Named
    format: Literal["zip"] = "zip"


class Accepted(BaseModel):
    """It will be made."""

    id: str
    state: str


class Progress(BaseModel):
    """Rows that went in, and how many there are in all."""

    rows: int
    of: int


class Export(BaseModel):
    """`counts` are rows by data set, `bytes` the package's size, `as_of` the instant that it shows."""

    id: str
    state: Literal["accepted", "running", "ready", "expired", "failed", "cancelled"]
    progress: Progress | None = None
    counts: dict[str, int] | None = None
    bytes: int | None = None
    asked_at: datetime
    as_of: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None


@router.post("", status_code=202, **opens(Scope.OPERATOR, 404, 409, of_a_person=False, headers=[_IDEMPOTENCY]))
async def ask_for_export(ask: ExportAsk, request: Request, desk: AtDesk, caller: Calling) -> Accepted:
    """Has a package made of everything about one person, over all agents."""
    _check(caller)
    key = request.headers.get(_IDEMPOTENCY.name)
    if key is not None and not 0 < len(key) <= _IDEMPOTENCY.longest:
        raise problems.invalid((f"header.{_IDEMPOTENCY.name}", f"takes 1 to {_IDEMPOTENCY.longest} characters"))
    credential, handle = caller.credential, (ask.subject.handle_kind, ask.subject.handle)
    for _ in range(2):  # what this process knows of the handle may be of before an erasure
        subject = await desk.people.subject(credential.space, credential.lookup_key, handle, make=False)
        if subject is None:
            break
        asked = None if key is None else await _digest(desk, credential, key, subject)
        try:
            export, added = await exporting.ask(
                desk.resources, exporting.Request(credential.space, subject, credential.key_id, asked)
            )
        except NobodyThere:
            desk.people.forget(subject)
            continue
        desk.ring(added)
        state = "accepted" if added else (await exporting.find(desk.resources, credential.space, export)).state
        return Accepted(id=opaque(export), state=state)
    raise problems.not_found()


@router.get(
    "/{export_id}", response_model_exclude_none=True, **opens(Scope.OPERATOR, 404, 422, body=False, of_a_person=False)
)
async def look_at_export(export_id: _Id, desk: AtDesk, caller: Calling) -> Export:
    """How far it is."""
    _check(caller)
    return _shown(await exporting.find(desk.resources, caller.credential.space, _read(export_id)))


@router.get(
    "/{export_id}/package",
    response_class=StreamingResponse,
    **opens(Scope.OPERATOR, 404, 409, 422, body=False, of_a_person=False),
)
async def fetch_package(export_id: _Id, desk: AtDesk, caller: Calling) -> StreamingResponse:
    """The package, while it is ready. Each download leaves a receipt."""
    _check(caller)
    credential = caller.credential
    fetched = await exporting.fetch(desk.resources, credential.space, credential.key_id, _read(export_id))
    headers = {
        "Content-Length": str(fetched.package.size),
        "Content-Disposition": f'attachment; filename="{opaque(fetched.package.id)}.zip"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(fetched.content, media_type="application/zip", headers=headers)


def _check(caller: Caller) -> None:
    """A package holds what all agents know: a key of one agent is not for it."""
    if caller.credential.agent is not None:
        raise problems.not_found()


async def _digest(desk: Desk, credential: Credential, key: str, subject: UUID) -> bytes:
    space_key = await desk.resources.keys.key(credential.lookup_key)
    return space_key.digest(f"{credential.key_id}\0{key}\0{subject.hex}", "idempotency/exports")


def _read(export_id: str) -> UUID:
    try:
        export = UUID(hex=export_id.removeprefix("exp_"))
    except ValueError:
        raise problems.not_found() from None
    if opaque(export) != export_id:
        raise problems.not_found()
    return export


def _shown(package: Package) -> Export:
    running, ready = package.state == "running" and "of" in package.progress, package.state == "ready"
    return Export(
        id=opaque(package.id),
        state=package.state,  # type: ignore[arg-type]  # the table's own check
        progress=Progress(rows=package.progress["rows"], of=package.progress["of"]) if running else None,
        counts=dict(package.counts) if ready else None,
        bytes=package.size if ready else None,
        asked_at=package.created_at,
        as_of=package.as_of,
        finished_at=package.finished_at,
        expires_at=package.expires_at,
    )
