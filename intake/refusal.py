"""What is personal in what an agent would remember? Kinds only: neither a value nor where it stood leaves this module.

Agent memory refuses personal data instead of masking it, whatever the space's rules of masking say.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog

from gateways.analyzer import AnalyzerAway
from intake.known_names import PERSON_NAME, kinds_found
from jobs.resources import Resources
from models import allowance, note_book
from models.allowance import Allotted
from models.database import driver
from models.note_book import Rules
from privacy.kind import PLACEHOLDER
from privacy.masking import mask
from privacy.policy import Policy, of_regions

_NAMES = {"PERSON": PERSON_NAME, "MASKED": "unreadable"}  # the latter: a text made to cost, which nobody looked through

_log = structlog.get_logger()


class PersonalData(Exception):
    """It holds what is personal: `kinds`, and nothing else about it."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        super().__init__(", ".join(kinds))
        self.kinds = kinds


class Exceeded(Exception):
    """A limit is passed: its name, its value, and, where it is one of an hour, the seconds until it is not."""

    def __init__(self, limit: str, maximum: int, wait: float | None = None) -> None:
        super().__init__(limit)
        self.limit, self.maximum, self.wait = limit, maximum, wait


@dataclass(frozen=True, slots=True)
class Look:
    """`kinds` in order. `complete`: every layer that is configured has looked."""

    kinds: tuple[str, ...]
    complete: bool = True


async def examine(resources: Resources, space: int, actor: str, texts: Sequence[str]) -> bool:
    """Whether every layer has looked and found nothing personal; False where one of them did not answer.

    PersonalData where something is, and Exceeded for a key that was refused too often within the hour, whatever it brings:
    its answers must not tell who is a customer.
    """
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        rules = await note_book.rules(connection, space)
        _check(await allowance.left(connection, space, actor, Allotted.REFUSALS, rules.refusals), rules)
    found = await look(resources, space, texts)
    if not found.kinds:
        return found.complete
    async with resources.database.begin(space) as tx:
        _check(await allowance.spend(await driver(tx), space, actor, Allotted.REFUSALS, rules.refusals), rules)
    _log.info("note_refused", space=space, key=actor, kinds=found.kinds)
    raise PersonalData(found.kinds)


def _check(wait: float | None, rules: Rules) -> None:
    if wait is not None:
        raise Exceeded("refusals_per_hour", rules.refusals, wait)


async def kinds_in(resources: Resources, space: int, text: str) -> tuple[str, ...]:
    """The kinds of personal data in a text, as a refusal names them; none: it may be kept."""
    return (await look(resources, space, (text,))).kinds


async def look(resources: Resources, space: int, texts: Sequence[str]) -> Look:
    """What is personal in texts that belong together: in each alone, and in all of them read as one."""
    async with resources.database.begin(space) as tx:
        rules = await note_book.rules(await driver(tx), space)
    whole = "\n".join(texts)
    found = await asyncio.to_thread(detected, (whole, *texts), _policy(resources, rules))
    found |= {*await kinds_found(resources.database, resources.keys, space, rules.lookup_key, whole)}
    named = await _named_by_model(resources, whole)
    return Look(tuple(sorted(found | {PERSON_NAME} if named else found)), complete=named is not None)


async def _named_by_model(resources: Resources, text: str) -> bool | None:
    """Whether the models layer sees a name in it; None where it does not answer, False where there is none."""
    if resources.analyzer is None:
        return False
    masked = [found.span() for found in PLACEHOLDER.finditer(text)]
    try:
        found = await resources.analyzer.persons(text)
    except AnalyzerAway as away:
        _log.warning("analyzer_away", why=str(away))
        return None
    return any(not any(start <= span.start and span.end <= end for start, end in masked) for span in found)


def _policy(resources: Resources, rules: Rules) -> Policy:
    return of_regions(rules.regions or resources.settings.privacy.phone_regions)


def detected(texts: Iterable[str], policy: Policy) -> set[str]:
    """The kinds that the local layer finds in texts, each by itself."""
    return {_named(span.kind) for text in texts for span in mask(text, policy).spans}


def _named(kind: str) -> str:
    """A kind as a refusal tells it: a person's name is one, whichever list it is on."""
    return _NAMES.get(kind) or kind.lower()
