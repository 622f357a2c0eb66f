"""Days of the calendar as a note writes them."""

from datetime import date, timedelta

from memory.observation import Interval

_MONTHS = {
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "pt": [
        "janeiro",
        "fevereiro",
        "março",
        "abril",
        "maio",
        "junho",
        "julho",
        "agosto",
        "setembro",
        "outubro",
        "novembro",
        "dezembro",
    ],
    "es": [
        "enero",
        "febrero",
        "marzo",
        "abril",
        "mayo",
        "junio",
        "julio",
        "agosto",
        "septiembre",
        "octubre",
        "noviembre",
        "diciembre",
    ],
}


def written(interval: Interval, language: str = "en") -> str:
    """7 May 2023, 5-11 June 2023 (with a dash), June 2023, 2022; pt, es and zh in their own way, others as English."""
    start, end = interval.start, interval.end
    if start == end:
        return _day(start, language)
    if (start.month, start.day, end.month, end.day) == (1, 1, 12, 31) and start.year == end.year:
        return f"{start.year}年" if language == "zh" else str(start.year)
    if start.day == 1 and (end + timedelta(days=1)).day == 1 and _same_month(start, end):
        return _month(start, language)
    if language == "zh":
        return f"{_day(start, language)}至{_day(end, language)}"
    if _same_month(start, end):
        return f"{start.day}–{_day(end, language)}"
    if start.year == end.year:
        return f"{_day(start, language).removesuffix(_year(start, language))}–{_day(end, language)}"
    return f"{_day(start, language)}–{_day(end, language)}"


def _same_month(start: date, end: date) -> bool:
    return (start.year, start.month) == (end.year, end.month)


def _day(on: date, language: str) -> str:
    if language == "zh":
        return f"{on.year}年{on.month}月{on.day}日"
    of = " de" if language in {"pt", "es"} else ""
    return f"{on.day}{of} {_name(on, language)}{_year(on, language)}"


def _month(on: date, language: str) -> str:
    if language == "zh":
        return f"{on.year}年{on.month}月"
    return f"{_name(on, language)}{_year(on, language)}"


def _name(on: date, language: str) -> str:
    return _MONTHS.get(language, _MONTHS["en"])[on.month - 1]


def _year(on: date, language: str) -> str:
    return f" de {on.year}" if language in {"pt", "es"} else f" {on.year}"
