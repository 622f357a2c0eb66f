"""E-mail addresses: as they are written, and as they are spoken into a chat ("ana at example dot com", "ana gmailcom")."""

import re
from collections.abc import Iterator

from privacy.cue import fills
from privacy.reading import Reading
from privacy.span import Span
from privacy.vocabulary import words

KIND = "EMAIL_ADDRESS"
_LATIN = "A-Za-z0-9\u00c0-\u024f\u0370-\u052f\u1e00-\u1fff"
_PROVIDERS = (
    "gmail|googlemail|hotmail|outlook|yahoo|ymail|rocketmail|rediffmail|aol|icloud|protonmail|proton|live|msn|gmx|mail"
    "|zoho|yandex|uol|bol|terra|sapo|orange|wanadoo|web"
)
# Each is bounded on both sides of the sign: no text makes it look far back.
_DOMAIN = re.compile(
    rf"(?:[{_LATIN}][{_LATIN}-]{{0,62}}+\.){{1,8}}(?:xn--[A-Za-z0-9-]{{2,59}}+|(?![0-9])[{_LATIN}]{{2,63}}+)"
    r"|(?:\w[\w-]{0,62}+\.){1,8}[^\W\d_]{2,24}+"
    rf"|\[[0-9A-Fa-f:.]{{3,45}}\]|localhost\b|(?:{_PROVIDERS})\b(?!\.)"
)
_LOCAL_BACKWARDS = re.compile(rf"(?:[{_LATIN}_+%'~!#$^*-]|\.(?=[{_LATIN}_+'-])){{1,64}}")
_LOCAL_BACKWARDS_ANY = re.compile(r"[\w.+-]{1,64}")
_QUOTED_BACKWARDS = re.compile(r'"(\\?)[A-Za-z0-9][^"\\\n<>]{0,62}"\1')  # "ana b"@example.com
_WORD_BACKWARDS = re.compile(rf" {{0,2}}([{_LATIN}0-9][\w.+-]{{1,63}})(?![\w@.+-])")
_PUBLIC_DOMAIN = re.compile(
    r" {0,2}(?:[a-z0-9][a-z0-9-]{0,62}+\.){1,4}(?:com|net|org|edu|gov|info|biz|io|co|me|app|dev|eu|uk|de|fr|es|it|pt|br|in"
    r"|jp|cn|mx|ar|au|ca|ch|at|nl|be|pl|tr|example|test)\b(?![@-])",
    re.IGNORECASE,
)
_MOST_SIGNS = 4  # "x@y.z@w.com"
_SIGNS = "!#$%'*^~.+-"
_FILE = re.compile(r"(?:[1-9]x\.)|[^@]*\.(?:png|jpe?g|gif|svg|webp|ico|css|js|ts|py|html?|json|md)\Z", re.IGNORECASE)
_OFFICE = re.compile(  # a public office, a repository: nobody's own
    r"(?:ouvidoria|atendimento|e?sic|faleconosco|protocolo|gabinete|info|contact|contato|support|help|no-?reply|webmaster"
    r"|postmaster|press|imprensa)@(?:[a-z0-9-]{1,63}\.){0,6}(?:gov|gob|gouv)(?:\.[a-z]{2})?|git@[a-z0-9.-]+",
    re.IGNORECASE,
)
_COST = 4
_COM_COST = 8
_SHORTEST_GLUED = 6
_LONGEST_LEAD, _LONGEST_ORDER, _LONGEST_CLOSE = 62, 100, 2  # characters

_SPOKEN = re.compile(
    rf"(?<![\w.])[{_LATIN}][\w.+-]{{0,63}}"
    r"(?:\s?[\[({]\s?(?:at|arroba|@)\s?[\])}]\s?(?P<label>[\w-]{1,63})(?:\s?[\[({]?\s?(?:\bdot\b|\bponto\b|\bpunto\b|\.)\s?[\])}]?\s?[\w-]{2,63}){1,4}"
    r"|\s(?:at|arroba)\s[\w-]{1,63}(?:\s(?:dot|ponto|punto)\s[\w-]{2,24}){1,4}"
    rf"|\s(?:at|arroba)\s(?:{_PROVIDERS})\.[a-z]{{2,4}}(?:\.[a-z]{{2}})?)\b",
    re.IGNORECASE,
)
_SPOKEN_MARK = re.compile(r"[\[({]\s?(?:at|arroba|@)\s?[\])}]|\s(?:at|arroba)\s", re.IGNORECASE)
_COM = re.compile(r"com(?:br)?\b")
_PROVIDER_MARKS = tuple(
    f"{provider}{ending}"
    for providers, ending in (
        ("sbcglobal verizon comcast att cox earthlink", "net"),
        ("yahoo", "in"),
        ("yahoo", "coin"),
        ("mail", "org"),
        ("mail", "net"),
    )
    for provider in providers.split()
)
_UNENDED = ("gmail", "hotmail")  # providers whose name alone, glued to another word, is an address
PROVIDER_HINTS = ("net", "yahoo", "mail")  # one of these is in whatever the two patterns below find
PROVIDED = re.compile(
    rf"(?<![a-z0-9._])(?:[a-z0-9._]{{2,40}}|[a-z]{{2,30}} [0-9]{{1,8}} )(?:{'|'.join(_PROVIDER_MARKS)})\b"
    rf"|(?<![a-z0-9._])(?P<own>[a-z0-9._]{{3,40}})(?:{'|'.join(_UNENDED)})\b(?!\.)"
    rf"|(?<![a-z0-9._])[a-z]{{2,30}} [0-9]{{2,8}} (?:{'|'.join(_UNENDED)})\Z"
)
_LOST_SIGNS = re.compile(
    r"(?P<own>[a-z0-9._]{0,40}?)(?:(?:redd?iff?|yahoo|hot|rocket|proton|fast|google|g|y|e)?ma?i+l{1,2}|g[aim]{3}l|gmai|gmal|yahoo"
    r"|outlook|aol|icloud|yandex|live|msn|gmx|att|comcast|verizon|mac|me|sbcglobal)\Z"
)
_TOKEN_BACKWARDS = re.compile(r"[a-z0-9._]{0,48}")
_NAME_BEFORE = re.compile(r"(?:([a-z]{1,30}) )?(?:[0-9]{1,8} )?\Z", re.IGNORECASE)
# What nothing but such words stands before, or "send it to", and nothing behind, is an address that lost its signs.
_ANSWERED = re.compile(r"(?:(?:its?|it's|is|s|yes|yeah|sure|ok|okay|the|my|new|e?mail|address|id) )*+")
_SENT = re.compile(r"\b(?:send|sent|e?mail|forward)\b[^.!?\n]{0,80} (?:to|at) \Z")
_NO_ADDRESS = words("telecom sitcom intercom dotcom romcom")
_SHORTEST_ANSWER = 8
_LEADING = re.compile(r"(?:[a-z]{1,30} ){1,2}\Z|[a-z]{1,30} [0-9]{1,8} \Z")
_NUMBERED_BEFORE = re.compile(r"(?<![\w.-])([a-z]{3,20}) [0-9]{1,4} \Z")
_NO_NAME = words("""is email mail id ids my its it at address adress to the on and this here are was as e or email_id your for of that
    in yes sure ok okay thanks great good sorry yeah hey new old correct right name change a an with use from send via by order ticket booking flight room phone case hi hello please me you gmail account name""")


def mailboxes(reading: Reading) -> Iterator[Span]:
    text = reading.text
    at = text.find("@")
    while at >= 0:
        reading.budget.spend(_COST)
        found = _around(text, at)
        if found:
            yield found
        at = text.find("@", found.end if found else at + 1)
    yield from _spoken(reading)


def _around(text: str, at: int) -> Span | None:
    """The address whose sign stands at `at`."""
    if " " in (text[at - 1 : at], text[at + 1 : at + 2]):
        return _apart(text, at)
    domain = _DOMAIN.match(text, at + 1)
    if domain is None or _FILE.match(domain[0]):
        return None
    start = _local_start(text, at)
    if start == at:
        start = _quoted_start(text, at)
    if start == at or _OFFICE.fullmatch(text, start, domain.end()):
        return None
    return Span(_first_start(text, start), domain.end(), KIND)


def _local_start(text: str, at: int) -> int:
    window = text[max(0, at - 64) : at]
    local = _LOCAL_BACKWARDS.match(window[::-1]) or _LOCAL_BACKWARDS_ANY.match(window[::-1])
    return at - len(local[0][::-1].lstrip(_SIGNS)) if local else at


def _first_start(text: str, start: int) -> int:
    """Where an address with several signs begins."""
    for _ in range(_MOST_SIGNS):
        if text[start - 1 : start] != "@" or (before := _local_start(text, start - 1)) == start - 1:
            break
        start = before
    return start


def _quoted_start(text: str, at: int) -> int:
    quoted = _QUOTED_BACKWARDS.match(text[max(0, at - 68) : at][::-1])
    return at - quoted.end() if quoted else at


def _apart(text: str, at: int) -> Span | None:
    """An address with a space beside its sign: "ana @ example.com", and not "dinner at 8 @ noon.ok" or "via @example.com"."""
    local = _WORD_BACKWARDS.match(text[max(0, at - 66) : at][::-1])
    domain = _PUBLIC_DOMAIN.match(text, at + 1)
    if local is None or domain is None or local[1][::-1].lower() in _NO_NAME:
        return None
    return Span(at - local.end(), domain.end(), KIND)


def _spoken(reading: Reading) -> Iterator[Span]:
    text = reading.text
    if _SPOKEN_MARK.search(text):
        yield from (Span(*found.span(), KIND) for found in _SPOKEN.finditer(text))
    lowered = reading.cues.text
    if any(hint in lowered for hint in PROVIDER_HINTS):
        for lost in PROVIDED.finditer(lowered):
            if lost["own"] not in _NO_NAME:
                yield Span(_numbered_before(lowered, lost.start()), lost.end(), KIND)
    at = lowered.find("com")
    while at >= 0:
        reading.budget.spend(_COM_COST)
        found = _glued(reading, lowered, at)
        if found:
            yield found
        at = lowered.find("com", at + 3)


def _glued(reading: Reading, lowered: str, at: int) -> Span | None:
    """An address whose signs were lost, by the provider's name before this "com" or by a cue before it."""
    ending = _COM.match(lowered, at)
    if ending is None:
        return None
    stop = at - 1 if at and lowered[at - 1] in " ." else at
    token = _TOKEN_BACKWARDS.match(lowered[max(0, stop - 48) : stop][::-1])
    begin = stop - (token.end() if token else 0)
    provider = _LOST_SIGNS.match(lowered, begin, stop)
    if provider is None or (stop - begin < _SHORTEST_GLUED and provider["own"]):
        told = _announced(reading, begin, stop) or _answered(lowered, begin, ending.end())
        return Span(_numbered_before(lowered, begin), ending.end(), KIND) if told else None
    start = _numbered_before(lowered, begin) if provider["own"] else _words_before(lowered, begin)
    if start is not None and ending.end() == len(lowered):
        start = _leading(lowered, start)
    return None if start is None else Span(start, ending.end(), KIND)


def _announced(reading: Reading, begin: int, stop: int) -> bool:
    """Whether "my e-mail is" stands before a word that is long enough to be one."""
    before = reading.cues.before(begin) if stop - begin >= _SHORTEST_GLUED else None
    return before is not None and before[0] == "email" and fills(before[1].replace("address", ""))


def _answered(lowered: str, begin: int, end: int) -> bool:
    """Whether a word that ends in "com" is all that the text says, or where something is sent."""
    start = _numbered_before(lowered, begin)
    if len(lowered) - end > _LONGEST_CLOSE or lowered[end:].strip(" .!") or lowered[begin:end] in _NO_ADDRESS:
        return False
    if end - begin < _SHORTEST_ANSWER and start == begin:
        return False
    if start <= _LONGEST_LEAD and _ANSWERED.fullmatch(lowered, 0, start):
        return True
    return _SENT.search(lowered, max(0, start - _LONGEST_ORDER), start) is not None


def _leading(lowered: str, start: int) -> int:
    """Where an address begins that is all that the text says: at its first word, unless that is no name."""
    before = lowered[:start] if start <= _LONGEST_LEAD else ""
    return 0 if _LEADING.match(before) and _NO_NAME.isdisjoint(before.split()) else start


def _numbered_before(lowered: str, at: int) -> int:
    """Where "lalit 564 " begins that stands before "aroragmailcom"."""
    before = _NUMBERED_BEFORE.search(lowered, max(0, at - 40), at)
    return at if before is None or before[1] in _NO_NAME else before.start()


def _words_before(lowered: str, at: int) -> int | None:
    """Where "john 123 " begins that stands before "gmailcom"."""
    before = _NAME_BEFORE.search(lowered, max(0, at - 40), at)
    if before is None or not before[0]:
        return None
    if before[1] and before[1] not in _NO_NAME:
        return before.start()
    start = before.end(1) + 1 if before[1] else before.start()
    return start if start < at else None
