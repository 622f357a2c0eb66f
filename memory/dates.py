"""When a text speaks of: its dates, absolute and relative, as days of the calendar."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from memory.observation import Interval
from memory.reckoning import calendar, chinese, english_absolute, english_relative, french, german, italian, romance
from memory.reckoning.calendar import Found, Rule, Spoken
from memory.reckoning.language import language_of
from memory.wordlist import listed


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a text (characters `start` to `end`) speaks of days, and which."""

    start: int
    end: int
    interval: Interval


def resolve(text: str, said_at: datetime) -> list[Mention]:
    """The dates in `text`, in its order, never overlapping; relative ones count from the day of `said_at` in its own offset.

    English, Portuguese, Spanish, German, French, Italian and Chinese. What is vague ("recently"), habitual ("every Friday") or ambiguous
    (03/04/2023 in English) yields none.
    """
    spoken = Spoken(text, said_at.date())
    found = [one for rule in _rules(text) for one in rule.find(spoken)]
    return [Mention(start, end, interval) for start, end, interval in _longest(found) if interval is not None]


def _rules(text: str) -> Iterator[Rule]:
    """The rules that may find something: most texts hold no word of a date at all, and looking for one is cheap."""
    words = frozenset(_WORD.findall(text.lower()))
    digits = _DIGIT.search(text) is not None
    romance_here = not _ROMANCE.isdisjoint(words)
    if digits:
        yield from _NUMERIC
    if digits or not _ENGLISH.isdisjoint(words):
        yield from english_absolute.RULES
        yield from english_relative.RULES
    if romance_here:
        yield from romance.RULES
    if digits and (romance_here or not _SPOKEN_ROMANCE.isdisjoint(words)):
        yield romance.DAY_FIRST
    yield from _tongues_rules(text, words)
    if _CHINESE.search(text):
        yield from chinese.RULES


def _tongues_rules(text: str, words: frozenset[str]) -> Iterator[Rule]:
    """Those of a language of which words of dates stand here that no other has, or in which all the text is."""
    for language, vocabulary, rules in _TONGUES:
        if vocabulary.isdisjoint(words):
            continue
        if not (vocabulary - _SHARED).isdisjoint(words) or language_of(text) == language:
            yield from rules


def _longest(found: list[Found]) -> list[Found]:
    """Of overlapping finds the longest stays, and of two equally long the one whose rule stands first."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda each: (each[0], each[0] - each[1])):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
        elif one[1] - one[0] > kept[-1][1] - kept[-1][0]:
            kept[-1] = one
    return kept


def _iso(match: re.Match[str], _: Spoken) -> Interval:
    return calendar.day(date(int(match["year"]), int(match["month"]), int(match["day"])))


def _numeric(match: re.Match[str], _: Spoken) -> Interval | None:
    """Day first or month first: only where the numbers, or the dots, leave no choice."""
    first, second, year = int(match["first"]), int(match["second"]), calendar.full_year(match["year"])
    if match["mark"] == ".":
        return calendar.day(date(year, second, first))
    if first != second and first <= 12 and second <= 12:
        return None
    return calendar.day(date(year, min(first, second), max(first, second)))


_NUMERIC = (
    Rule(re.compile(r"\b(?P<year>(?:19|20)\d\d)([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?=\D|T|$)"), _iso),
    Rule(
        re.compile(r"\b(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second>\d{1,2})(?P=mark)(?P<year>(?:19|20)\d\d)\b"),
        _numeric,
    ),
    Rule(re.compile(r"\b(?P<first>\d{1,2})(?P<mark>/)(?P<second>\d{1,2})/(?P<year>\d\d)\b(?!/)"), _numeric),
)
_TONGUES = tuple(
    (language, frozenset(tongue.vocabulary()), rules)
    for language, tongue, rules in (
        ("de", german.GERMAN, german.RULES),
        ("fr", french.FRENCH, french.RULES),
        ("it", italian.ITALIAN, italian.RULES),
    )
)
# Words that other languages have as well: these alone do not show which language a text is in.
_SHARED = frozenset(
    listed(
        """
    morgen tag mai april august september november jan jun jul aug sep sept feb apr hier mars an ans end weekend jour matin soir marzo agosto
    sera notte sonntag
    """
    )
)
_WORD = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")
_CHINESE = re.compile(r"[天日晚早夜周週星期月年礼禮号號]")
_ENGLISH = frozenset(
    listed(
        """
    yesterday today tonight tomorrow morning afternoon evening night nights day days week weeks weekend weekends
    month months year years monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur
    thurs fri sat sun january february march april may june july august september october november december jan
    feb mar apr jun jul aug sep sept oct nov dec spring summer autumn fall winter christmas halloween eve boxing
    valentine
    """
    )
)
_ROMANCE = frozenset(
    listed(
        """
    ontem anteontem hoje amanhã amanha ayer antier anteayer anoche hoy mañana semana semanas mês mes meses ano
    anos año años dia dias día días próximo próxima proximo proxima segunda terça terca quarta quinta sexta sábado
    sabado domingo lunes martes miércoles miercoles jueves viernes desde de em en esta este essa esse noche noite
    manhã
    """
    )
)
# Beside these words 03/04/2023 is surely the third of April.
_SPOKEN_ROMANCE = frozenset(
    listed(
        """
    em no na não dia até para foi uma del el los las una hasta día fue mi meu minha que com con nasci nací
    """
    )
)
