"""Every setting, one class per concern, read from the environment once and handed in from there.

`docs/configuration.md` is generated from this file by `python -m config`.
"""

import base64
import binascii
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AliasChoices, BaseModel, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from config.duration import Duration, at_least_a_second
from config.package_place import BucketPlace, FolderPlace, place

BUILTIN = "builtin:extractive"


class Concern(BaseSettings):
    """What all concerns share: the prefix, `.env`, and silence about secrets."""

    model_config = SettingsConfigDict(env_prefix="AFTERTURN_", env_file=".env", extra="ignore", frozen=True)


class Stores(Concern):
    """Where things are kept."""

    database_url: SecretStr = Field(
        validation_alias=AliasChoices("AFTERTURN_DATABASE_URL", "DATABASE_URL"),
        description="The data database: postgresql://user:password@host/name.",
    )
    redis_url: SecretStr = Field(
        validation_alias=AliasChoices("AFTERTURN_REDIS_URL", "REDIS_URL"),
        description="Redis or Valkey, the bell: redis://host:6379/0, rediss://… or unix:///path.",
    )
    keys_url: SecretStr = Field(
        description="The key store: another PostgreSQL database than the data, so that no dump holds both."
    )
    master_key: SecretStr | None = Field(
        None, description="32 bytes, base64: wraps the key of every person. Keep it outside both databases."
    )
    master_key_file: Path | None = Field(None, description="A file that holds the master key, instead of the variable.")
    master_key_previous: SecretStr | None = Field(
        None, description="The master key before, until `afterturn keys rotate-master` is through."
    )
    master_key_previous_file: Path | None = Field(None, description="A file that holds it, instead of the variable.")
    database_pool: int = Field(10, ge=2, le=200, description="Connections of each process to the data database.")
    database_timeout: Duration = Field(
        timedelta(seconds=10),
        description="How long one statement may take before a request or a job gives up; what is made to take long has no such limit.",
    )
    start_within: Duration = Field(
        timedelta(seconds=60), description="How long a process that starts waits for PostgreSQL before it gives up."
    )

    @field_validator("database_timeout")
    @classmethod
    def _some_time(cls, value: timedelta) -> timedelta:
        return at_least_a_second(value)

    @field_validator("database_url", "keys_url")
    @classmethod
    def _postgresql(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("takes a URL that begins with postgresql://")
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("takes a URL that begins with redis://, rediss:// or unix://")
        return value

    def master(self) -> bytes:
        """The 32 bytes of the deployment's key; WrongSetting when there are none."""
        key = _key("AFTERTURN_MASTER_KEY", self.master_key, self.master_key_file)
        if key is None:
            raise WrongSetting("AFTERTURN_MASTER_KEY is not set: it takes 32 random bytes in base64")
        return key

    def former_master(self) -> bytes | None:
        """The 32 bytes of the deployment's key before, while it is rotated."""
        return _key("AFTERTURN_MASTER_KEY_PREVIOUS", self.master_key_previous, self.master_key_previous_file)


class Http(Concern):
    """How the API listens, and what it takes at most."""

    host: str = Field("127.0.0.1", description="The address that the API binds.")
    port: int = Field(8321, ge=1, le=65535, description="The port that the API binds.")
    max_body: int = Field(1024 * 1024, ge=1024, description="Bytes of one request's body.")
    max_turns: int = Field(500, ge=1, description="Turns in one call.")
    max_turn: int = Field(256 * 1024, ge=1024, description="Bytes of text in one turn.")
    max_head: int = Field(32 * 1024, ge=1024, description="Bytes of a request's first line and headers.")
    read_within: Duration = Field(
        timedelta(seconds=30), description="How long a request may take to arrive, from its first byte to its last."
    )
    mcp_hosts: str | None = Field(
        None, description="Names besides localhost under which /mcp is reached, by commas: memory.example.com."
    )

    @field_validator("read_within")
    @classmethod
    def _some_time(cls, value: timedelta) -> timedelta:
        return at_least_a_second(value)


class Memory(Concern):
    """When turns become observations, and when the log is rewritten."""

    observational_memory: bool = Field(
        default=False,
        description="Turns observational memory on. Off: nothing is deleted, nothing is read, and turns are never observed, also not later.",
    )
    observer_threshold: int = Field(8_000, ge=1, description="Tokens of pending turns past which a log is observed.")
    observer_max_age: Duration = Field(
        timedelta(minutes=30), description="Age of the oldest pending turn past which a log is observed all the same."
    )
    reflector_threshold: int = Field(32_000, ge=200, description="Tokens of a log past which it is rewritten.")


class Model(Concern):
    """The model server that condenses turns; any that speaks the OpenAI protocol."""

    memory_worker_model: str = Field(
        BUILTIN, min_length=1, description="The model's name at the server. A cheap one is the right choice here."
    )
    model_base_url: str | None = Field(
        None, description="The server: https://host/v1. Needed for any model but the built-in one."
    )
    model_api_key: SecretStr = Field(SecretStr("none"), description="The server's key.")
    model_timeout: Duration = Field(timedelta(minutes=2), description="How long one answer may take in all.")
    model_window: int = Field(32_000, ge=2_000, description="Tokens that the model takes in one call, answer included.")
    model_max_output: int = Field(4_000, ge=200, description="Tokens of one answer.")
    model_requests_per_minute: int = Field(0, ge=0, description="Shared by all workers; 0: no limit of our own.")
    model_tokens_per_minute: int = Field(0, ge=0, description="Shared by all workers; 0: no limit of our own.")
    model_daily_tokens: int = Field(0, ge=0, description="Cap per space and day; past it work waits. 0: no cap.")

    @field_validator("model_base_url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("takes a URL that begins with http:// or https://")
        return value or None

    @field_validator("model_timeout")
    @classmethod
    def _some_time(cls, value: timedelta) -> timedelta:
        return at_least_a_second(value)

    @property
    def builtin(self) -> bool:
        return self.memory_worker_model == BUILTIN

    def checked(self) -> "Model":
        """Itself; WrongSetting when a model is named and no server is."""
        if not self.builtin and self.model_base_url is None:
            raise WrongSetting("AFTERTURN_MODEL_BASE_URL is not set, and AFTERTURN_MEMORY_WORKER_MODEL names a model")
        return self


class Workers(Concern):
    """How work is claimed and run."""

    worker_jobs: int = Field(32, ge=1, le=1000, description="Jobs that one worker process runs at once.")
    worker_claim: Duration = Field(
        timedelta(seconds=15),
        description="How long a claim holds unless renewed: a dead worker's work is taken over then.",
    )
    worker_grace: Duration = Field(
        timedelta(seconds=20), description="How long a worker that is told to stop may finish what it runs."
    )
    space_jobs: int = Field(16, ge=1, description="Jobs of one space at once, over all workers.")
    sweep_every: Duration = Field(timedelta(seconds=2), description="How often the scheduler looks for what is due.")
    job_records: Duration = Field(timedelta(days=30), description="How long finished work stays listed.")

    @field_validator("worker_claim", "sweep_every")
    @classmethod
    def _some_time(cls, value: timedelta) -> timedelta:
        return at_least_a_second(value)


class Privacy(Concern):
    """What counts as personal here; a space's own policy comes on top."""

    # Without a decoder of its own: that one ends in a traceback where the text is no JSON.
    phone_regions: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description='Countries whose national phone formats are masked, as JSON: ["PT", "BR"]. Empty: the built-in list.',
    )

    pii_analyzer_url: SecretStr | None = Field(
        None,
        description="A presidio-analyzer server that looks for names in what is said: http://host:3000. Unset: registered names and cues only.",
    )
    pii_analyzer_language: str = Field(
        "en", pattern="^[a-z]{2,3}$", description="The language in which it is asked; its models must be for that one."
    )
    pii_analyzer_timeout: Duration = Field(timedelta(seconds=20), description="How long one of its answers may take.")

    @field_validator("pii_analyzer_url")
    @classmethod
    def _web(cls, value: SecretStr | None) -> SecretStr | None:
        url = value.get_secret_value() if value else ""
        if url and (not url.startswith(("http://", "https://")) or not urlsplit(url).hostname):
            raise ValueError("takes a URL that begins with http:// or https://")
        return value if url else None

    @field_validator("pii_analyzer_timeout")
    @classmethod
    def _patient(cls, value: timedelta) -> timedelta:
        return at_least_a_second(value)

    @field_validator("phone_regions", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            read = json.loads(value) if value.strip() else ()
        except ValueError:
            read = None
        if not isinstance(read, list | tuple) or not all(isinstance(region, str) for region in read):
            raise ValueError('takes countries as JSON: ["PT", "BR"]')
        return tuple(read)

    @field_validator("phone_regions")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from phonenumbers import SUPPORTED_REGIONS  # noqa: PLC0415 - most processes keep the default

        if unknown := sorted(set(value) - SUPPORTED_REGIONS):
            raise ValueError(f"takes two-letter countries, and does not know {', '.join(unknown)}")
        return value


class Packages(Concern):
    """Where the packages of exports lie, sealed. Every process must reach the same place."""

    packages_url: SecretStr | None = Field(
        None,
        description="file:///folder, or s3://ID:SECRET@bucket/prefix?endpoint=https://host[&region=NAME], its parts percent-encoded. Unset: no exports, but for `afterturn up`, which keeps them in its data folder.",
    )

    @field_validator("packages_url")
    @classmethod
    def _some_place(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and value.get_secret_value():
            place(value.get_secret_value())
        return value

    def place(self) -> FolderPlace | BucketPlace | None:
        """Where they lie; None where there are to be none."""
        url = self.packages_url.get_secret_value() if self.packages_url else ""
        return place(url) if url else None


class Webhooks(Concern):
    """Whom webhooks may reach."""

    webhooks_allow_private: bool = Field(
        default=False,
        description="Lets webhooks go to private and loopback addresses, and over http. For tests and closed networks.",
    )


class Logs(Concern):
    """What the processes say about themselves, on standard error."""

    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least that is written.")
    log_format: Literal["json", "text"] = Field("json", description="json for machines, text for a terminal.")


class Settings(BaseModel):
    """All concerns together, as a process is handed them."""

    stores: Stores
    http: Http
    memory: Memory
    model: Model
    workers: Workers
    privacy: Privacy
    packages: Packages
    webhooks: Webhooks
    logs: Logs


CONCERNS: dict[str, type[Concern]] = {
    "stores": Stores,
    "http": Http,
    "memory": Memory,
    "model": Model,
    "workers": Workers,
    "privacy": Privacy,
    "packages": Packages,
    "webhooks": Webhooks,
    "logs": Logs,
}


class WrongSetting(Exception):
    """A setting is missing or wrong; the message is one line that names the variable and what it takes."""


def load(**given: Any) -> Settings:
    """The settings of this process. `given` are Stores' fields that are known already (an embedded server's URLs)."""
    try:
        parts: dict[str, Any] = {name: kind(**(given if name == "stores" else {})) for name, kind in CONCERNS.items()}
    except ValidationError as error:
        raise WrongSetting(_first_line(error)) from None
    parts["model"] = parts["model"].checked()
    return Settings(**parts)


def load_or_exit(**given: Any) -> Settings:
    """As `load`, but a wrong setting ends the process with its one line and exit code 2."""
    try:
        settings = load(**given)
        settings.stores.master()
        settings.stores.former_master()
    except WrongSetting as error:
        sys.stderr.write(f"afterturn: {error}\n")
        raise SystemExit(2) from None
    return settings


def variable(field: str) -> str:
    """The environment variable that sets a field."""
    return {"database_url": "DATABASE_URL", "redis_url": "REDIS_URL"}.get(field, f"AFTERTURN_{field.upper()}")


def default_data_dir() -> Path:
    """Where `afterturn up` keeps its servers unless told otherwise."""
    return Path(os.environ.get("AFTERTURN_DATA_DIR") or Path.home() / ".local" / "share" / "afterturn")


def _first_line(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    place = str(first["loc"][0]) if first["loc"] else "a setting"
    # An alias is reported by its first name; people know these two by their usual one.
    name = variable(place.removeprefix("AFTERTURN_").lower())
    if first["type"] == "missing":
        return f"{name} is not set"
    return f"{name}: {first['msg'].removeprefix('Value error, ')}"


def _key(name: str, said: SecretStr | None, file: Path | None) -> bytes | None:
    """A master key out of its file, else of its variable; None where neither is set, or the variable is empty."""
    if file is not None:
        try:
            return _decode_key(name, file.read_text(encoding="ascii").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise WrongSetting(f"{name}_FILE cannot be read: {type(error).__name__}") from None
    text = said.get_secret_value().strip() if said is not None else ""
    return _decode_key(name, text) if text else None


def _decode_key(name: str, text: str) -> bytes:
    try:
        key = base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None, validate=True)
    except (binascii.Error, ValueError):
        raise WrongSetting(f"{name} is not base64: it takes 32 random bytes in base64") from None
    if len(key) != 32:
        raise WrongSetting(f"{name} holds {len(key)} bytes: it takes 32 random bytes in base64")
    return key
