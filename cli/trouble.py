"""What an error of a library means to an operator, in one line that quotes nothing of anybody's."""

from pathlib import Path

import asyncpg
import redis.exceptions
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError

from cli.failure import Ended
from config.settings import WrongSetting
from gateways.embedded_folder import EmbeddedServerError
from gateways.key_store import KeyGone
from privacy.sealing import Unreadable

UNANSWERED = (OSError, TimeoutError, asyncpg.InterfaceError, redis.exceptions.ConnectionError)


def explained(error: BaseException) -> tuple[str, int]:
    """The line, and the exit code: 2 for what the environment says wrongly, else 1."""
    if isinstance(error, BaseExceptionGroup):
        return explained(error.exceptions[0])
    if isinstance(error, DBAPIError) and error.orig is not None:
        return explained(error.orig.__cause__ or error.orig)
    if isinstance(error, WrongSetting):
        return str(error), 2
    if isinstance(error, Ended):
        return str(error), error.exit_code
    if isinstance(error, EmbeddedServerError):
        return str(error), 1
    return _sentence(error), 1


def _sentence(error: BaseException) -> str:
    for kinds, sentence in _SENTENCES:
        if isinstance(error, kinds):
            return sentence.format(name=type(error).__name__, state=getattr(error, "sqlstate", ""))
    return f"unexpected {type(error).__name__} {_place(error)}"


_SENTENCES: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    (
        (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError),
        "the database has not this release's schema: run `afterturn migrate`",
    ),
    (
        (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError),
        "PostgreSQL refuses the user or the password of DATABASE_URL or AFTERTURN_KEYS_URL",
    ),
    (
        (asyncpg.InvalidCatalogNameError,),
        "PostgreSQL has no database of the name in DATABASE_URL or AFTERTURN_KEYS_URL",
    ),
    ((asyncpg.PostgresError,), "PostgreSQL refused: {name} ({state})"),
    (
        (OSError, TimeoutError, asyncpg.InterfaceError),
        "a server does not answer ({name}): `afterturn doctor` says which",
    ),
    ((RedisError,), "Redis refused: {name}"),
    (
        (KeyGone, Unreadable),
        "the key store does not open this space: it, or AFTERTURN_MASTER_KEY, belongs to another deployment",
    ),
)


def _place(error: BaseException) -> str:
    step = error.__traceback__
    if step is None:
        return ""
    while step.tb_next is not None:
        step = step.tb_next
    return f"at {Path(step.tb_frame.f_code.co_filename).name}:{step.tb_lineno}"
