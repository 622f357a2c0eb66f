"""Phone numbers: in full with their country anywhere, in a national form by region, shape or cue.

Numbers are judged by the metadata of phonenumbers (a number is valid when its digits fit a kind of line that exists),
one candidate at a time, because the package's own matcher rescans the text once for each region.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from privacy.cue import fills
from privacy.numbering import has_country, is_mobile, is_personal
from privacy.reading import Reading
from privacy.span import Span
from privacy.vocabulary import OTHER

Group = tuple[int, int]

KIND = "PHONE_NUMBER"
FEWEST, MOST = 7, 15  # digits
_MOST_GROUPS = 8
_MOBILE = 11  # digits that an answer of nothing but a mobile number has, with the zero before it
_GROUP = re.compile("[0-9]+")
_CHAIN = re.compile(  # groups that nothing but a phone number's signs part; the look ahead lets short ones go at once
    r"[0-9](?<![0-9][0-9])(?=[0-9 .\-–/()]{6})[0-9]*+"
    r"(?:(?: ?[-.–/]? ?|[ .\-]?\( ?| ?\)[ .\-/]{0,2}|\)\()(?=[0-9])[0-9]++)*+"
)
_CUT = re.compile(r"(?<=[0-9]{4})[ .\-)]?\( ?")  # where one number ends and the next begins
_CUT_DASHED = re.compile(rf"{_CUT.pattern}|(?<=[0-9]) {{1,2}}(?=[0-9])")
_EXTENSION = re.compile(r"\s?(?:x|ext\.?|ramal|poste|anexo)\s?[0-9]{1,6}(?![0-9])", re.IGNORECASE)
_DATE = re.compile(
    r"(?<![0-9])(?:[0-3]?[0-9]([-./])[0-3]?[0-9]\1(?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}([-./])[0-1]?[0-9]\2[0-3]?[0-9])(?![0-9])"
)
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[0-9]{1,2})"
_QUAD = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_NORTH_AMERICAN = re.compile("1?[2-9][0-9]{2}[2-9][0-9]{6}")  # unassigned codes too: written so, it is a phone number
_INSTITUTION = re.compile(
    "0800[0-9]{6,7}|0300[0-9]{7}|1?8(?:00|33|44|55|66|77|88)[2-9][0-9]{6}|1800[0-9]{6,7}"
)  # free lines
_WITH_COUNTRY = frozenset(("2-3-3-4", "2 3 3 4", "2-5-5"))  # a country's code without its plus
_LINK = re.compile(r"(?:wa\.me/|tel:|sms:|callto:|[?&]phone=)\+?\Z", re.IGNORECASE)
_EPOCH_SECONDS = range(1_400_000_000, 2_200_000_000)
_LOOK_COST = 8  # at one row of groups
_COST = 6

# Lengths of groups and what parts them, for numbers that people write without their country and without a word of warning.
_SHAPES = {
    "3-3-4": ("US",),
    "3.3.4": ("US",),
    "3 3 4": ("US",),
    "3 3-4": ("US",),
    "1-3-3-4": ("US",),
    "1 3 3 4": ("US",),
    "1 3-3-4": ("US",),
    "1.3.3.4": ("US",),
    "2 5-4": ("BR",),
    "2 4-4": ("BR",),
    "2-5-4": ("BR",),
    "2-4-4": ("BR",),
    "2 1 4-4": ("BR",),
    "2 5 4": ("BR",),
    "3 2 2 2": ("ES",),
    "3-2-2-2": ("ES",),
    "2 3 2 2": ("ES",),
    "3 3 2 2": ("TR",),
    "3.3.2.2": ("TR",),
    "3-3-2-2": ("TR",),
    "5 5": ("IN",),
    "5-5": ("IN",),
}


def phones(reading: Reading) -> Iterator[Span]:
    """Every phone number, extension included."""
    for chain in _CHAIN.finditer(reading.text):
        start, end = chain.span()
        if end - start >= FEWEST:
            found = list(_numbers(reading, start, end))
            yield from found or (span for cluster in _clusters(chain) for span in _numbers(reading, *cluster))


def _numbers(reading: Reading, start: int, end: int) -> Iterator[Span]:
    """The numbers that follow each other in a chain of groups, from its first on."""
    while chain := [group.span() for group in islice(_GROUP.finditer(reading.text, start, end), _MOST_GROUPS)]:
        found = _number(reading, chain)
        if found is None:
            return
        extension = _EXTENSION.match(reading.text, found.end)
        yield Span(found.start, extension.end() if extension else _closed(reading.text, found), KIND)
        start = found.end


def _closed(text: str, found: Span) -> int:
    """A bracket that the number opened and left open belongs to it."""
    return (
        found.end + 1 if text[found.end : found.end + 1] == ")" and "(" in text[found.start : found.end] else found.end
    )


def _clusters(chain: re.Match[str]) -> Iterator[Group]:
    """The chain, cut where one number ends and the next begins: before a bracket, or where spaces part dashed ones."""
    first, written = chain.start(), chain[0]
    if "(" not in written and " " not in written:
        return
    for cut in (_CUT_DASHED if "-" in written or "." in written else _CUT).finditer(written):
        yield first, chain.start() + cut.start()
        first = chain.start() + cut.end()
    if first > chain.start():
        yield first, chain.end()


def _number(reading: Reading, chain: Sequence[Group]) -> Span | None:
    if sum([end - start for start, end in chain]) < FEWEST:
        return None
    reading.budget.spend(_LOOK_COST)
    text = reading.text
    start = chain[0][0]
    lead = text[max(0, start - 2) : start]
    link = _LINK.search(text, max(0, start - 12), start) is not None
    if lead.endswith("+") or lead in ("+(", "+ ") or link:
        first = start - (len(lead) - lead.find("+") if "+" in lead else 0)
        found = _international(reading, chain, first, sure=link)
        if found:
            return found
    if text.startswith("00", start) and text[start + 2 : start + 3] != "0":
        abroad = _abroad(reading, chain)
        if abroad:
            return abroad
    if _bound(text, chain) and not _other_numbers(text, start, chain[-1][1]):
        return _national(reading, chain, start)
    return None


def _bound(text: str, chain: Sequence[Group]) -> bool:
    """Whether no letter, sign or comma makes the chain a part of something longer."""
    start, end = chain[0][0], chain[-1][1]
    before, after = text[start - 1 : start], text[end : end + 2]
    further = text[max(0, start - 2) : max(0, start - 1)]
    if before and before in "_#$€£¥":
        return False
    if (before in ",'" and further.isdigit()) or (before in "-/." and further.isalnum()):
        return False
    if before.isalpha() and before.isascii() and not _glued_words(text, start):
        return False
    if after[:1] in ("_", "%", "€", "$", "£", "°") or (
        after[:1].isalpha() and after[:1].isascii() and after[:1] not in "xX"
    ):
        return False
    return not (after[:1] in ".:" and after[1:].isdigit())


_GLUED = re.compile(r"(?:\bis|\bat|tel|phone|fone|cel|call|zap|whatsapp|mobile)[.:]?\Z", re.IGNORECASE)


def _glued_words(text: str, start: int) -> bool:
    return _GLUED.search(text, max(0, start - 10), start) is not None


def _other_numbers(text: str, start: int, end: int) -> bool:
    return _DATE.search(text, start, end) is not None or _QUAD.fullmatch(text, start, end) is not None


def _international(reading: Reading, chain: Sequence[Group], start: int, *, sure: bool) -> Span | None:
    """The longest run of the groups that is a number with its country; else, of several groups, the longest that may be."""
    for possible in (False, True):
        for count in range(min(len(chain), _MOST_GROUPS), 0, -1):
            digits = _digits(reading.text, chain[:count])
            if not FEWEST < len(digits) <= MOST:
                continue
            reading.budget.spend(_COST)
            if has_country(digits, possible=possible and (count > 1 or sure)):
                return Span(start, chain[count - 1][1], KIND)
    return None


def _abroad(reading: Reading, chain: Sequence[Group]) -> Span | None:
    """A number with its country behind the two zeros that call abroad."""
    told = not reading.families(chain[0][0], chain[0][1]).isdisjoint(("phone", "call"))
    for count in range(min(len(chain), _MOST_GROUPS), 0 if told else 2, -1):
        digits = _digits(reading.text, chain[:count])[2:]
        if FEWEST < len(digits) <= MOST and has_country(digits, possible=False):
            return Span(chain[0][0], chain[count - 1][1], KIND)
    return None


def _national(reading: Reading, chain: Sequence[Group], start: int) -> Span | None:
    digits = _digits(reading.text, chain[:_MOST_GROUPS])
    if reading.known.is_number(digits):
        return Span(_opened(reading.text, start), chain[-1][1], KIND)
    before = reading.cues.before(start)
    family = before[0] if before else ""
    if before and family in ("phone", "call"):
        return _announced(reading, chain, strong=family == "phone" and fills(before[1]))
    if reading.cues.after(chain[-1][1]) == "phone" and len(chain) < _MOST_GROUPS:
        return _announced(reading, chain, strong=False)
    if family in OTHER or len(digits) > MOST or not _shaped(reading, chain, digits):
        return None
    return Span(_opened(reading.text, start), chain[-1][1], KIND)


def _digits(text: str, chain: Sequence[Group]) -> str:
    return "".join([text[start:end] for start, end in chain])


def _opened(text: str, start: int) -> int:
    return start - 1 if text[start - 1 : start] == "(" else start


def _announced(reading: Reading, chain: Sequence[Group], *, strong: bool) -> Span | None:
    """A number behind a word such as "phone": a valid one, or any that could be dialled where the word is strong."""
    dialled = None
    for count in range(min(len(chain), _MOST_GROUPS), 0, -1):
        digits = _digits(reading.text, chain[:count])
        if not FEWEST <= len(digits) <= MOST or not digits.strip("0"):
            continue
        reading.budget.spend(_COST)
        if _INSTITUTION.fullmatch(digits):
            return None
        found = Span(_opened(reading.text, chain[0][0]), chain[count - 1][1], KIND)
        if _valid(reading, digits) or _shaped(reading, chain[:count], digits):
            return found
        dialled = dialled or found
    return dialled if strong else None


def _valid(reading: Reading, digits: str) -> bool:
    return int(digits) not in _EPOCH_SECONDS and is_personal(digits, reading.regions)


def _shaped(reading: Reading, chain: Sequence[Group], digits: str) -> bool:
    """Whether the groups are written the way a region writes its numbers, and the number exists there."""
    if not FEWEST < len(digits) <= MOST:
        return False
    if len(chain) == 1:
        return len(digits) == _MOBILE and reading.alone(*chain[0]) and is_mobile(digits, reading.regions)
    if _INSTITUTION.fullmatch(digits):
        return False
    start = chain[0][0]
    shape = _shape(reading.text, chain)
    if (reading.text[start - 1 : start] == "(" and ")" in reading.text[start : chain[1][0]]) or (
        digits[0] == "0" and _zero_led(shape)
    ):
        regions = reading.regions
    elif shape in _WITH_COUNTRY:
        return has_country(digits, possible=False)
    else:
        regions = tuple(region for region in _SHAPES.get(shape, ()) if region in reading.regions)
    if "US" in regions and _NORTH_AMERICAN.fullmatch(digits):
        return True
    reading.budget.spend(min(len(regions), _COST))
    return is_personal(digits, regions)


def _zero_led(shape: str) -> bool:
    """A trunk prefix, and groups of two digits or more parted by one kind of sign; the last four may have a dash."""
    lengths = [int(length) for length in re.findall("[0-9]+", shape)]
    signs = re.sub("[0-9]", "", shape)
    regular = len(set(signs)) == 1 or (set(signs[:-1]) == {" "} and signs[-1] == "-" and lengths[-1] == 4)
    if "/" in signs and (len(lengths) != 2 or lengths[1] < 5):  # "030/1234567", no date and no law
        return False
    return regular and min(lengths[1:]) > 1 and (lengths[0] > 1 or len(lengths) > 3) and lengths[0] < 6


def _shape(text: str, chain: Sequence[Group]) -> str:
    parts = [str(chain[0][1] - chain[0][0])]
    for (_, end), (start, stop) in pairwise(chain):
        gap = text[end:start].strip("() ") or " "
        parts += [gap[0], str(stop - start)]
    return "".join(parts)
