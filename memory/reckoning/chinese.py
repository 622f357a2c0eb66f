"""Dates as Chinese writes them, in simplified and traditional characters."""

import re
from collections.abc import Callable
from datetime import date

from memory.observation import Interval
from memory.reckoning import calendar
from memory.reckoning.calendar import FUTURE, PAST, Rule, Spoken

_DIGITS = {
    "零": 0,
    "〇": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "兩": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
}
_NUMBER = r"[\d零〇一二两兩三四五六七八九十]"
_DAYS = {
    "大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "昨晚": -1, "昨夜": -1, "今天": 0, "今日": 0, "今晚": 0, "今早": 0,
    "明天": 1, "明日": 1, "明晚": 1, "明早": 1, "大后天": 3, "大後天": 3, "后天": 2, "後天": 2,
}  # fmt: skip
_YEARS = {"前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2, "後年": 2}
_TURNS = {"上上": -2, "上": -1, "这": 0, "這": 0, "本": 0, "下": 1, "下下": 2}
_UNITS = {
    "天": "day",
    "日": "day",
    "周": "week",
    "週": "week",
    "星期": "week",
    "礼拜": "week",
    "禮拜": "week",
    "月": "month",
    "年": "year",
}
_WEEKDAYS = {name: n for n, name in enumerate("一二三四五六")} | {"日": 6, "天": 6}
_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_WEEK = r"(?:周|週|星期|礼拜|禮拜)"
_TURN = r"(?P<turn>上上|下下|上|下|这|這|本)"

_LOOKING_BACK = re.compile(r"了|过|過|曾|已经|已經|刚|剛")
_LOOKING_AHEAD = re.compile(
    r"(?<![主重需])要|会(?!议|员|计)|會(?!議|員|計)|将|將|打算|计划|計劃|准备|準備|想|去(?![了过過年])|(?:决定|決定)了?|约好|約好|预计|預計|预定|預定"
)
_AWAITED = re.compile(r"截止|到期|预约|預約|婚礼|婚禮|考试|考試|面试|面試|航班|手术|手術|期限")
_HABIT = re.compile(r"[每逢][^，。；！？]{0,10}$")


def _number(digits: str) -> int:
    """Chinese or Arabic digits up to 99."""
    if digits.isascii():
        return int(digits)
    tens, ten, ones = digits.rpartition("十")
    if not ten:
        return int("".join(str(_DIGITS[one]) for one in digits))
    return 10 * (_DIGITS[tens] if tens else 1) + (_DIGITS[ones] if ones else 0)


def _lean(match: re.Match[str], spoken: Spoken) -> int:
    side = calendar.lean_of(spoken, match.start(), match.end(), _LOOKING_BACK, _LOOKING_AHEAD)
    return side or calendar.awaited(spoken, match.start(), match.end(), _AWAITED)


def _is_habit(match: re.Match[str], spoken: Spoken) -> bool:
    """每周一和周三, 每年5月, 每月8号: one of many."""
    return _HABIT.search(spoken.text[max(0, match.start() - 11) : match.start()]) is not None


def _year_of(match: re.Match[str], spoken: Spoken) -> int | None:
    if match["year"]:
        return _number(match["year"])
    return spoken.on.year + _YEARS[match["near"]] if match["near"] else None


def _date(match: re.Match[str], spoken: Spoken) -> Interval | None:
    number, monthday, year = _number(match["month"]), _number(match["day"]), _year_of(match, spoken)
    if year is None:
        return (
            None if _is_habit(match, spoken) else calendar.yearless(spoken.on, number, monthday, _lean(match, spoken))
        )
    return calendar.day(date(year, number, monthday))


def _span(match: re.Match[str], spoken: Spoken) -> Interval | None:
    """2023年5月29日至6月4日."""
    first = _year_of(match, spoken) or spoken.on.year
    last = int(match["until"]) if match["until"] else first
    start = date(first, _number(match["month"]), _number(match["day"]))
    return calendar.days(start, date(last, _number(match["lastmonth"]), _number(match["last"])))


def _month(match: re.Match[str], spoken: Spoken) -> Interval | None:
    number, year = _number(match["month"]), _year_of(match, spoken)
    if not 1 <= number <= 12:
        raise ValueError(number)
    if year is None:
        return None if _is_habit(match, spoken) else calendar.yearless(spoken.on, number, None, _lean(match, spoken))
    return calendar.month(year, number)


def _year(match: re.Match[str], spoken: Spoken) -> Interval:
    number = _number(match["year"]) if match["year"] else spoken.on.year + _YEARS[match["near"]]
    return calendar.season(number, _SEASONS[match["season"]]) if match["season"] else calendar.year(number)


def _monthday(match: re.Match[str], spoken: Spoken) -> Interval | None:
    """8号: of this month, or of the one beside it by the verb."""
    if _is_habit(match, spoken):
        return None
    on, monthday, side = spoken.on, _number(match["day"]), _lean(match, spoken)
    near = [calendar.month(on.year, on.month + shift).start.replace(day=monthday) for shift in (-1, 0, 1)]
    if side == PAST:
        return calendar.day(max(one for one in near if one <= on))
    return calendar.day(min(one for one in near if one >= on))


def _day(match: re.Match[str], spoken: Spoken) -> Interval:
    return calendar.day(spoken.on, _DAYS[match.group()])


def _week(match: re.Match[str], spoken: Spoken) -> Interval:
    """上周, 下周三, 这个周末."""
    shift = _TURNS[match["turn"]]
    if match["end"]:
        return calendar.weekend(spoken.on, shift)
    whole = calendar.week(spoken.on, shift)
    return calendar.day(whole.start, _WEEKDAYS[match["weekday"]]) if match["weekday"] else whole


def _weekday(match: re.Match[str], spoken: Spoken) -> Interval | None:
    if _is_habit(match, spoken):
        return None
    side = _lean(match, spoken)
    if match["end"]:
        return calendar.weekend(spoken.on, -1 if side == PAST and spoken.on.weekday() < 5 else 0)
    return calendar.weekday(spoken.on, _WEEKDAYS[match["weekday"]], side or FUTURE)


def _turned_month(match: re.Match[str], spoken: Spoken) -> Interval:
    return calendar.shifted(spoken.on, _TURNS[match["turn"]], "month")


def _counted(match: re.Match[str], spoken: Spoken) -> Interval:
    sign = -1 if match["side"] in {"前", "以前", "之前"} else 1
    return calendar.shifted(spoken.on, sign * _number(match["count"]), _UNITS[match["unit"]])


def _rule(pattern: str, read: Callable[[re.Match[str], Spoken], Interval | None]) -> Rule:
    return Rule(re.compile(pattern), read)


_YEAR = rf"(?:(?P<year>(?:19|20)\d\d|[一二][零〇九][零〇一二三四五六七八九]{{2}})\s?年|(?P<near>{'|'.join(_YEARS)}))"
_UNTIL = (
    rf"(?:(?P<until>(?:19|20)\d\d)\s?年)?(?P<lastmonth>{_NUMBER}{{1,3}})\s?月\s?(?P<last>{_NUMBER}{{1,3}})\s?[日号號]"
)
RULES = (
    _rule(
        rf"{_YEAR}(?P<month>{_NUMBER}{{1,3}})\s?月\s?(?P<day>{_NUMBER}{{1,3}})\s?[日号號](?:至|到|[-–~～—]){_UNTIL}",
        _span,
    ),
    _rule(rf"(?:{_YEAR}的?\s?)?(?P<month>{_NUMBER}{{1,3}})\s?月\s?(?P<day>{_NUMBER}{{1,3}})\s?[日号號]", _date),
    _rule(rf"(?:{_YEAR}的?\s?)?(?<![个個\d])(?P<month>{_NUMBER}{{1,3}})\s?月(?:份|(?!\s?{_NUMBER}))", _month),
    _rule(rf"{_YEAR}(?:的?(?P<season>[春夏秋冬])[天季]?)?", _year),
    _rule(rf"(?<!{_NUMBER})(?P<day>{_NUMBER}{{1,3}})[号號](?!楼|樓|线|線|门|門|店|房|院|码|碼)", _monthday),
    _rule("|".join(sorted(_DAYS, key=len, reverse=True)), _day),
    _rule(rf"{_TURN}(?:个|個)?(?:{_WEEK}(?:(?P<weekday>[一二三四五六日天])|(?P<end>末))?)", _week),
    _rule(rf"(?<![上下这這本个個每]){_WEEK}(?:(?P<weekday>[一二三四五六日天])|(?P<end>末))", _weekday),
    _rule(rf"{_TURN}(?:个|個)?月(?!\s?{_NUMBER})", _turned_month),
    _rule(
        rf"(?P<count>{_NUMBER}{{1,3}})\s?(?:个|個)?(?P<unit>{'|'.join(_UNITS)})(?P<side>以前|之前|前|以后|以後|之后|之後|后|後)",
        _counted,
    ),
)
