"""The migrations make what the models declare, guard what holds people's rows, and may be run again."""

from typing import TYPE_CHECKING, Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Text, text
from sqlmodel import AutoString, SQLModel

import models
from migrations.run import is_current, migrate

if TYPE_CHECKING:
    from jobs.resources import Resources

UNGUARDED = {
    "alembic_version": "holds a revision",
    "spaces": "read before a space is known",
    "api_keys": "read before a space is known",
    "work": "ids and numbers only, claimed over all spaces",
}


def declared() -> None:
    import importlib
    import pkgutil

    for module in pkgutil.iter_modules(models.__path__):
        importlib.import_module(f"models.{module.name}")


async def test_the_migrations_make_what_the_models_declare(resources: "Resources") -> None:
    declared()
    async with resources.database.engine.connect() as connection:
        differences = await connection.run_sync(_differences)
    assert differences == []


def _differences(connection: Any) -> list[str]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    found = compare_metadata(context, SQLModel.metadata)
    # A foreign key's ON DELETE and a plain index of it are the migration's to add; a missing table, column, type or
    # unique constraint is a fault.
    watched = {
        "add_table",
        "remove_table",
        "add_column",
        "remove_column",
        "modify_type",
        "modify_nullable",
        "add_index",
        "add_constraint",
    }
    flat = [step for one in found for step in (one if isinstance(one, list) else [one])]
    return [
        str(step) for step in flat if step[0] in watched and "alembic_version" not in str(step) and not _both_text(step)
    ]


def _both_text(step: Any) -> bool:
    return step[0] == "modify_type" and isinstance(step[-1], AutoString) and isinstance(step[-2], Text)


async def test_every_table_with_people_s_rows_has_a_forced_policy(resources: "Resources") -> None:
    async with resources.database.engine.connect() as connection:
        rows = await connection.execute(
            text(
                "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
                " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            )
        )
    guarded = dict(rows.all())
    assert {name for name, forced in guarded.items() if not forced} == set(UNGUARDED)


async def test_the_app_role_cannot_bypass_the_policies(resources: "Resources") -> None:
    async with resources.database.engine.connect() as connection:
        role = await connection.execute(
            text("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user")
        )
    assert role.one() == (False, False)


@pytest.mark.parametrize("_again", [1, 2])
async def test_migrating_again_changes_nothing(resources: "Resources", _again: int) -> None:
    stores = resources.settings.stores
    await migrate(stores.database_url.get_secret_value(), stores.keys_url.get_secret_value())
    assert await is_current(stores.database_url.get_secret_value())
