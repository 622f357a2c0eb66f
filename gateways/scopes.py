"""Which state does a scope name? Its id becomes a hash under each key of the space that made some."""

from gateways.key_store import KeyStore
from memory.state import ScopeKind
from models import state as states
from models.state import Place
from models.state_rules import Rules


class OtherScope(Exception):
    """The type's scope is another: `takes` is its kind."""

    def __init__(self, takes: ScopeKind) -> None:
        super().__init__(takes)
        self.takes = takes


async def place_of(keys: KeyStore, space: int, rules: Rules, named: tuple[ScopeKind, str], agent: str) -> Place:
    """The state of a scope (its kind and id) and an agent; OtherScope where the agent's type has another kind."""
    kind, scope = named
    if rules.type is not None and rules.type.scope is not kind:
        raise OtherScope(rules.type.scope)
    known = await keys.keys(rules.scope_keys)
    digests = tuple(states.scope_digest(known[one], kind, scope) for one in rules.scope_keys)
    return Place(space, kind, digests, agent)
