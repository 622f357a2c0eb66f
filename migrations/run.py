"""Brings both databases to this release's schema, forward only, one process at a time."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from models.database import sqlalchemy_url

_HERE = Path(__file__).parent
_LOCK = 0x41667465  # "Afte": whoever else migrates waits


async def migrate(database_url: str, keys_url: str) -> None:
    """Runs what is missing in the key store, then in the data database."""
    await _upgrade(keys_url, "keys")
    await _upgrade(database_url, "data")


async def is_current(database_url: str) -> bool:
    """Whether the data database stands at this release's schema."""
    newest = ScriptDirectory.from_config(_config("data")).get_current_head()
    engine = create_async_engine(sqlalchemy_url(database_url))
    try:
        async with engine.connect() as connection:
            made = await connection.scalar(text("SELECT to_regclass('alembic_version') IS NOT NULL"))
            return bool(made and await connection.scalar(text("SELECT version_num FROM alembic_version")) == newest)
    finally:
        await engine.dispose()


async def _upgrade(url: str, which: str) -> None:
    engine = create_async_engine(sqlalchemy_url(url))
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
            await connection.commit()
            await connection.run_sync(_run, which)
            await connection.commit()
    finally:
        await engine.dispose()  # the lock goes with its connection


def _run(connection: Connection, which: str) -> None:
    config = _config(which)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _config(which: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.set_main_option("version_locations", str(_HERE / which).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    return config
