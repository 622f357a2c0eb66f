"""Commands typed by an operator, each a process of its own, against one `afterturn up`."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests import forked

AFTERTURN = Path(sys.executable).with_name("afterturn")
_LOW = {"AFTERTURN_OBSERVATIONAL_MEMORY": "1", "AFTERTURN_OBSERVER_THRESHOLD": "10", "AFTERTURN_SWEEP_EVERY": "1s"}


def _bare() -> dict[str, str]:
    """This machine's environment without any setting of the service."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AFTERTURN_") and name not in ("DATABASE_URL", "REDIS_URL")
    }


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Up:
    """A deployment, and its commands."""

    folder: Path
    said: dict[str, str]
    process: subprocess.Popen[str]

    def run(self, *arguments: str | Path, given: str = "", **environment: str) -> Done:
        return typed(*arguments, given=given, AFTERTURN_DATA_DIR=str(self.folder), **environment)

    def key(self, *arguments: str) -> str:
        minted = self.run("keys", "create", "--json", *arguments)
        assert minted.code == 0, minted.err
        assert minted.json.keys() == {"id", "secret"}
        return str(minted.json["secret"])

    def call(self, secret: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        request = Request(self.said["url"] + path, json.dumps(body).encode(), headers)  # noqa: S310 - loopback http
        try:
            with urlopen(request, timeout=10) as reply:  # noqa: S310 - as above
                return reply.status, json.load(reply)
        except HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)


def typed(*arguments: str | Path, given: str = "", **environment: str) -> Done:
    """Runs a command to its end."""
    done = forked.run(("cli.__main__", *map(str, arguments)), _bare() | environment, given)
    return Done(done.returncode, done.stdout, done.stderr)


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What the condition answers, once that is true."""
    deadline = time.monotonic() + seconds
    while not (met := condition()):
        assert time.monotonic() < deadline, "it did not come about"
    return met


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    (folder / "notes.txt").write_text("somebody else's")
    with (folder / "err").open("w") as err:
        process = subprocess.Popen(
            [AFTERTURN, "up", "--data-dir", folder, "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            env=_bare() | _LOW,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "err").read_text()
        yield Up(folder, json.loads(line), process)
    finally:
        process.terminate()
        assert process.wait(30) == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""  # standard output carried the answer alone


def test_up_says_where_it_is(up: Up) -> None:
    assert up.said.keys() == {"url", "database_url", "redis_url"}
    with urlopen(up.said["url"] + "/readyz", timeout=10) as reply:  # noqa: S310 - loopback http
        assert reply.status == 200


def test_up_says_how_to_mint_a_key_and_keeps_its_folder_private(up: Up) -> None:
    assert f"afterturn keys create --data-dir {up.folder}" in (up.folder / "err").read_text()
    modes = {name: stat.S_IMODE((up.folder / name).stat().st_mode) for name in ("master.key", "servers.json")}
    assert modes == {"master.key": 0o600, "servers.json": 0o600}
    assert (up.folder / "notes.txt").read_text() == "somebody else's"


def test_each_process_names_its_role(up: Up) -> None:
    ps = subprocess.run(
        ["ps", "-ww", "-o", "args=", "--ppid", str(up.process.pid)], capture_output=True, text=True, check=True
    )
    for role in ("-m api", "-m scheduler worker", "-m scheduler scheduler"):
        assert sum(role in line for line in ps.stdout.splitlines()) == 1


def test_no_password_is_in_a_command_line(up: Up) -> None:
    ps = subprocess.run(["ps", "-ww", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout
    password = up.said["database_url"].partition(":")[2].partition(":")[2].partition("@")[0]
    assert len(password) > 20
    assert password not in ps


def test_a_key_opens_what_its_scopes_say_until_it_is_revoked(up: Up) -> None:
    minted = up.run("keys", "create", "--json", "--space", "acme", "--name", "chat", "--scopes", "turns:write").json
    turns = {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "I moved to Porto."}]}
    assert up.call(minted["secret"], "/v1/turns", turns)[0] == 202
    assert up.call(minted["secret"], "/v1/coverage/read", {"agent": "support"})[0] == 403

    listed = up.run("keys", "list", "--json", "--space", "acme")
    assert [(key["id"], key["name"], key["revoked_at"]) for key in listed.json] == [(minted["id"], "chat", None)]
    assert minted["secret"] not in listed.out

    revoked = up.run("keys", "revoke", minted["id"], "--space", "acme")
    assert (revoked.code, revoked.out) == (0, f"{minted['id']} is revoked.\n")
    until(lambda: up.call(minted["secret"], "/v1/turns", turns)[0] == 401, 2.0)
    assert up.run("keys", "revoke", minted["id"], "--space", "acme").code == 1
    chain = up.run("receipts", "export", "--space", "acme").out.splitlines()
    assert "keys" in json.loads(chain[0])
    until(
        lambda: up.run("receipts", "verify", "--space", "acme", "--json").json["receipts"] == 2, 15.0
    )  # minted, revoked


def test_a_new_signing_key_takes_over_and_the_chain_still_holds(up: Up, tmp_path: Path) -> None:
    file = tmp_path / "chain.jsonl"
    up.run("keys", "create", "--space", "rotated", "--scopes", "memory:read")
    until(lambda: up.run("receipts", "verify", "--space", "rotated", "--json").json["receipts"] == 1, 15.0)
    up.run("receipts", "export", "--space", "rotated", "--out", str(file))
    (old,) = json.loads(file.read_text().splitlines()[0])["keys"].values()
    new = up.run("receipts", "rotate-key", "--json").json["key"]
    up.run("keys", "create", "--space", "rotated", "--scopes", "memory:read")
    until(lambda: up.run("receipts", "verify", "--space", "rotated", "--json").json["receipts"] == 3, 15.0)
    up.run("receipts", "export", "--space", "rotated", "--out", str(file))
    for key in (old, new):
        told = up.run("receipts", "verify", "--file", str(file), "--public-key", key, "--json")
        assert (told.code, told.json["valid"], told.json["receipts"]) == (0, True, 3)


def test_a_new_key_for_scopes_is_made_in_a_space_that_there_is(up: Up) -> None:
    up.run("keys", "create", "--space", "scopes", "--scopes", "agent_state")
    made = [up.run("keys", "rotate-scopes", "--space", "scopes", "--json").json["key"] for _ in range(2)]
    assert made[0] != made[1]


def test_a_secret_is_shown_once_to_a_person(up: Up) -> None:
    minted = up.run("keys", "create", "--scopes", "memory:read")
    assert minted.code == 0
    assert minted.out.splitlines()[1].startswith("secret  at_")
    assert "at_" not in minted.err


def test_the_list_tells_whose_memory_a_key_writes_and_what_it_may(up: Up) -> None:
    to = ("--space", "owners", "--scopes", "turns:write")
    own = up.run("keys", "create", "--json", *to).json
    backend = up.run("keys", "create", "--json", *to, "--owner", "ana", "--admin", "--allow-impersonation").json
    turns = {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "Hello."}]}
    owner = up.call(backend["secret"], "/v1/turns", turns)[1]["memory_identity"]["id"]

    plain, mighty = up.run("keys", "list", "--json", "--space", "owners").json
    assert (plain["id"], plain["owner_kind"]) == (own["id"], "key")
    assert not plain["admin"]
    assert not plain["allow_impersonation"]
    assert (mighty["owner"], mighty["owner_kind"]) == (owner, "owner")
    assert mighty["admin"]
    assert mighty["allow_impersonation"]
    first, second = up.run("keys", "list", "--space", "owners").out.splitlines()[1:]
    assert owner in second
    assert "admin,allow_impersonation" in second
    assert "admin" not in first


def test_an_unknown_scope_makes_no_space(up: Up) -> None:
    refused = up.run("keys", "create", "--space", "nowhere", "--scopes", "turns:read")
    assert (refused.code, refused.out) == (2, "")
    assert "turns:write, memory:read" in refused.err
    listed = up.run("keys", "list", "--space", "nowhere")
    assert (listed.code, len(listed.err.splitlines())) == (1, 1)


def test_an_import_is_remembered_and_adds_nothing_when_it_comes_again(up: Up, tmp_path: Path) -> None:
    chats, junk = tmp_path / "chats.jsonl", tmp_path / "junk.json"
    said = ["I moved to Porto last week.", "I am allergic to nuts.", "My sister Ines lives in Braga."]
    lines = [
        {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]} for text in said
    ]
    chats.write_text("".join(json.dumps(line) + "\n" for line in lines))
    junk.write_text('{"messages": [')

    to_ana = ("--agent", "support", "--as", "owner:ana", "--json")
    first = up.run("import", junk, chats, *to_ana)
    assert first.code == 1
    assert first.err.splitlines()[-1].startswith(f"afterturn: {junk}")
    assert [(file["accepted"], file["duplicates"]) for file in first.json] == [(0, 0), (6, 0)]

    again = up.run("import", chats, *to_ana)
    assert again.code == 0
    assert [(file["conversations"], file["accepted"], file["duplicates"]) for file in again.json] == [(3, 0, 6)]

    ana = up.key("--owner", "ana", "--scopes", "memory:read")
    up.call(ana, "/v1/observations/flush", {"agent": "support"})
    covered = until(lambda: _all_observed(up, ana))
    assert covered == {"pending": 0, "observed": 6, "skipped": 0, "quarantined": 0, "expired": 0, "erased": 0}

    shown = up.run("observations", "show", "--agent", "support", "--as", "owner:ana")
    assert "Porto" in shown.out
    as_json = up.run("observations", "show", "--agent", "support", "--as", "owner:ana", "--format", "json").json
    assert as_json["memory"] == "on"
    evidence = [turn for line in as_json["observations"] for turn in line["evidence"]]
    assert evidence
    assert all(turn.keys() == {"turn_id", "conversation_id", "message_id", "at"} for turn in evidence)


def _all_observed(up: Up, secret: str) -> Any:
    _, answer = up.call(secret, "/v1/coverage/read", {"agent": "support"})
    return answer["turns"] if not answer["turns"]["pending"] else None


def test_a_conversation_of_another_agent_is_refused_and_told(up: Up, tmp_path: Path) -> None:
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps([{"id": "chat-1", "messages": [{"role": "user", "content": "Hello there."}]}]))
    assert up.run("import", chat, "--agent", "sales", "--as", "owner:rui").code == 0
    told = up.run("import", chat, "--agent", "support", "--as", "owner:rui", "--json").json
    assert told[0]["accepted"] == 0
    assert told[0]["refused"] == {"its conversation belongs to another agent": 1}


def test_nobody_is_made_by_looking(up: Up) -> None:
    shown = up.run("observations", "show", "--agent", "support", "--as", "owner:nobody-ever", "--json")
    assert (shown.code, shown.json["observations"]) == (0, [])
    assert up.run("import", "x.json", "--agent", "a", "--as", "key:key_unknown").code == 1


def test_a_space_that_keeps_no_contexts_apart_takes_no_personal_turns(up: Up, tmp_path: Path) -> None:
    refused = up.run("import", tmp_path, "--agent", "a", "--as", "owner:ana", "--context", "personal")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)


def test_status_counts_the_whole_deployment(up: Up) -> None:
    until(lambda: up.run("status", "--json").json["workers"])
    standing = up.run("status", "--json").json
    assert standing["memory"] == "on"
    assert standing["queue"].keys() == {"interactive", "memory", "housekeeping"}
    assert standing["queue"]["memory"].keys() == {"waiting", "due", "running", "dead", "due_for_seconds"}
    assert standing["quarantine"] == 0
    told = up.run("status")
    assert told.code == 0
    assert "workers alive   1" in told.out


def test_the_doctor_finds_nothing_wrong_with_what_up_made(up: Up) -> None:
    findings = up.run("doctor", "--json")
    assert findings.code == 0
    states = {one["check"]: one["state"] for one in findings.json}
    healthy = (
        "settings",
        "data",
        "role",
        "schema",
        "keys",
        "master key",
        "erasures",
        "redis",
        "model",
        "names",
        "disk",
    )
    assert states == dict.fromkeys(healthy, "ok")


def test_the_doctor_says_what_is_wrong_and_what_to_do(up: Up) -> None:
    there = json.loads((up.folder / "servers.json").read_text())
    wrong = typed(
        *("doctor", "--json"),
        DATABASE_URL=there["database_url"],
        AFTERTURN_KEYS_URL=there["database_url"],
        REDIS_URL="redis://127.0.0.1:1",
        AFTERTURN_MASTER_KEY="A" * 43 + "=",
        AFTERTURN_OBSERVATIONAL_MEMORY="1",
        AFTERTURN_MEMORY_WORKER_MODEL="some-model",
        AFTERTURN_MODEL_BASE_URL="http://127.0.0.1:1/v1",
    )
    assert wrong.code == 1
    assert len(wrong.err.splitlines()) == 1
    findings = {one["check"]: one for one in wrong.json}
    assert {name for name, one in findings.items() if one["state"] == "wrong"} == {"keys", "redis", "model"}
    assert "AFTERTURN_KEYS_URL" in findings["keys"]["do"]
    assert findings["data"]["state"] == "ok"
    assert findings["erasures"]["says"] == "not looked at, since keys is wrong"


def test_another_master_key_is_told_from_the_right_one(up: Up) -> None:
    there = json.loads((up.folder / "servers.json").read_text())
    environment = {
        "DATABASE_URL": there["database_url"],
        "AFTERTURN_KEYS_URL": there["keys_url"],
        "REDIS_URL": there["redis_url"],
        "AFTERTURN_MASTER_KEY": "A" * 43 + "=",
    }
    findings = {one["check"]: one["state"] for one in typed("doctor", "--json", **environment).json}
    assert findings["master key"] == "wrong"


def test_quarantine_is_listed_and_what_is_not_in_it_cannot_be_retried(up: Up) -> None:
    assert up.run("quarantine", "list", "--json").json == []
    refused = up.run("quarantine", "retry", "7", "--json")
    assert (refused.code, refused.json) == (1, {"retried": [], "not_held": [7]})
    assert up.run("quarantine", "retry", "--all").code == 0


def test_a_hold_keeps_a_person_from_being_erased_until_it_is_lifted(up: Up) -> None:
    secret = up.key("--space", "held", "--scopes", "turns:write", "--owner", "ana")
    turns = [{"role": "user", "content": "Hello"}]
    assert up.call(secret, "/v1/turns", {"agent": "a", "conversation_id": "c", "turns": turns})[0] == 202
    ana = ("--space", "held", "--subject", "owner:ana")
    placed = up.run("hold", "place", *ana, "--json")
    assert (placed.code, placed.json["held"]) == (0, True)
    listed = up.run("hold", "list", "--space", "held", "--json").json
    assert [(one["profile_id"], one["covers"]) for one in listed] == [
        (placed.json["profile_id"], [placed.json["profile_id"]])
    ]
    refused = up.run("erase", *ana, "--reason", "other")
    assert (refused.code, "hold" in refused.err) == (1, True)
    assert up.run("hold", "lift", *ana).out.startswith(placed.json["profile_id"])
    assert up.run("hold", "lift", *ana).code == 1
    assert up.run("hold", "place", "--space", "held", "--subject", "owner:bo").code == 1
    assert up.run("hold", "place", "--space", "held", "--subject", "ana").code == 2


def test_retention_is_shown_tried_and_run(up: Up) -> None:
    up.key("--space", "kept", "--scopes", "operator")
    said = up.run("retention", "show", "--space", "kept", "--json").json
    assert (said["version"], said["turns"], said["packages"], said["job_records"]) == (0, "forever", "7d", "30d")
    rows = up.run("retention", "preview", "turns=1h", "--space", "kept", "--json").json["rows"]
    assert rows["turns"] == 0
    for wrong in ("turns", "turns=soon", "nothing=1d", "receipts=1d"):
        assert up.run("retention", "preview", wrong, "--space", "kept").code == 2
    assert up.run("retention", "run", "--space", "kept").code == 0


def test_migrating_again_changes_nothing(up: Up) -> None:
    assert up.run("migrate", "--json").json == {"schema": "current"}


def test_a_second_up_on_the_folder_is_refused_in_one_line(up: Up) -> None:
    refused = up.run("up", "--port", "0")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines() == [
        f"afterturn: {up.folder} is in use: `afterturn up` runs there at {up.said['url']}"
    ]
    assert (up.folder / "servers.json").exists()


def test_a_port_that_is_taken_is_told_in_one_line(up: Up, tmp_path: Path) -> None:
    port = up.said["url"].rpartition(":")[2]
    refused = typed("up", "--data-dir", tmp_path / "other", "--port", port)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines() == [f"afterturn: port {port} on 127.0.0.1 is taken: give another with --port"]


def test_a_role_can_be_added_to_what_up_runs(up: Up) -> None:
    one_more = subprocess.Popen(
        [AFTERTURN, "worker", "--data-dir", up.folder], stderr=subprocess.PIPE, text=True, env=_bare()
    )
    try:
        assert one_more.stderr is not None
        assert "worker_started" in one_more.stderr.readline()
        args = Path(f"/proc/{one_more.pid}/cmdline").read_bytes().split(b"\0")
        assert args[1:4] == [b"-m", b"scheduler", b"worker"]
    finally:
        one_more.terminate()
        one_more.communicate(timeout=60)
    assert one_more.returncode == 0


def test_masking_needs_nothing_at_all() -> None:
    plain = typed("mask", given="write to ana@example.org\n")
    assert (plain.code, plain.out) == (0, "write to <EMAIL_ADDRESS>\n")
    lines = typed("mask", "--json", given='{"text": "I am Ana", "known": ["Ana"]}\n')
    assert lines.json == {"text": "I am <PERSON>", "spans": [[5, 8, "PERSON"]]}
    broken = typed("mask", "--json", given="no json\n")
    assert (broken.code, len(broken.err.splitlines())) == (1, 1)
