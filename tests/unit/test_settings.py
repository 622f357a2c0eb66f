"""Settings are read once, at the door; a wrong one is a single clear line."""

import base64
from datetime import timedelta
from pathlib import Path

import pytest

from config.__main__ import document
from config.settings import CONCERNS, WrongSetting, load, variable

ROOT = Path(__file__).parents[2]
KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.chdir(tmp_path)  # no .env of somebody else
    for concern in CONCERNS.values():
        for field in concern.model_fields:
            monkeypatch.delenv(variable(field), raising=False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://app:s3cret@db/data")
    monkeypatch.setenv("REDIS_URL", "redis://bell/0")
    monkeypatch.setenv("AFTERTURN_KEYS_URL", "postgresql://app:s3cret@db/keys")
    monkeypatch.setenv("AFTERTURN_MASTER_KEY", KEY)
    return monkeypatch


def test_the_defaults_are_what_the_documents_promise(environment: pytest.MonkeyPatch) -> None:
    settings = load()
    assert settings.memory.observational_memory is False
    assert (settings.memory.observer_threshold, settings.memory.reflector_threshold) == (8_000, 32_000)
    assert settings.memory.observer_max_age == timedelta(minutes=30)
    assert settings.model.builtin
    assert settings.stores.master() == bytes(range(32))


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("AFTERTURN_OBSERVER_THRESHOLD", "many", "AFTERTURN_OBSERVER_THRESHOLD: "),
        ("AFTERTURN_OBSERVER_MAX_AGE", "soon", "AFTERTURN_OBSERVER_MAX_AGE: takes a whole number and a unit"),
        ("AFTERTURN_WORKER_CLAIM", "0s", "AFTERTURN_WORKER_CLAIM: takes one second or more"),
        ("AFTERTURN_SWEEP_EVERY", "0s", "AFTERTURN_SWEEP_EVERY: takes one second or more"),
        ("AFTERTURN_MODEL_TIMEOUT", "0s", "AFTERTURN_MODEL_TIMEOUT: takes one second or more"),
        ("AFTERTURN_DATABASE_TIMEOUT", "0s", "AFTERTURN_DATABASE_TIMEOUT: takes one second or more"),
        ("AFTERTURN_JOB_RECORDS", "11575d", "AFTERTURN_JOB_RECORDS: takes 11574d at most"),
        ("AFTERTURN_JOB_RECORDS", "999999999d", "AFTERTURN_JOB_RECORDS: takes 11574d at most"),
        ("AFTERTURN_PHONE_REGIONS", "PT", "AFTERTURN_PHONE_REGIONS: takes countries as JSON"),
        ("AFTERTURN_PHONE_REGIONS", '["PT"', "AFTERTURN_PHONE_REGIONS: takes countries as JSON"),
        ("AFTERTURN_PHONE_REGIONS", '"PT"', "AFTERTURN_PHONE_REGIONS: takes countries as JSON"),
        ("AFTERTURN_PHONE_REGIONS", "[1]", "AFTERTURN_PHONE_REGIONS: takes countries as JSON"),
        ("AFTERTURN_PHONE_REGIONS", '["XX"]', "AFTERTURN_PHONE_REGIONS: takes two-letter countries"),
        ("DATABASE_URL", "sqlite:///x", "DATABASE_URL: takes a URL that begins with postgresql://"),
        ("REDIS_URL", "http://x", "REDIS_URL: takes a URL that begins with redis://"),
        ("AFTERTURN_MEMORY_WORKER_MODEL", "cheap-1", "AFTERTURN_MODEL_BASE_URL is not set"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_the_variable(
    environment: pytest.MonkeyPatch, name: str, value: str, line: str
) -> None:
    environment.setenv(name, value)
    with pytest.raises(WrongSetting) as caught:
        load()
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "AFTERTURN_KEYS_URL"])
def test_a_missing_store_is_named(environment: pytest.MonkeyPatch, name: str) -> None:
    environment.delenv(name)
    with pytest.raises(WrongSetting, match=f"^{name} is not set$"):
        load()


@pytest.mark.parametrize("key", ["short", "!!!", base64.b64encode(b"x" * 31).decode()])
def test_a_master_key_is_32_bytes_of_base64(environment: pytest.MonkeyPatch, key: str) -> None:
    environment.setenv("AFTERTURN_MASTER_KEY", key)
    with pytest.raises(WrongSetting, match="32 random bytes in base64") as caught:
        load().stores.master()
    assert key not in str(caught.value)


def test_secrets_are_never_printed(environment: pytest.MonkeyPatch) -> None:
    shown = repr(load())
    assert "s3cret" not in shown
    assert KEY not in shown


def test_the_configuration_page_is_generated_from_the_settings() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == document()
