"""What lets somebody in: passwords and user names beside a cue, keys and tokens by their own look."""

import re
from collections.abc import Iterator

from privacy.reading import Reading
from privacy.span import Span
from privacy.vocabulary import words

_MARKS = (
    "sk-", "k_live_", "k_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "xox", "AKIA", "ASIA",
    "AIza", "ya29.", "at_", "hf_", "SG.", "whsec_", "eyJ",
)  # fmt: skip
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:"
    r"sk-(?:proj-|ant-|live-|test-)?[A-Za-z0-9_-]{20,200}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,120}"
    r"|gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}|glpat-[A-Za-z0-9_-]{20,64}|npm_[A-Za-z0-9]{36}"
    r"|xox[abprse]-[A-Za-z0-9-]{10,200}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,300}"
    r"|at_[A-Za-z0-9_-]{43}|hf_[A-Za-z0-9]{30,64}|SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}|whsec_[A-Za-z0-9+/=]{24,88}"
    r"|eyJ[A-Za-z0-9_-]{8,2000}+\.eyJ[A-Za-z0-9_-]{8,4000}+(?:\.[A-Za-z0-9_-]{0,1000}+)?"
    r")(?![A-Za-z0-9])"
)
_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")
_PEM_END = re.compile(r"-----END [A-Z ]{0,30}PRIVATE KEY-----")
_QUOTE = r"\\{0,3}[\"']"
_LINK = (
    rf"(?:\*|{_QUOTE}){{0,3}}(?:\s{{0,2}}(?P<verb>is|was|é|es|ist|est|to|->|=>)\s(?:[\s*:]|{_QUOTE}){{0,5}}"
    rf"|\s{{0,2}}(?P<sign>[:=])(?:[\s*:]|{_QUOTE}){{0,5}})"
)
_PASSWORD = re.compile(_LINK + r"(?P<value>[^\s\"'\\<>,\[\]{}()][^\s\"'\\<>,]{2,63})", re.IGNORECASE)
_KEY = re.compile(r"(?:" + _LINK + r"| )(?P<value>[A-Za-z0-9_+/=.-]{12,}+)", re.IGNORECASE)
_USER = re.compile(_LINK + r"@?(?P<value>[A-Za-z0-9][A-Za-z0-9._-]{2,40})", re.IGNORECASE)
_NOT_ONE = words("""not the a an in on your my incorrect wrong expired invalid valid correct working being changed reset required too weak strong needed set saved sent
    no longer blocked locked case same that this it must should has have been never what optional protected null none true false string""")
_LONGEST_DIGITS = 12


def secrets(reading: Reading) -> Iterator[Span]:
    text = reading.text
    if any(mark in text for mark in _MARKS):
        yield from (Span(*token.span(), "SECRET") for token in _TOKEN.finditer(text))
    yield from _private_keys(text)
    done = 0
    for start, end, family in reading.cues.phrased("password", "key", "user"):
        if start < done:  # a cue within a value: "api_key=api_key=" over and over
            continue
        found = {"password": _password, "key": _key, "user": _user}[family](text, end)
        if found:
            done = found.end
            yield found


def _private_keys(text: str) -> Iterator[Span]:
    """From the first line to the last; one that is cut off reaches to the end of the text."""
    begin = _PEM_BEGIN.search(text) if "PRIVATE KEY" in text else None
    while begin:
        end = _PEM_END.search(text, begin.end())
        yield Span(begin.start(), end.end() if end else len(text), "SECRET")
        begin = _PEM_BEGIN.search(text, end.end()) if end else None


def _password(text: str, at: int) -> Span | None:
    """Behind a colon any word will do; behind "is" it takes a digit, a sign or capitals among small letters."""
    found = _PASSWORD.match(text, at)
    value = found["value"].rstrip(".;:!?)]}") if found else ""
    if found is None or len(value) < 3 or value.lower() in _NOT_ONE:  # shorter is a word
        return None
    if not found["sign"] and value.isalpha() and (value.islower() or value.istitle()):
        return None
    return Span(found.start("value"), found.start("value") + len(value), "PASSWORD")


def _key(text: str, at: int) -> Span | None:
    found = _KEY.match(text, at)
    if found is None or found["value"].isalpha() or not any(sign.isalnum() for sign in found["value"]):
        return None
    return Span(*found.span("value"), "SECRET")


def _user(text: str, at: int) -> Span | None:
    found = _USER.match(text, at)
    value = found["value"].rstrip("._-") if found else ""
    if found is None or not value or value.lower() in _NOT_ONE:
        return None
    return Span(found.start("value"), found.start("value") + len(value), "USERNAME")
