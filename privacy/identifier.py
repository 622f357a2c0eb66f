"""Ids of letters and digits: tax codes, health numbers, passports, licences, plates."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from privacy import check
from privacy.check import Check, stdnum
from privacy.reading import Reading
from privacy.span import Span

_TOKEN = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]{0,9}[0-9])[A-Za-z0-9]{7,18}(?![A-Za-z0-9])")
_TO_SHAPE = {**dict.fromkeys(range(65, 91), "A"), **dict.fromkeys(range(48, 58), "9")}
_COST = 12


@dataclass(frozen=True, slots=True)
class _Id:
    """Counts beside a cue of `families`; `alone`: also where the text is nothing but the id; `anywhere`: without either."""

    kind: str
    valid: Check
    families: frozenset[str]
    alone: bool
    anywhere: bool


def _id(kind: str, valid: Check, families: str, *, alone: bool = False, anywhere: bool = False) -> _Id:
    return _Id(kind, valid, frozenset(families.split()), alone, anywhere)


def _sure(_: str) -> bool:
    return True


_NIF = _id("ES_NIF", stdnum("es.nif"), "dni nif identity", anywhere=True)
_NIE = _id("ES_NIE", stdnum("es.nie"), "dni nif identity", anywhere=True)
_SHAPES: dict[str, tuple[_Id, ...]] = {
    "99999999A": (_NIF,),
    "9999999A": (
        _id("ES_NIF", lambda number: _NIF.valid("0" + number), "dni nif identity", anywhere=True),
        _id("IE_PPS", stdnum("ie.pps"), "identity nino"),
    ),
    "9999999AA": (_id("IE_PPS", stdnum("ie.pps"), "identity nino"),),
    "A9999999A": (
        _NIE,
        _id("SG_FIN", lambda number: number[0] in "STFGM" and _singapore(number), "nric identity", anywhere=True),
        _id("SG_FIN", lambda number: number[0] not in "XYZ", "nric identity", alone=True),
    ),
    "AA999999A": (_id("UK_NINO", check.nino, "nino", anywhere=True),),
    "AAAAA9999A": (
        _id("IN_PAN", check.pan, "pan", anywhere=True),
        _id("IN_PAN", _sure, "pan", alone=True),
    ),
    "AAA9999999": (_id("IN_VOTER", _sure, "voter"),),
    "A9999999": (
        _id("HK_ID", check.hong_kong, "nric identity"),
        _id("IN_PASSPORT", _sure, "passport"),
    ),
    "A99999999": (_id("US_PASSPORT", _sure, "passport"),),
    "A999999999": (
        _id("DE_HEALTH_INSURANCE", check.health_insurance, "kasse", alone=True),
        _id("TW_ID", check.taiwanese, "chinese identity"),
    ),
    "AAA999999": (_id("ES_PASSPORT", _sure, "passport"),),
    "99AAAAA9999A9A9": (_id("IN_GSTIN", check.gstin, "gst", anywhere=True),),
    "99AAAAA9999A9AA": (_id("IN_GSTIN", check.gstin, "gst", anywhere=True),),
    "99999999A999": (_id("DE_SOCIAL_SECURITY", check.pension, "rente", anywhere=True),),
    "99999999999999999A": (_id("CN_RIC", stdnum("cn.ric"), "chinese identity", anywhere=True),),
    "999999999AA9": (_id("PT_CC", stdnum("pt.cc"), "cc identity", anywhere=True),),
}
_PATTERNS = (  # ids whose letters and digits change places
    (
        re.compile(r"[A-Z]{6}[0-9A-Z]{2}[A-Z][0-9A-Z]{2}[A-Z][0-9A-Z]{3}[A-Z]"),
        _id("IT_FISCAL_CODE", check.fiscal, "fiscal", anywhere=True),
    ),
    (re.compile(r"[A-Z]{4}[0-9]{6}[A-Z]{6}[0-9A-Z][0-9]"), _id("MX_CURP", check.curp, "curp", anywhere=True)),
    (re.compile(r"[A-Z]{4}[0-9]{6}[A-Z0-9]{3}"), _id("MX_RFC", stdnum("mx.rfc"), "curp", anywhere=True)),
    (
        re.compile(r"[A-Z0-9]{5}[0-9]{6}[A-Z9]{2}[0-9A-Z]{3}"),
        _id("UK_DRIVING_LICENCE", check.uk_licence, "licence", anywhere=True),
    ),
    (
        re.compile(r"[1-9][A-Z][0-9A-Z][0-9][A-Z][0-9A-Z][0-9][A-Z]{2}[0-9]{2}"),
        _id("US_MBI", check.mbi, "medicare", anywhere=True),
    ),
    (re.compile(r"[0-9A-Z]{12}[0-9]{2}"), _id("CNPJ", stdnum("br.cnpj"), "cnpj", anywhere=True)),
    (
        re.compile(r"[CFGHJKLMNPRTVWXYZ][0-9CFGHJKLMNPRTVWXYZ]{7}[0-9]"),
        _id("DE_ID_CARD", check.machine_readable, "ausweis passport identity", alone=True),
    ),
    (re.compile(r"T[0-9]{8}"), _id("DE_ID_CARD", _sure, "ausweis identity", alone=True)),
    (re.compile(r"[DMSRGO][0-9]{3}[0-9A-Z][0-9]{4}"), _id("KR_PASSPORT", _sure, "passport", alone=True)),
)
# Ids with signs in them, by the kind of their first sign. Each is read without its signs by the table above.
_COMPANY = r"[0-9A-Za-z]\.[0-9A-Za-z]{3}\.[0-9A-Za-z]{3}/[0-9A-Za-z]{4}-[0-9]{2}"  # Brazil, behind its first sign
_PARTED = (
    re.compile(
        r"[0-9](?<![A-Za-z0-9][0-9])(?:"
        r"[0-9]{6,7}-[A-Za-z]"  # Spain
        r"|[0-9]{5}[-+A-Ya-y][0-9]{3}[0-9A-Za-z]"  # Finland
        r"|[A-Za-z][0-9A-Za-z][0-9]-[A-Za-z][0-9A-Za-z][0-9]-[A-Za-z]{2}[0-9]{2}"  # United States, Medicare
        r"|[0-9]{7} [0-9] [A-Za-z]{2}[0-9]"  # Portugal
        r"|[0-9] [0-9]{6} [A-Za-z] [0-9]{3}"  # Germany, pension
        rf"|{_COMPANY})(?![A-Za-z0-9])"
    ),
    re.compile(
        r"[A-Za-z](?<![A-Za-z0-9][A-Za-z])(?:"
        r"(?<=[XYZxyz])-?[0-9]{7}-?[A-Za-z]"  # Spain
        r"|[A-Za-z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-Da-d]"  # United Kingdom
        r"|[0-9]{6}\([0-9A]\)"  # Hong Kong
        r"|[A-Za-z]{5} [0-9A-Za-z]{2}[A-Za-z][0-9A-Za-z]{2} [A-Za-z][0-9A-Za-z]{3}[A-Za-z]"  # Italy
        rf"|{_COMPANY})(?![A-Za-z0-9])"
    ),
)
_HETU = re.compile(r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]")
_SIGNS = re.compile(r"[^A-Z0-9]")
_LOOSE = {  # family to kind, and how what follows the cue may look
    "passport": ("PASSPORT", re.compile(r"[A-Za-z]{0,3}[0-9][0-9A-Za-z]{4,8}(?<=[0-9A-Za-z]{8})")),
    "licence": (
        "DRIVER_LICENSE",
        re.compile(r"(?=[A-Za-z0-9]{0,14}[0-9]{3})[A-Za-z0-9]{6,18}|[0-9]{2,5}(?:-[0-9]{2,6}){1,3}"),
    ),
    "plate": (
        "LICENSE_PLATE",
        re.compile(
            r"[A-Za-z]{1,3}[ -]?(?=[A-Za-z]{0,2} ?[0-9])[A-Za-z0-9]{1,4}[ -]?[A-Za-z0-9]{0,4}|[0-9]{1,2}[ -]?[A-Za-z]{1,3}[ -]?[0-9]{2,4}"
        ),
    ),
    "account": ("ACCOUNT_NUMBER", re.compile(r"(?=[A-Za-z]{0,6}[0-9])[A-Za-z0-9]{6,18}")),
    "member": ("ACCOUNT_NUMBER", re.compile(r"(?=[A-Za-z-]{0,8}[0-9])[A-Za-z0-9-]{5,20}")),
    "registration": ("REGISTRATION_NUMBER", re.compile(r"[0-9]{5,10}-?[A-Za-z]")),
    "ausweis": ("DE_ID_CARD", re.compile(r"[A-Za-z][0-9A-Za-z]{8}")),
    "voter": ("IN_VOTER", re.compile(r"[A-Za-z]{3}[0-9]{7}")),
    "ctps": ("BR_CTPS", re.compile(r"[0-9]{5,8}/[0-9]{3,5}(?:-[A-Z]{2})?")),
    "record": ("MEDICAL_RECORD", re.compile(r"(?=[A-Za-z-]{0,4}[0-9])[A-Za-z0-9/-]{5,16}")),
}
_END = re.compile(r"(?![A-Za-z0-9])")
_GAP = re.compile(
    r"[ \t:#=.,\"'-]{0,4}(?:(?:is|number|no|nr|num|id|é|es|ist|nº|n|card|my|do|da|of|the|veículo|veiculo|vehicle|car|carro)[\s:#=.º°\"']{1,3}){0,3}",
    re.IGNORECASE,
)


def _singapore(number: str) -> bool:
    total = sum(int(digit) * weight for digit, weight in zip(number[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True))
    total += {"T": 4, "G": 4, "M": 3}.get(number[0], 0)
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "XWUTRQPNJLK"}.get(number[0], "XWUTRQPNMLK")
    return letters[total % 11] == number[8]


def identifiers(reading: Reading) -> Iterator[Span]:
    text = reading.text
    for token in _TOKEN.finditer(text):
        yield from _named(reading, token)
    for parted in _PARTED:
        for token in parted.finditer(text):
            yield from _named(reading, token)
    yield from _announced(reading)


def _named(reading: Reading, token: re.Match[str]) -> Iterator[Span]:
    written = token[0].upper()
    if _HETU.fullmatch(written) and check.finnish(written):
        yield Span(*token.span(), "FI_PERSONAL_IDENTITY_CODE")
    number = _SIGNS.sub("", written)
    if number.isdigit():
        return
    one_case = token[0].isupper() or token[0].islower()
    reading.budget.spend(1)
    for known in _candidates(number):
        if (
            (known.anywhere and one_case)
            or reading.beside(*token.span(), known.families)
            or (known.alone and reading.alone(*token.span()))
        ):
            reading.budget.spend(_COST)
            if known.valid(number):
                yield Span(*token.span(), known.kind)
                return


def _candidates(number: str) -> Iterator[_Id]:
    yield from _SHAPES.get(number.translate(_TO_SHAPE), ())
    for shape, known in _PATTERNS:
        if shape.fullmatch(number):
            yield known


def _announced(reading: Reading) -> Iterator[Span]:
    """What stands right behind a cue and looks like what the cue says."""
    cues = reading.cues
    for end, family in zip(cues.ends, cues.families, strict=True):
        loose = _LOOSE.get(family)
        if loose is None:
            continue
        gap = _GAP.match(reading.text, end)
        value = loose[1].match(reading.text, gap.end() if gap else end)
        if value and value.start() > end and _END.match(reading.text, value.end()) and _telling(value[0]):
            yield Span(*value.span(), loose[0])


def _telling(value: str) -> bool:
    """Not an example ("AA000000")."""
    digits = [sign for sign in value if sign.isdigit()]
    return len(digits) > 1 and len(set(digits)) > 1
