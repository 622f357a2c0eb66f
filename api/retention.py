"""/v1/policies/retention: how long each data set is kept."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, BeforeValidator, Field, create_model

from api.desk import AtDesk, Calling, Desk
from api.document import opens
from api.door import Door
from api.shapes import Ask
from models import receipt as receipts
from models import retention
from models.api_key import Scope
from models.database import driver
from models.kept import KEPT, Kept, written
from models.receipt import Receipt
from models.retention import Terms

_FORM = r"^(forever|\s*[0-9]{1,9}\s*[smhdSMHD]\s*)$"

router = APIRouter(prefix="/v1/policies/retention", route_class=Door, strict_content_type=False)


def _term(kept: Kept) -> Any:
    """A data set's member of the document."""
    form: Any = {"type": "string", "pattern": _FORM, "examples": ["30d", "12h", "forever"]}
    described = Field(default=kept.default, description=kept.says or None, json_schema_extra=form)
    return Annotated[timedelta | None, BeforeValidator(kept.term)], described


_SourceLoss = Literal["keep", "with_source"]


class _Asked(Ask):
    """The whole document: a data set that it does not name has its default, which is `forever` unless it says otherwise."""

    on_source_loss: _SourceLoss = Field("keep", description="Of observations.")


_SAID: Any = (str, ...)


class _Policy(BaseModel):
    """As durations; `version` is 0 until a document was set."""

    version: int
    on_source_loss: _SourceLoss


RetentionAsk = create_model(
    "RetentionAsk", __base__=_Asked, __doc__=_Asked.__doc__, **{name: _term(kept) for name, kept in KEPT.items()}
)
RetentionPolicy = create_model(
    "RetentionPolicy", __base__=_Policy, __doc__=_Policy.__doc__, **dict.fromkeys(KEPT, _SAID)
)


class Preview(BaseModel):
    """Rows that each data set would lose, on top of what is past its term already."""

    rows: dict[str, int]


@router.get("", response_model=RetentionPolicy, **opens(Scope.OPERATOR, body=False, of_a_person=False))
async def read_retention(desk: AtDesk, caller: Calling) -> _Policy:
    """The space's terms."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        terms, version = await retention.read(await driver(tx), space)
    return _policy(terms if version else Terms({_RECORDS: _deployments(desk)}), version)


@router.put("", response_model=RetentionPolicy, **opens(Scope.OPERATOR, of_a_person=False))
async def set_retention(ask: RetentionAsk, desk: AtDesk, caller: Calling) -> _Policy:  # type: ignore[valid-type]  # made above
    """Sets the terms. What they make too old is served to nobody from the answer on; what was too old stays so."""
    credential, terms = caller.credential, _terms(ask, desk)
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        version = await retention.change(connection, credential.space, terms)
        seconds = {name: int(term.total_seconds()) for name, term in terms.terms.items() if term is not None}
        await receipts.write(
            connection,
            Receipt(credential.space, credential.key_id, "retention.changed", {"version": version}, seconds),
        )
    return _policy(terms, version)


@router.post("/preview", **opens(Scope.OPERATOR, of_a_person=False))
async def preview_retention(ask: RetentionAsk, desk: AtDesk, caller: Calling) -> Preview:  # type: ignore[valid-type]  # as above
    """How many rows the terms would take. Nothing is changed."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        return Preview(rows=await retention.preview(await driver(tx), space, _terms(ask, desk)))


_RECORDS = "job_records"


def _deployments(desk: Desk) -> timedelta:
    return desk.resources.settings.workers.job_records


def _terms(ask: _Asked, desk: Desk) -> Terms:
    terms = {name: getattr(ask, name) for name in KEPT}
    if _RECORDS not in ask.model_fields_set:
        terms[_RECORDS] = _deployments(desk)
    return Terms(terms, ask.on_source_loss == "with_source")


def _policy(terms: Terms, version: int) -> _Policy:
    said = {name: written(terms.of(name)) for name in KEPT}
    loss = "with_source" if terms.with_source else "keep"
    return RetentionPolicy.model_validate({"version": version, "on_source_loss": loss, **said})
