"""`mask` on standard input: text, or JSON Lines, line for line."""

import io
import json
import subprocess
import sys

import pytest

from cli.mask import run


def masked(text: str, *, as_json: bool) -> str:
    out = io.StringIO()
    run(io.StringIO(text), out, as_json=as_json)
    return out.getvalue()


def test_text_goes_in_and_masked_text_comes_out() -> None:
    assert masked("to ana@example.com\nbye\n", as_json=False) == "to <EMAIL_ADDRESS>\nbye\n"


def test_each_line_of_json_is_answered_by_one() -> None:
    lines = [{"text": "hi Mia", "known": ["Mia Li"]}, {"text": "hi Mia"}, {"text": "\ud800 é\n"}]
    out = masked("".join(json.dumps(line) + "\n" for line in lines), as_json=True)
    assert [json.loads(line) for line in out.splitlines()] == [
        {"text": "hi <PERSON>", "spans": [[3, 6, "PERSON"]]},
        {"text": "hi Mia", "spans": []},
        {"text": "\ud800 é\n", "spans": []},
    ]


@pytest.mark.parametrize("line", ["[]", "{}", '{"text": 1}', '{"text": "a", "known": "Mia"}', "no json"])
def test_a_line_that_is_no_such_object_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"line 1|Expecting"):
        masked(line + "\n", as_json=True)


def test_the_command_loads_no_server_no_database_and_no_analyzer() -> None:
    code = "import sys, cli.mask; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "presidio_anonymizer" in loaded
    for absent in ("presidio_analyzer", "spacy", "sqlalchemy", "asyncpg", "redis", "fastapi", "openai", "tldextract"):
        assert f"'{absent}'" not in loaded


def test_lone_surrogates_pass_through_the_process() -> None:
    line = json.dumps({"text": "\ud800 ana@example.com"}, ensure_ascii=False) + "\n"
    command = [sys.executable, "-m", "cli.mask", "--json"]
    done = subprocess.run(command, input=line.encode("utf-8", "surrogatepass"), capture_output=True, check=True)
    answer = json.loads(done.stdout.decode("utf-8", "surrogatepass"))
    assert answer == {"text": "\ud800 <EMAIL_ADDRESS>", "spans": [[2, 17, "EMAIL_ADDRESS"]]}
