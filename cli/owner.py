"""Whose memory a command is about: a space, an agent, a context, and a person named as KIND:HANDLE."""

import re
from dataclasses import dataclass
from uuid import UUID

from cli import spaces
from cli.failure import Failed, WrongUse
from cli.spaces import Place
from intake.identity import Claim
from jobs.resources import Resources
from models.api_key import Credential, listed
from models.policy import rules
from models.subject import HandleKind

_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_LONGEST = 512  # characters of a handle
_NOBODY = UUID(int=0)  # a command always names its person, so its credential has no owner of its own


@dataclass(frozen=True, slots=True)
class Owner:
    """As the command line says it."""

    space: str
    agent: str
    person: str
    context: str

    def __post_init__(self) -> None:
        if self.context not in ("corporate", "personal"):
            raise WrongUse("--context takes corporate or personal")
        check_agent(self.agent, "--agent")
        self.handle()

    def handle(self) -> tuple[HandleKind, str]:
        """The person's handle; WrongUse when it cannot name anybody."""
        return named(self.person, "--as")

    def claim(self) -> Claim:
        """What a request by this person says."""
        return Claim(self.handle(), self.handle(), ())

    async def credential(self, resources: Resources, *, make: bool = False) -> Credential:
        """The operator's own credential in the space; with `make`, the space is made where it does not exist."""
        place = await (
            spaces.find_or_make(resources.database, resources.keys, self.space)
            if make
            else spaces.find(resources.database, self.space)
        )
        if self.context == "personal" and not place.contexts:
            raise WrongUse(f"the space {self.space} does not keep contexts apart: leave --context out")
        await _check_key(resources, place, *self.handle())
        return Credential(
            key_id="cli",
            space=place.id,
            lookup_key=place.lookup_key,
            scopes=frozenset(),
            agent=None,
            owner=_NOBODY,
            owner_kind=self.handle()[0],
            impersonates=False,
            contexts=place.contexts,
            rules=await rules(resources.database.pool, place.id),
        )


async def _check_key(resources: Resources, place: Place, kind: HandleKind, value: str) -> None:
    # A key's memory is the key's from its minting on; any other person may be met here for the first time.
    if kind is HandleKind.KEY and all(key["id"] != value for key in await listed(resources.database.pool, place.id)):
        raise Failed("the space has no key of the id that --as names: `afterturn keys list` shows them")


def named(person: str, option: str) -> tuple[HandleKind, str]:
    """A person as KIND:HANDLE; WrongUse when that cannot name anybody."""
    kind, _, value = person.partition(":")
    if kind not in set(HandleKind):
        raise WrongUse(f"{option} takes KIND:HANDLE, with a kind of {', '.join(HandleKind)}")
    return HandleKind(kind), checked(value, option)


def check_agent(name: str, option: str) -> None:
    """WrongUse for a name that no agent and no vendor can have: the API takes none either."""
    if not _AGENT.fullmatch(name):
        raise WrongUse(
            f"{option} takes letters, digits, dots, dashes, underscores and colons, at most 128, a letter or digit first"
        )


def checked(handle: str, option: str) -> str:
    """A handle that can name somebody; the message never quotes it."""
    value = handle.strip()
    if not value or len(value) > _LONGEST or not value.isprintable():
        raise WrongUse(f"{option} takes a handle of 1 to {_LONGEST} printable characters")
    return value
