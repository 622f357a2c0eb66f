"""A space's rules of masking and its switches, as they are stored: with the space, so that each look at a key sees them."""

import json
from collections.abc import Mapping
from typing import Any

from models.database import Connection
from privacy.policy import Policy
from privacy.sealing import SealingKey

# Of a space `s`: what masking goes by, as text; empty where the space set nothing.
RULES = """CASE WHEN s.masking = '{}' AND NOT s.features ? 'phone_regions' THEN '' ELSE
       jsonb_build_object('masking', s.masking, 'regions', s.features->'phone_regions')::text END"""


def masking(rules: str, key: SealingKey, default: Policy) -> Policy:
    """The rules of masking in what `rules` answers. `key` is the space's: hashes and pseudonyms are its own."""
    if not rules:
        return default
    said = json.loads(rules)
    regions = said["regions"] or [*default.regions]
    return checked({"regions": regions} | said["masking"], key)


def checked(document: object, key: SealingKey) -> Policy:
    """The rules in a document. PolicyError names what is wrong with it."""
    return Policy.from_document(document, key=key.digest("hash", "masking"))


async def rules(connection: Connection, space: int) -> str:
    """What the space's masking goes by, for `masking`."""
    found: str = await connection.fetchval(f"SELECT {RULES} FROM spaces s WHERE s.id = $1", space)  # noqa: S608 - a constant
    return found


async def change_masking(connection: Connection, space: int, document: Mapping[str, Any]) -> int:
    """Sets the whole document; answers its version, one more than the last."""
    version: int = await connection.fetchval(
        """
        UPDATE spaces SET masking = $2::text::jsonb
            || jsonb_build_object('version', coalesce((masking->>'version')::bigint, 0) + 1)
        WHERE id = $1 RETURNING (masking->>'version')::bigint
        """,
        *(space, json.dumps(dict(document))),
    )
    return version


async def features(connection: Connection, space: int) -> dict[str, Any]:
    """The switches that were ever set."""
    found: dict[str, Any] = json.loads(
        await connection.fetchval("SELECT features::text FROM spaces WHERE id = $1", space)
    )
    return found


async def change_features(connection: Connection, space: int, said: Mapping[str, Any]) -> dict[str, Any]:
    """Sets the switches that are said, and leaves the others; answers all that are set."""
    found: dict[str, Any] = json.loads(
        await connection.fetchval(
            "UPDATE spaces SET features = features || $2::text::jsonb WHERE id = $1 RETURNING features::text",
            *(space, json.dumps(dict(said))),
        )
    )
    return found
