"""Who types a command, as receipts may tell it."""

import getpass

from cli.spaces import Place
from jobs.resources import Resources


async def actor(resources: Resources, place: Place) -> str:
    """An opaque id of the operating system's user, the same each time within a space."""
    key = await resources.keys.key(place.lookup_key)
    return f"cli:{key.digest(getpass.getuser(), 'cli/actor').hex()}"
