"""What the command is made of, without a server: settings handed on, owners, scopes, text on a terminal, one-line errors."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from cli.__main__ import run
from cli.failure import Failed, WrongUse
from cli.importing import Report
from cli.keys import Wanted
from cli.output import shown, table
from cli.owner import Owner
from cli.servers import Servers, announced, environment, read, settings, write_private
from config.settings import Settings, WrongSetting, load

_STORES = {
    "AFTERTURN_DATABASE_URL": "postgresql://data-user:data-word@host/data",
    "AFTERTURN_REDIS_URL": "redis://:bell-word@host/0",
    "AFTERTURN_KEYS_URL": "postgresql://keys-user:keys-word@host/keys",
}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No setting of this machine, no `.env`, an empty home."""
    for name in [*os.environ]:
        if name.startswith("AFTERTURN_") or name in ("DATABASE_URL", "REDIS_URL"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def _given(bare: pytest.MonkeyPatch, **more: str) -> Settings:
    for name, value in {**_STORES, **more}.items():
        bare.setenv(name, value)
    return load()


def _servers(**environment: str) -> Servers:
    return Servers("http://127.0.0.1:1", *_STORES.values(), "/nowhere/master.key", environment)


def test_settings_written_as_an_environment_give_the_same_settings(bare: pytest.MonkeyPatch) -> None:
    before = _given(
        bare,
        AFTERTURN_OBSERVATIONAL_MEMORY="1",
        AFTERTURN_OBSERVER_MAX_AGE="90m",
        AFTERTURN_PHONE_REGIONS='["PT", "BR"]',
        AFTERTURN_MODEL_API_KEY="model-word",
        AFTERTURN_MODEL_BASE_URL="https://models.example.org/v1",
    )
    handed = environment(before)
    for name in [*os.environ]:
        if name.startswith("AFTERTURN_"):
            bare.delenv(name)
    for name, value in handed.items():
        bare.setenv(name, value)
    assert load() == before


def test_where_the_stores_are_is_left_out_when_asked(bare: pytest.MonkeyPatch) -> None:
    kept = environment(_given(bare, AFTERTURN_MODEL_API_KEY="model-word", AFTERTURN_MASTER_KEY="x"), stores=False)
    assert kept["AFTERTURN_MODEL_API_KEY"] == "model-word"
    assert not [name for name in kept if name.endswith("_URL") or "MASTER" in name]


def test_a_data_folder_where_up_runs_stands_above_the_environment(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _given(bare)
    elsewhere = Servers("http://x", "postgresql://there/data", "redis://there", "postgresql://there/keys", "/k", {})
    with announced(tmp_path, elsewhere):
        assert settings(tmp_path).stores.database_url.get_secret_value() == "postgresql://there/data"
        assert settings(None).stores.database_url.get_secret_value() == _STORES["AFTERTURN_DATABASE_URL"]
    assert settings(tmp_path).stores.database_url.get_secret_value() == _STORES["AFTERTURN_DATABASE_URL"]


def test_a_command_is_set_as_up_is_unless_its_own_shell_says_otherwise(
    bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bare.setenv("AFTERTURN_OBSERVER_THRESHOLD", "77")
    with announced(tmp_path, _servers(AFTERTURN_OBSERVATIONAL_MEMORY="1", AFTERTURN_OBSERVER_THRESHOLD="99")):
        memory = settings(tmp_path).memory
    bare.delenv("AFTERTURN_OBSERVATIONAL_MEMORY")
    assert memory.observational_memory
    assert memory.observer_threshold == 77


def test_what_up_writes_is_for_its_owner_alone_and_gone_afterwards(tmp_path: Path) -> None:
    with announced(tmp_path, _servers()):
        assert stat.S_IMODE((tmp_path / "servers.json").stat().st_mode) == 0o600
        assert read(tmp_path) == _servers()
    assert read(tmp_path) is None


def test_a_private_file_replaces_one_that_everybody_could_read(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o600)
    assert [*tmp_path.iterdir()] == [file]


_TYPES_WRONG = json.dumps(
    {**dict.fromkeys(("url", "database_url", "redis_url", "keys_url", "master_key_file"), "x"), "environment": "x"}
)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', '"x"', "\x00", _TYPES_WRONG])
def test_a_damaged_servers_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "servers.json").write_text(text)
    with pytest.raises(Failed, match=r"servers\.json cannot be read"):
        read(tmp_path)


def test_without_any_server_the_message_says_how_to_get_some(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    del bare
    with pytest.raises(WrongSetting, match="start `afterturn up`"):
        settings(None)
    with pytest.raises(WrongSetting, match=f"nothing runs in {tmp_path}"):
        settings(tmp_path)
    with pytest.raises(WrongSetting, match="--data-dir 'my data'"):
        settings(Path("my data"))


@pytest.mark.parametrize(
    "person", ["", "ana", "nobody:ana", "owner:", "owner: ", "owner:a\nb", "owner:" + "a" * 513, "owner:\u202eana"]
)
def test_a_person_who_cannot_be_named_is_refused_without_being_quoted(person: str) -> None:
    with pytest.raises(WrongUse) as refused:
        Owner("default", "support", person, "corporate")
    assert "--as" in str(refused.value)
    assert "ana" not in str(refused.value)


def test_a_handle_may_hold_colons_and_letters_of_any_script() -> None:
    owner = Owner("default", "support", "channel:whatsapp:+351 912 345 678 山", "corporate")
    assert owner.handle() == ("channel", "whatsapp:+351 912 345 678 山")


@pytest.mark.parametrize(
    ("agent", "context"), [("", "corporate"), ("a b", "corporate"), ("a", "private"), ("a\n", "corporate")]
)
def test_an_agent_and_a_context_are_what_the_api_takes(agent: str, context: str) -> None:
    with pytest.raises(WrongUse):
        Owner("default", agent, "owner:ana", context)


def test_scopes_are_taken_once_each_and_unknown_ones_named_with_the_known() -> None:
    assert Wanted("s", "n", " turns:write, memory:read,turns:write ,").checked().scopes == (
        "turns:write",
        "memory:read",
    )
    with pytest.raises(WrongUse, match=r"'turns:read'.*turns:write, memory:read"):
        Wanted("s", "n", "turns:write,turns:read").checked()
    with pytest.raises(WrongUse, match="names none"):
        Wanted("s", "n", " , ").checked()


def test_the_longest_duration_that_is_taken_can_be_handed_on(bare: pytest.MonkeyPatch) -> None:
    before = _given(bare, AFTERTURN_JOB_RECORDS="11574d")
    for name, value in environment(before).items():
        bare.setenv(name, value)
    assert load() == before


def test_text_cannot_move_the_cursor_of_a_terminal() -> None:
    assert shown("a\x1b[2Jb\x07\u202ec\x9bd\té 山\n") == "a\\u001b[2Jb\\u0007\\u202ec\\u009bd\té 山\n"


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table([("a", None), ("bbb", 1)], ("X", "YY")) == ["X    YY", "a    -", "bbb  1"]
    assert table([], ("X", "YY")) == ["X  YY"]


def test_a_report_counts_each_reason() -> None:
    report = Report("f")
    report.refused.update(["too long", "too long", "no role"])
    assert report.refused == {"too long": 2, "no role": 1}


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["keys", "create"],
        ["keys", "nonsense"],
        ["keys", "create", "--scopes", "turns:read"],
        ["up", "--port", "x"],
        ["up", "--port", "70000"],
        ["status", "--what"],
        ["import", "--agent", "a", "--as", "owner:b"],
        ["import", "f", "--agent", "a", "--as", "b"],
        ["observations", "show", "--agent", "a", "--as", "owner:b", "--format", "xml"],
        ["quarantine", "retry"],
        ["quarantine", "retry", "1", "--all"],
        ["quarantine", "retry", "0"],
        ["quarantine", "retry", "9223372036854775808"],
        ["quarantine", "retry", "9" * 5_000],
        ["keys", "create", "--scopes", "memory:read", "--agent", "bad agent"],
        ["keys", "create", "--scopes", "memory:read", "--agent", ""],
        ["keys", "create", "--scopes", "memory:read", "--vendor", "bad vendor"],
        ["keys", "create", "--scopes", "memory:read", "--name", "a\x1b[2J"],
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    del bare
    assert run(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert told.err.startswith("afterturn")


@pytest.mark.parametrize("arguments", [[], ["keys"], ["quarantine"]])
def test_a_command_without_its_verb_shows_help(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run(arguments) == 2
    assert "Usage: afterturn" in capsys.readouterr().err


def test_a_wrong_setting_is_one_line_that_names_it(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**_STORES, "AFTERTURN_OBSERVER_THRESHOLD": "many"}.items():
        bare.setenv(name, value)
    assert run(["status"]) == 2
    assert capsys.readouterr().err.startswith("afterturn: AFTERTURN_OBSERVER_THRESHOLD")


def test_a_server_that_does_not_answer_is_one_line(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = "postgresql://u@127.0.0.1:1/x"
    bare.setenv("DATABASE_URL", nobody)
    bare.setenv("AFTERTURN_KEYS_URL", nobody)
    bare.setenv("REDIS_URL", "redis://127.0.0.1:1")
    bare.setenv("AFTERTURN_MASTER_KEY", "A" * 43 + "=")
    assert run(["keys", "list"]) == 1
    told = capsys.readouterr()
    assert told.err == "afterturn: a server does not answer (ConnectionRefusedError): `afterturn doctor` says which\n"


def test_the_sample_conversation_is_what_the_api_takes() -> None:
    days = json.loads((Path(__file__).parents[2] / "cli" / "sample" / "studio.json").read_text())
    turns = [turn for day in days for turn in day["turns"]]
    assert len({turn["id"] for turn in turns}) == len(turns) >= 40
    assert [turn["at"] for turn in turns] == sorted(turn["at"] for turn in turns)
    assert {day["agent"] for day in days} == {"studio"}
