"""Dates as Portuguese and Spanish write them."""

import re
from collections.abc import Callable
from datetime import date

from memory.observation import Interval
from memory.reckoning import calendar
from memory.reckoning.calendar import FUTURE, PAST, UNKNOWN, Rule, Spoken

_MONTH_NAMES = (
    "janeiro enero", "fevereiro febrero", "março marzo", "abril", "maio mayo", "junho junio", "julho julio",
    "agosto", "setembro septiembre setiembre", "outubro octubre", "novembro noviembre", "dezembro diciembre",
)  # fmt: skip
_DAY_NAMES = (
    "segunda lunes",
    "terça martes",
    "quarta miércoles miercoles",
    "quinta jueves",
    "sexta viernes",
    "sábado sabado",
    "domingo",
)
_MONTHS = {name: n for n, names in enumerate(_MONTH_NAMES, 1) for name in names.split()} | {"marco": 3}
_WEEKDAYS = {name: n for n, names in enumerate(_DAY_NAMES) for name in names.split()} | {"terca": 1}
_COUNT_NAMES = (
    "um uma un una",
    "dois duas dos",
    "três tres",
    "quatro cuatro",
    "cinco",
    "seis",
    "sete siete",
    "oito ocho",
    "nove nueve",
    "dez diez",
)
_COUNTS = {name: n for n, names in enumerate(_COUNT_NAMES, 1) for name in names.split()}
_UNITS = {
    "dia": "day", "dias": "day", "día": "day", "días": "day", "semana": "week", "semanas": "week", "mês": "month", "mes": "month",
    "meses": "month", "ano": "year", "anos": "year", "año": "year", "años": "year",
    "fim de semana": "weekend", "fin de semana": "weekend", "final de semana": "weekend",
}  # fmt: skip
_WORDS = {
    "anteontem": -2, "antes de ontem": -2, "anteayer": -2, "antier": -2, "antes de ayer": -2, "ontem": -1, "ayer": -1, "anoche": -1,
    "hoje": 0, "hoy": 0, "esta noche": 0, "esta noite": 0, "esta mañana": 0, "esta manhã": 0, "hoje à noite": 0,
    "depois de amanhã": 2, "depois de amanha": 2, "pasado mañana": 2, "amanhã": 1, "amanha": 1,
}  # fmt: skip
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"


def _any(words: dict[str, int] | dict[str, str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_MONTH = rf"(?P<month>{_any(_MONTHS)})\b"
_COUNT = rf"(?P<count>\d{{1,3}}|{_any(_COUNTS)})"
_UNIT = rf"(?P<unit>{_any(_UNITS)})\b"
_WEEKDAY = rf"(?P<weekday>{_any(_WEEKDAYS)})(?:-feira)?\b(?!s)"
_BACK = r"(?:passad[oa]|pasad[oa]|últim[oa]|anterior)\b"
_AHEAD = r"(?:próxim[oa]|proxim[oa]|que\s(?:vem|viene)|seguinte|siguiente)"

_LOOKING_BACK = re.compile(
    r"\b(?!(?:vamos|estamos|at[eé]|café)\b)(?:foi|era|fui|fomos|tive|teve|estava|comprei|fiz|vi|fue|fuimos|tuve|estuve|hice|compré|desde|há|hace|[a-zà-ú]{2,20}(?:ei|ou|aram|eram|iram|amos|é|ó|aron|ieron|imos))\b",
    re.IGNORECASE,
)
_LOOKING_AHEAD = re.compile(
    r"\b(?:vou|vai|vamos|vão|irei|quero|queremos|pretend[oe]|pretendemos|preciso|tenho|voy|va|van|iré|quiero|pienso|pensamos|necesito|tengo"
    r"|até|hasta|plane[jio]o|planeamos|planejamos|planeando|planejando|plano|plan|queda\sen"
    r"|(?:decidi|decidí|decidimos|decidiu|decidió|decidiram|decidieron|combinamos|acordamos|resolvemos|acordé|combinei)\s(?:de\s|en\s)?[a-zà-ú]{1,20}[aeií]r"
    r"|chegam?|llegan?|começam?|empiezan?|comienzan?|abrem?|abren|vencem?|vencen|terminam?|terminan|partem?|parten|sale|sai"
    r"|marcad[oa]s?|agendad[oa]s?|programad[oa]s?|previst[oa]s?"
    r"|[a-zà-ú]{1,20}r(?:ei|á|ás|emos|ão|án|é))\b",
    re.IGNORECASE,
)
_AWAITED = re.compile(
    r"\b(?:prazo|plazo|consulta|cita|entrega|casamento|boda|voo|vuelo|reunião|reunión|prova|examen|exame|vencimento|vencimiento|cirurgia|cirugía)\b",
    re.IGNORECASE,
)
_HABIT = re.compile(
    r"\b(?:tod[oa]s?|cada)\s(?:[oa]s?\s|los\s|las\s)?(?:anos?|años?|mes|mês|meses)?\s?(?:,\s)?(?:em\s|en\s|el\s)?$",
    re.IGNORECASE,
)


def _lean(match: re.Match[str], spoken: Spoken) -> int:
    side = calendar.lean_of(spoken, match.start(), match.end(), _LOOKING_BACK, _LOOKING_AHEAD)
    return side or calendar.awaited(spoken, match.start(), match.end(), _AWAITED)


def _is_habit(match: re.Match[str], spoken: Spoken) -> bool:
    """Todo ano em julho, cada 5 de mayo: one of many."""
    return _HABIT.search(spoken.text[max(0, match.start() - 30) : match.start()]) is not None


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _COUNTS[word.lower()]


def _word(match: re.Match[str], spoken: Spoken) -> Interval:
    return calendar.day(spoken.on, _WORDS[" ".join(match["word"].lower().split())])


def _month_day(match: re.Match[str], spoken: Spoken) -> Interval | None:
    number, first, last = _MONTHS[match["month"].lower()], int(match["day"]), int(match["last"] or match["day"])
    if match["year"]:
        start = date(int(match["year"]), number, first)
    elif _is_habit(match, spoken):
        return None
    else:
        start = calendar.yearless(spoken.on, number, first, _lean(match, spoken)).start
    return calendar.days(start, start.replace(day=last))


def _month(match: re.Match[str], spoken: Spoken) -> Interval | None:
    number = _MONTHS[match["month"].lower()]
    if match["year"]:
        return calendar.month(int(match["year"]), number)
    if _is_habit(match, spoken):
        return None
    return calendar.yearless(spoken.on, number, None, _lean(match, spoken))


def _span(match: re.Match[str], _: Spoken) -> Interval | None:
    """29 de maio–4 de junho de 2023."""
    ends, last = (_MONTHS[match["month"].lower()], _MONTHS[match["until"].lower()]), int(match["year"])
    first = int(match["from"]) if match["from"] else last - (ends[0] > ends[1])
    return calendar.days(date(first, ends[0], int(match["day"])), date(last, ends[1], int(match["last"])))


def _numeric(match: re.Match[str], _: Spoken) -> Interval:
    return calendar.day(date(calendar.full_year(match["year"]), int(match["month"]), int(match["day"])))


def _turned(shift: int) -> Callable[[re.Match[str], Spoken], Interval]:
    def read(match: re.Match[str], spoken: Spoken) -> Interval:
        return calendar.shifted(spoken.on, shift, _UNITS[match["unit"].lower()])

    return read


def _counted(sign: int) -> Callable[[re.Match[str], Spoken], Interval | None]:
    def read(match: re.Match[str], spoken: Spoken) -> Interval | None:
        if sign > 0 and _lean(match, spoken) == PAST:
            return None  # "o fiz em três dias" says how long it took
        return calendar.shifted(spoken.on, sign * _count(match["count"]), _UNITS[match["unit"].lower()])

    return read


def _weekday(side: int) -> Callable[[re.Match[str], Spoken], Interval]:
    def read(match: re.Match[str], spoken: Spoken) -> Interval:
        lean = side if side != UNKNOWN else _lean(match, spoken)
        return calendar.weekday(spoken.on, _WEEKDAYS[match["weekday"].lower()], lean)

    return read


def _rule(pattern: str, read: Callable[[re.Match[str], Spoken], Interval | None]) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), read)


RULES = (
    _rule(
        rf"\b(?P<day>\d{{1,2}})\sde\s{_MONTH}(?:\sde\s(?P<from>(?:19|20)\d\d))?\s?[-–]\s?(?P<last>\d{{1,2}})\sde\s"
        rf"(?P<until>{_any(_MONTHS)})\sde\s{_YEAR}",
        _span,
    ),
    _rule(
        rf"\b(?P<day>\d{{1,2}})º?(?:\s?(?:-|–|a|e|y|ao|al)\s?(?P<last>\d{{1,2}}))?\s(?:de\s)?{_MONTH}(?:,?\s(?:de\s|del\s)?{_YEAR})?",
        _month_day,
    ),
    _rule(rf"\b{_MONTH}\s(?:de\s|del\s)?{_YEAR}", _month),
    _rule(rf"\b(?:em|en|desde|até|hasta|durante)\s{_MONTH}(?!\sde\s\d)(?P<year>)", _month),
    _rule(rf"\b(?:em|en|desde|de|del|até|hasta|ano|año)\s{_YEAR}", lambda match, _: calendar.year(int(match["year"]))),
    _rule(rf"\b(?P<word>{_any(_WORDS)})\b", _word),
    _rule(rf"\b(?:n?[oa]\s|el\s|la\s)?{_UNIT}\s{_BACK}", _turned(-1)),
    _rule(rf"\b(?:n?[oa]\s|el\s|la\s)?(?:últim[oa]|passad[oa])\s{_UNIT}", _turned(-1)),
    _rule(rf"\b(?:n?[oa]\s|el\s|la\s)?{_UNIT}\s{_AHEAD}\b", _turned(1)),
    _rule(rf"\b(?:n?[oa]\s|el\s|la\s)?{_AHEAD}\s{_UNIT}", _turned(1)),
    _rule(rf"\b(?:n?est[ea]|n?ess[ea])\s{_UNIT}", _turned(0)),
    _rule(rf"\b(?:há|ha|faz|hace)\s(?:cerca\sde\s|uns\s|unos\s|unas\s)?{_COUNT}\s{_UNIT}(?:\satrás)?", _counted(-1)),
    _rule(rf"\b{_COUNT}\s{_UNIT}\satrás\b", _counted(-1)),
    _rule(rf"\b(?:daqui\sa|dentro\sde|em|en)\s{_COUNT}\s{_UNIT}", _counted(1)),
    _rule(rf"\b(?:n?[oa]\s|el\s)?{_WEEKDAY}\s{_BACK}", _weekday(PAST)),
    _rule(rf"\b(?:n?[oa]\s|el\s)?(?:últim[oa]|passad[oa])\s{_WEEKDAY}", _weekday(PAST)),
    _rule(rf"\b(?:n?[oa]\s|el\s)?{_WEEKDAY}\s{_AHEAD}", _weekday(FUTURE)),
    _rule(rf"\b(?:n?[oa]\s|el\s)?{_AHEAD}\s{_WEEKDAY}", _weekday(FUTURE)),
    _rule(rf"\b(?:n[oa]|este|esta|el)\s{_WEEKDAY}", _weekday(UNKNOWN)),
)

# Only beside words of these languages is 03/04/2023 surely the third of April.
DAY_FIRST = _rule(r"\b(?P<day>\d{1,2})[/-](?P<month>\d{1,2})[/-](?P<year>(?:19|20)?\d\d)\b", _numeric)
