"""/v1/policies/retention: how long each data set is kept."""

from datetime import timedelta
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, BeforeValidator, Field

from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.shapes import Ask
from config import duration
from models import receipt as receipts
from models import retention
from models.api_key import Scope
from models.database import driver
from models.receipt import Receipt
from models.retention import SHORTEST, Terms

router = APIRouter(prefix="/v1/policies/retention", route_class=Door, strict_content_type=False)


def _term(value: object) -> object:
    return None if value == "forever" else duration.at_least_a_second(duration.parse(value))


def _term_of_receipts(value: object) -> object:
    term = None if value == "forever" else duration.parse(value)
    if term is not None and term < SHORTEST["receipts"]:
        raise ValueError("receipts are kept for 365d or longer")
    return term


_FORM = {"type": "string", "examples": ["30d", "12h", "forever"]}
Term = Annotated[timedelta | None, BeforeValidator(_term), Field(json_schema_extra=_FORM)]
ReceiptTerm = Annotated[timedelta | None, BeforeValidator(_term_of_receipts), Field(json_schema_extra=_FORM)]


class RetentionAsk(Ask):
    """The whole document: a data set that it does not name is kept for ever."""

    turns: Term = None
    observations: Term = None
    generations: Term = None
    model_usage: Term = None
    receipts: ReceiptTerm = None
    on_source_loss: Literal["keep", "with_source"] = Field("keep", description="Of observations.")


class RetentionPolicy(BaseModel):
    """As durations; `version` is 0 until a document was set."""

    version: int
    turns: str
    observations: str
    generations: str
    model_usage: str
    receipts: str
    on_source_loss: Literal["keep", "with_source"]


class Preview(BaseModel):
    """Rows that each data set would lose, on top of what is past its term already."""

    rows: dict[str, int]


@router.get("", **opens(Scope.OPERATOR, body=False, of_a_person=False))
async def read_retention(desk: AtDesk, caller: Calling) -> RetentionPolicy:
    """The space's terms."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        terms, version = await retention.read(await driver(tx), space)
    return _policy(terms, version)


@router.put("", **opens(Scope.OPERATOR, of_a_person=False))
async def set_retention(ask: RetentionAsk, desk: AtDesk, caller: Calling) -> RetentionPolicy:
    """Sets the terms. What they make too old is served to nobody from the answer on; what was too old stays so."""
    credential, terms = caller.credential, _terms(ask)
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
async def preview_retention(ask: RetentionAsk, desk: AtDesk, caller: Calling) -> Preview:
    """How many rows the terms would take. Nothing is changed."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        return Preview(rows=await retention.preview(await driver(tx), space, _terms(ask)))


def _terms(ask: RetentionAsk) -> Terms:
    return Terms({name: getattr(ask, name) for name in retention.KEPT_SETS}, ask.on_source_loss == "with_source")


def _policy(terms: Terms, version: int) -> RetentionPolicy:
    said = {name: _written(terms.terms.get(name)) for name in retention.KEPT_SETS}
    return RetentionPolicy(version=version, on_source_loss="with_source" if terms.with_source else "keep", **said)


def _written(term: timedelta | None) -> str:
    if term is None:
        return "forever"
    seconds = int(term.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
