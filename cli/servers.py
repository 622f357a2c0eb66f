"""Which servers does a command talk to? Those of the data folder where `up` runs, else those of the environment."""

import contextlib
import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, SecretStr, TypeAdapter

from cli.failure import Failed
from config.settings import Settings, WrongSetting, default_data_dir, load, variable

_FILE = "servers.json"


@dataclass(frozen=True, slots=True)
class Servers:
    """What `up` runs. `environment` is how its processes are set besides. It holds secrets, and so does its file."""

    url: str
    database_url: str
    redis_url: str
    keys_url: str
    master_key_file: str
    environment: dict[str, str]
    former_key_file: str | None = None


_SERVERS = TypeAdapter(Servers)


def settings(data_dir: Path | None) -> Settings:
    """The settings of a command. Raises WrongSetting, or Failed for a folder whose servers.json cannot be read."""
    servers = read(data_dir) if data_dir else None
    if servers is not None:
        return _settings_of(servers)
    try:
        return load()
    except WrongSetting as error:
        servers = None if data_dir else read(default_data_dir())
        if servers is not None:
            return _settings_of(servers)
        raise _helped(error, data_dir) from None


def read(folder: Path) -> Servers | None:
    """What runs in a data folder; None where nothing does."""
    try:
        return _SERVERS.validate_json((folder / _FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise Failed(f"{folder / _FILE} cannot be read ({type(error).__name__}): start `afterturn up` again") from None


@contextlib.contextmanager
def announced(folder: Path, servers: Servers) -> Iterator[None]:
    """Says in the folder what runs there, as long as the block lasts."""
    write_private(folder / _FILE, json.dumps(asdict(servers), indent=2) + "\n")
    try:
        yield
    finally:
        (folder / _FILE).unlink(missing_ok=True)


def environment(settings: Settings, *, stores: bool = True) -> dict[str, str]:
    """Settings as the environment variables that give them again, with or without where the stores are."""
    concerns = [name for name in Settings.model_fields if stores or name != "stores"]
    parts: list[BaseModel] = [getattr(settings, name) for name in concerns]
    values = {name: getattr(part, name) for part in parts for name in type(part).model_fields}
    # The prefixed names come first at the door, so that no usual DATABASE_URL of the shell gets in between.
    usual = {variable("database_url"): "AFTERTURN_DATABASE_URL", variable("redis_url"): "AFTERTURN_REDIS_URL"}
    return {
        usual.get(variable(name), variable(name)): _text(value) for name, value in values.items() if value is not None
    }


def write_private(file: Path, text: str) -> None:
    """Writes a file that only its owner reads, whole or not at all."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(text)
        written.flush()
        os.fsync(written.fileno())
    fresh.rename(file)


def _settings_of(servers: Servers) -> Settings:
    # What this shell says of a setting stands; what it does not say is as `up` has it.
    for name, value in servers.environment.items():
        os.environ.setdefault(name, value)
    return load(
        database_url=servers.database_url,
        redis_url=servers.redis_url,
        keys_url=servers.keys_url,
        master_key_file=servers.master_key_file,
        master_key_previous_file=_still_there(servers.former_key_file),
    )


def _still_there(file: str | None) -> str | None:
    # Once the rotation is through the former key is taken away, and `up` may not have been started again yet.
    return file if file and Path(file).exists() else None


def _helped(error: WrongSetting, folder: Path | None) -> WrongSetting:
    if not str(error).endswith("is not set"):
        return error
    start = f"start `afterturn up{f' --data-dir {shlex.quote(str(folder))}' if folder else ''}`"
    where = f"nothing runs in {folder}: {start}" if folder else start
    return WrongSetting(f"{error}, and {where}" if folder else f"{error}: set it, or {where}")


def _text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, timedelta):
        return f"{int(value.total_seconds())}s"
    return json.dumps(value) if isinstance(value, tuple) else str(value)
