"""Dates as Italian writes them."""

from memory.reckoning.tongue import Tongue, rules_of
from memory.reckoning.words import numbered

ITALIAN = Tongue(
    months=numbered(
        (
            "gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre", "ottobre", "novembre", "dicembre",
        ),
        1,
    ),
    weekdays=numbered(
        ("lunedì lunedi", "martedì martedi", "mercoledì mercoledi", "giovedì giovedi", "venerdì venerdi", "sabato", "domenica"), 0
    ),
    words={
        "l'altro ieri": -2, "altro ieri": -2, "ieri": -1, "ieri sera": -1, "ieri notte": -1, "oggi": 0, "stasera": 0, "stamattina": 0,
        "stanotte": 0, "domani": 1, "domani mattina": 1, "domani sera": 1, "dopodomani": 2,
    },
    units={
        "giorno": "day", "giorni": "day", "settimana": "week", "settimane": "week", "fine settimana": "weekend", "weekend": "weekend",
        "mese": "month", "mesi": "month", "anno": "year", "anni": "year",
    },
    counts=numbered(("un uno una", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci", "undici", "dodici"), 1),
    last=r"scors[oa]|passat[oa]|ultim[oa]",
    next=r"prossim[oa]|che\sviene",
    this=r"quest[oa]",
    counted_back=(r"{n}\sfa",),
    counted_ahead=(r"(?:tra|fra)\s(?:circa\s)?{n}",),
    before_month=r"in|a|ad|da|dal|fino\sa|entro|nel\smese\sdi|inizio|metà|fine",
    before_year=r"nel|dal|in|del",
    before_weekday=r"questo|questa",
    turn_follows=True,
    habit=r"ogni|tutti\si|tutte\sle",
    back=r"era|erano|ero|fu|ho|hai|ha|abbiamo|hanno|sono|stato|stata|siamo|da|[a-zà-ù]{2,20}(?:ato|ata|ati|ate|uto|uta|ito|ita)",
    ahead=(
        r"vado|va|andiamo|voglio|vogliamo|devo|dobbiamo|intendo|penso\sdi|previst[oa]|programmat[oa]|deciso\sdi\s[a-z]{2,20}|apre|inizia|comincia"
        r"|arriva|parte|scadenza|scade|appuntamento|entro|[a-zà-ù]{1,20}r(?:ò|à|ai|emo|anno)"
    ),
)  # fmt: skip
RULES = rules_of(ITALIAN)
