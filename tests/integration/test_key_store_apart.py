"""Keys and text must not share a dump: a key store that is the data database stops every process at its start."""

import os
from typing import TYPE_CHECKING

import pytest

from tests import forked

if TYPE_CHECKING:
    from config.settings import Settings


@pytest.mark.parametrize(
    "command", [("api.__main__",), ("scheduler.__main__", "worker"), ("scheduler.__main__", "scheduler")]
)
def test_a_process_refuses_a_key_store_that_holds_the_data(settings: "Settings", command: tuple[str, ...]) -> None:
    stores = settings.stores
    data = stores.database_url.get_secret_value()
    environment = {
        **os.environ,
        "DATABASE_URL": data,
        "AFTERTURN_KEYS_URL": data,
        "REDIS_URL": stores.redis_url.get_secret_value(),
        "AFTERTURN_MASTER_KEY": stores.master_key.get_secret_value() if stores.master_key else "",
    }
    ended = forked.run(command, environment)
    assert ended.returncode == 2
    assert ended.stderr.strip().splitlines() == [
        "afterturn: AFTERTURN_KEYS_URL names the data database: keys and text must not share a dump"
    ]
