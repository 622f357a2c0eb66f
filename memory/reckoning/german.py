"""Dates as German writes them."""

from memory.reckoning.tongue import Tongue, rules_of
from memory.reckoning.words import numbered

GERMAN = Tongue(
    months=numbered(
        (
            "januar jänner jan", "februar feber feb", "märz maerz mär", "april apr", "mai", "juni jun", "juli jul", "august aug",
            "september sept sep", "oktober okt", "november nov", "dezember dez",
        ),
        1,
    ),
    weekdays=numbered(("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag sonnabend", "sonntag"), 0),
    words={
        "vorvorgestern": -3, "vorgestern": -2, "gestern": -1, "gestern abend": -1, "gestern morgen": -1, "letzte nacht": -1, "heute": 0, "heute morgen": 0,
        "heute abend": 0, "heute nacht": 0, "morgen": 1, "morgen früh": 1, "morgen abend": 1, "übermorgen": 2,
    },
    units={
        "tag": "day", "tage": "day", "tagen": "day", "woche": "week", "wochen": "week", "wochenende": "weekend", "monat": "month",
        "monate": "month", "monaten": "month", "jahr": "year", "jahre": "year", "jahren": "year",
    },
    counts=numbered(
        (
            "ein eine einem einer einen", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf",
        ),
        1,
    ),
    last=r"(?:am\s|im\s)?(?:letzte[nmrs]?|vorige[nmrs]?|vergangene[nmrs]?)",
    next=r"(?:am\s|im\s)?(?:nächste[nmrs]?|kommende[nmrs]?)",
    this=r"(?:diese[nmrs]?)",
    counted_back=(r"vor\s(?:etwa\s|rund\s)?{n}",),
    counted_ahead=(r"in\s(?:etwa\s)?{n}",),
    before_month=r"(?:anfang|mitte|ende|im|seit|bis|ab)",
    before_year=r"(?:im\sjahr|jahr|seit|bis|in)",
    before_weekday=r"(?:am|diesen)",
    turn_follows=False,
    habit=r"jede[nmrs]?|alle|immer",
    back=(
        r"war|waren|hatte|hatten|habe|haben|hat|bin|wurde|wurden|kam|ging|seit|ge[a-zäöüß]{2,20}(?:t|en)|(?:ver|be|er|ent)[a-zäöüß]{2,20}t"
    ),
    ahead=(
        r"wird|werde|werden|will|wollen|soll|sollen|möchte|möchten|muss|müssen|plane|planen|bis|fällig|beginnt|beginnen|öffnet|eröffnen|öffnen"
        r"|kommt|findet|ziehe|ziehen|fliege|fliegen|fahre|fahren|reise|reisen|beschlossen|entschieden|geplant|termin|frist"
    ),
    never_after=r"am|jeden|guten|schönen|der|den|einen|diesen|eines|bis\szum",
)  # fmt: skip
RULES = rules_of(GERMAN)
