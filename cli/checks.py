"""The checks of `afterturn doctor`: each looks at one thing, and says what to do when that is wrong."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import asyncpg
from redis.asyncio import Redis

from cli.trouble import UNANSWERED, explained
from config.settings import Settings
from gateways import key_store, ledger
from gateways.analyzer import PROBE, Analyzer, AnalyzerAway
from gateways.model_server import ModelServer
from memory.outcome import Answer, Outcome, Prompt
from migrations.run import is_current
from models import database

_WITHIN = 10.0  # seconds for one check, but for the model's
_SKEW = 2.0  # seconds between two clocks that are worth a word
_LITTLE = 1 << 30  # bytes
_OLDEST_POSTGRESQL, _OLDEST_REDIS = 14, 6


class State(StrEnum):
    FINE = "ok"
    DOUBTFUL = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `do` is what would put it right, empty where nothing is wrong."""

    check: str
    state: State
    says: str
    do: str = ""


Check = Callable[[Settings], Awaitable[Finding]]


async def guarded(name: str, check: Check, settings: Settings) -> Finding:
    """The check's finding; what it raises is one too."""
    limit = _WITHIN + (settings.model.model_timeout.total_seconds() if name == "model" else 0)
    try:
        async with asyncio.timeout(limit):
            return await check(settings)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in a check is what the check found
        return Finding(name, State.WRONG, _says(error), _REMEDIES[name])


def disk(folder: Path) -> Finding:
    """Whether there is room left where the data folder lies."""
    free = shutil.disk_usage(folder).free
    says = f"{free / (1 << 30):.1f} GiB free in {folder}"
    if free < _LITTLE:
        return Finding("disk", State.WRONG, says, "make room: PostgreSQL stops when the disk is full")
    return Finding("disk", State.FINE, says)


async def _data(settings: Settings) -> Finding:
    async with _connected(_data_url(settings)) as db:
        major = db.get_server_version().major
        local = datetime.now(UTC)
        skew = abs((await db.fetchval("SELECT clock_timestamp()") - local).total_seconds())
    if major < _OLDEST_POSTGRESQL:
        return Finding(
            "data", State.WRONG, f"PostgreSQL {major}", f"PostgreSQL {_OLDEST_POSTGRESQL} or newer is needed"
        )
    if skew > _SKEW:
        told = f"PostgreSQL {major} answers; its clock is {skew:.0f} s away from this one"
        return Finding(
            "data", State.DOUBTFUL, told, "let both follow a time server: turns without a time get this one's"
        )
    return Finding("data", State.FINE, f"PostgreSQL {major} answers, its clock agrees")


async def _role(settings: Settings) -> Finding:
    async with _connected(_data_url(settings)) as db:
        query = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        exempt = await db.fetchval(query)
    if exempt:
        told = "the role of DATABASE_URL is a superuser, or has BYPASSRLS: row-level security does not bind it"
        return Finding("role", State.WRONG, told, "give it a role with NOSUPERUSER NOBYPASSRLS that owns the database")
    return Finding("role", State.FINE, "row-level security binds the role of DATABASE_URL")


async def _schema(settings: Settings) -> Finding:
    if await is_current(_data_url(settings)):
        return Finding("schema", State.FINE, "the data database has this release's schema")
    return Finding(
        "schema", State.WRONG, "the data database has another schema than this release's", "`afterturn migrate`"
    )


async def _keys(settings: Settings) -> Finding:
    url = settings.stores.keys_url.get_secret_value()
    advice = "AFTERTURN_KEYS_URL takes another database, on another server where there is one: no dump may hold both"
    async with _connected(_data_url(settings)) as data, _connected(url) as keys:
        place = "SELECT (SELECT system_identifier FROM pg_control_system()), current_database()"
        (server, database), (keys_server, keys_database) = await data.fetchrow(place), await keys.fetchrow(place)
    if (server, database) == (keys_server, keys_database) or await key_store.holds_data(url):
        return Finding("keys", State.WRONG, "the key store is the data database", advice)
    if server == keys_server:
        return Finding("keys", State.DOUBTFUL, "the key store is on the data's own server: their WAL is one", advice)
    return Finding("keys", State.FINE, "the key store is apart from the data")


async def _master_key(settings: Settings) -> Finding:
    url = settings.stores.keys_url.get_secret_value()
    stores = settings.stores
    async with key_store.connect(url, stores.master(), stores.former_master(), size=1) as store:
        some = await store.pool.fetchval("SELECT id FROM wrapped_keys LIMIT 1")
        if some is not None:
            await store.key(some)
    return Finding("master key", State.FINE, "the master key is the key store's own")


async def _erasures(settings: Settings) -> Finding:
    stores = settings.stores
    keys_url = stores.keys_url.get_secret_value()
    async with (
        key_store.connect(keys_url, stores.master(), stores.former_master(), size=1) as keys,
        database.connect(_data_url(settings), size=1) as data,
    ):
        lacking = len(await ledger.missing(keys, data))
    if lacking:
        told = f"the data are from before {lacking} erasures: nothing is served"
        return Finding("erasures", State.WRONG, told, _REMEDIES["erasures"])
    return Finding("erasures", State.FINE, "the data hold every erasure of the ledger")


async def _redis(settings: Settings) -> Finding:
    redis = Redis.from_url(settings.stores.redis_url.get_secret_value(), socket_connect_timeout=_WITHIN)
    try:
        info = await redis.info()
    finally:
        await redis.aclose()
    version = str(info.get("valkey_version") or info["redis_version"])
    name = "Valkey" if "valkey_version" in info else "Redis"
    if int(version.partition(".")[0]) < _OLDEST_REDIS:
        return Finding("redis", State.WRONG, f"{name} {version}", f"version {_OLDEST_REDIS} or newer is needed")
    policy = info.get("maxmemory_policy", "unknown")
    if policy != "noeviction":
        told = f"{name} {version} answers; its maxmemory-policy is {policy}, so it may drop what was rung"
        return Finding("redis", State.DOUBTFUL, told, "set `maxmemory-policy noeviction`")
    return Finding("redis", State.FINE, f"{name} {version} answers, and evicts nothing")


async def _model(settings: Settings) -> Finding:
    model = settings.model
    if not settings.memory.observational_memory:
        told = "observational memory is off: turns are kept, nothing is observed"
        return Finding("model", State.DOUBTFUL, told, "AFTERTURN_OBSERVATIONAL_MEMORY=1 turns it on")
    if model.builtin:
        return Finding("model", State.FINE, "the built-in model works here, offline")
    answer = await _asked(settings)
    if answer.outcome is Outcome.OK:
        return Finding("model", State.FINE, f"{model.memory_worker_model} answers at {model.model_base_url}")
    told = f"{model.memory_worker_model} at {model.model_base_url}: {answer.outcome} {answer.detail}".rstrip()
    return Finding("model", State.WRONG, told, _REMEDIES["model"])


async def _names(settings: Settings) -> Finding:
    privacy = settings.privacy
    if privacy.pii_analyzer_url is None:
        return Finding("names", State.FINE, "no models layer: registered names, and names beside a cue, are masked")
    limit = privacy.pii_analyzer_timeout.total_seconds()
    analyzer = Analyzer(privacy.pii_analyzer_url.get_secret_value(), privacy.pii_analyzer_language, limit)
    try:
        await analyzer.persons(PROBE)
    except AnalyzerAway as away:
        return Finding("names", State.WRONG, f"the models layer: {away}", _REMEDIES["names"])
    finally:
        await analyzer.close()
    return Finding("names", State.FINE, f"the models layer answers in {privacy.pii_analyzer_language}")


async def _asked(settings: Settings) -> Answer:
    model = settings.model
    server = ModelServer(
        str(model.model_base_url),
        model.memory_worker_model,
        api_key=model.model_api_key.get_secret_value(),
        timeout=model.model_timeout.total_seconds(),
        window_tokens=model.model_window,
        max_output_tokens=model.model_max_output,
    )
    schema = {
        "type": "object",
        "properties": {"ready": {"type": "boolean"}},
        "required": ["ready"],
        "additionalProperties": False,
    }
    try:
        return await server.ask(Prompt("Answer in JSON.", 'Answer {"ready": true}.', schema, "ready", 50))
    finally:
        await server.close()


CHECKS: Mapping[str, Check] = {
    "data": _data,
    "role": _role,
    "schema": _schema,
    "keys": _keys,
    "master key": _master_key,
    "erasures": _erasures,
    "redis": _redis,
    "model": _model,
    "names": _names,
}

# What a check cannot find out without another one's having gone well.
NEEDS: Mapping[str, str] = {
    "role": "data",
    "schema": "data",
    "keys": "data",
    "master key": "keys",
    "erasures": "master key",
}

_REMEDIES: Mapping[str, str] = {
    "data": "is DATABASE_URL right, and PostgreSQL up?",
    "role": "is DATABASE_URL right, and PostgreSQL up?",
    "schema": "`afterturn migrate`",
    "keys": "is AFTERTURN_KEYS_URL right, and PostgreSQL up there?",
    "master key": "put the master key back that this deployment began with",
    "erasures": "`afterturn migrate --replay-erasures`",
    "redis": "is REDIS_URL right, and Redis up? Until then work starts a little later, and nothing is lost",
    "model": "are AFTERTURN_MODEL_BASE_URL, AFTERTURN_MODEL_API_KEY and AFTERTURN_MEMORY_WORKER_MODEL right?",
    "names": "is AFTERTURN_PII_ANALYZER_URL right, and has it a model for AFTERTURN_PII_ANALYZER_LANGUAGE? Until then turns wait",
}


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url, timeout=_WITHIN)
    try:
        yield connection
    finally:
        await connection.close()


def _data_url(settings: Settings) -> str:
    return settings.stores.database_url.get_secret_value()


def _says(error: Exception) -> str:
    return f"does not answer ({type(error).__name__})" if isinstance(error, UNANSWERED) else explained(error)[0]
