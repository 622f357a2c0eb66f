"""What a process holds open: one frozen handful, made at the door and handed in."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from redis.asyncio import Redis

from config.settings import Privacy, Settings
from gateways import key_store
from gateways.analyzer import Analyzer
from gateways.key_store import KeyStore
from gateways.pace import Pace
from gateways.pace_rules import Limits
from gateways.package_store import PackageStore, open_store
from jobs.asking import Asker
from jobs.bell import Bell
from jobs.mind import Mind, awake
from jobs.start import once_up
from memory import observer
from models import database
from models.database import Database
from models.log import Rhythm
from models.patience import Patience

_BUILTIN_ROOM = 1_000_000  # tokens: the built-in model has no window


@dataclass(frozen=True, slots=True)
class Resources:
    """The stores of a process, and its settings; `analyzer` where a models layer is configured."""

    settings: Settings
    database: Database
    keys: KeyStore
    bell: Bell
    packages: PackageStore | None = None
    analyzer: Analyzer | None = None


@dataclass(frozen=True, slots=True)
class Workshop:
    """What the jobs work with. `asker` is None where the built-in model thinks, in `mind`; `room` is in tokens of turns."""

    settings: Settings
    database: Database
    keys: KeyStore
    bell: Bell
    rhythm: Rhythm
    asker: Asker | None
    mind: Mind
    room: int
    packages: PackageStore | None = None
    analyzer: Analyzer | None = None


def rhythm(settings: Settings) -> Rhythm:
    """When logs are due, by the settings."""
    return Rhythm(settings.memory.observer_threshold, settings.memory.observer_max_age)


@asynccontextmanager
async def opened(settings: Settings, *, within: timedelta = timedelta(0)) -> AsyncIterator[Resources]:
    """Opens the stores and closes them with the block. PostgreSQL must answer, `within` so long; Redis need not.

    WrongMasterKey when the key store was begun with another.
    """
    stores, patience = settings.stores, Patience.of(settings.stores.database_timeout)
    async with AsyncExitStack() as stack:
        data_url, keys_url = stores.database_url.get_secret_value(), stores.keys_url.get_secret_value()
        data = await once_up(
            "data",
            lambda: stack.enter_async_context(database.connect(data_url, size=stores.database_pool, patience=patience)),
            within,
        )
        keys = await once_up(
            "keys",
            lambda: stack.enter_async_context(
                key_store.connect(keys_url, stores.master(), stores.former_master(), patience=patience)
            ),
            within,
        )
        bell = Bell.connect(stores.redis_url.get_secret_value())
        stack.push_async_callback(bell.close)
        place = settings.packages.place()
        analyzer = _analyzer(settings.privacy)
        if analyzer is not None:
            stack.push_async_callback(analyzer.close)
        yield Resources(settings, data, keys, bell, None if place is None else open_store(place), analyzer)


def _analyzer(privacy: Privacy) -> Analyzer | None:
    url = privacy.pii_analyzer_url
    if url is None:
        return None
    return Analyzer(url.get_secret_value(), privacy.pii_analyzer_language, privacy.pii_analyzer_timeout.total_seconds())


@asynccontextmanager
async def furnished(resources: Resources) -> AsyncIterator[Workshop]:
    """Opens what only the jobs need: the way to the model."""
    settings, model = resources.settings, resources.settings.model
    async with AsyncExitStack() as stack:
        asker = None if model.builtin else await _asker(resources, stack)
        room = _BUILTIN_ROOM if asker is None else observer.room(model.model_window, model.model_max_output)
        mind = await stack.enter_async_context(awake())
        yield Workshop(
            settings,
            resources.database,
            resources.keys,
            resources.bell,
            rhythm(settings),
            asker,
            mind,
            room,
            resources.packages,
            resources.analyzer,
        )


async def _asker(resources: Resources, stack: AsyncExitStack) -> Asker:
    from gateways.model_server import ModelServer  # noqa: PLC0415 - half of a process's start, for those that need it

    model = resources.settings.model
    server = ModelServer(
        str(model.model_base_url),
        model.memory_worker_model,
        api_key=model.model_api_key.get_secret_value(),
        timeout=model.model_timeout.total_seconds(),
        window_tokens=model.model_window,
        max_output_tokens=model.model_max_output,
    )
    stack.push_async_callback(server.close)
    redis = Redis.from_url(resources.settings.stores.redis_url.get_secret_value())
    stack.push_async_callback(redis.aclose)
    limits = Limits(
        model.model_requests_per_minute,
        model.model_tokens_per_minute,
        probe_seconds=model.model_timeout.total_seconds() + 1,
    )
    # Workers that ask one model at one server share its pace; the name is hashed, for a URL may hold a secret.
    provider = hashlib.sha256(f"{model.model_base_url} {model.memory_worker_model}".encode()).hexdigest()[:16]
    pace = Pace(redis, provider, limits)
    return Asker(resources.database, server, pace, model.memory_worker_model, model.model_daily_tokens)
