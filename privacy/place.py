"""Where somebody lives, and when they were born: only beside a cue, because places and dates belong to everybody."""

import re
from collections.abc import Iterator

from privacy.reading import Reading
from privacy.span import Span
from privacy.vocabulary import words

_LONGEST = 120
_SHORTEST = 6
_DOOR = re.compile(
    r"(?<![0-9])(?!(?:19|20)[0-9]{2}(?![0-9]))[0-9](?![0-9]* (?:anos|meses|dias|years|months|weeks|days|hours|minutes|km|miles))"
)
_KEY = re.compile(r"(?:_?line)?_?[12]?\\{0,3}\"\s{0,2}:\s{0,2}\\{0,3}\"(?P<value>[^\"\\\n<]{3,160})\\{0,3}\"")
_BEHIND_ADDRESS = re.compile(
    r"(?:es)?(?: residencial| residential| here| line ?[12]|\(es\))?(?:\s{0,2}(?:is|are|was|to|é|es|est|ist|fica|now|below|as follows)\b|,? here they are)*"
    r"\s{0,2}[:\-]?\s{0,3}",
    re.IGNORECASE,
)
_BEHIND_LIVING = re.compile(
    r"\s{1,2}(?:now |currently |here )?(?:at|in|on|to|with|na|no|em|à|d[aeo](?: endereço)?|en|in der|am|au|à|fica na)?:?\s{1,3}|:\s{0,3}",
    re.IGNORECASE,
)
# "I live at 12 Elm" names a door; "I moved to Porto 4 years after" and "to Python 3.12" name none: there a street must stand.
_AT = re.compile(r"\s(?:at|na|no)\b|:", re.IGNORECASE)
_STREET = re.compile(
    r"\b(?:street|st|road|rd|avenue|ave|av|lane|ln|drive|dr|boulevard|blvd|court|square|way|close|terrace|place|apt|suite|flat|p\.?o\.? box"
    r"|rua|avenida|travessa|largo|praça|praca|alameda|estrada|quadra|bloco|calle|plaza|paseo|carrera|via|viale|piazza|corso|rue|chemin"
    r"|[a-zäöüß]{2,30}(?:stra(?:ß|ss)e|str\.?|weg|platz|gasse))\b",
    re.IGNORECASE,
)
_ADDRESSES = words(
    "address addresses addr endereço endereco dirección direccion adresse indirizzo street addressline streetaddress logradouro residência residencia"
)
_MACHINES = re.compile(r"\b(?:wallet|e-?mail|mail|ip|mac|web|site|bitcoin|btc|hardware|physical|url)[ _]\Z")
_ELECTRONIC = re.compile(r" (?:electr|eletr|élec|elett)|(?: is| of|:)? ?(?:https?:|www\.)", re.IGNORECASE)
_STOP = re.compile(
    r"[\"\\<>{}|!?@]|[.;](?=\s|\Z)(?<!\b[A-Za-z][a-z]\.)(?<!\b[A-Za-z][a-z]{2}\.)|\n\s*\n"
    r"|\s(?:and|but|because|que|para|for|i am|is my|please|since|with|my|on the|phone|tel|email)\s|: ",
    re.IGNORECASE,
)

_BEHIND_BIRTH = re.compile(
    r"(?:[_ ]?(?:date|day))?(?:\*|\\{0,3}[\"']){0,3}\s{0,2}"
    r"(?:(?:is|was|on|em|el|le|am|é|es|ist|den|dia|está|date|of|:|=|,|-|\()(?:[\s*]|\\{0,3}[\"']){0,5}){0,3}",
    re.IGNORECASE,
)
_MONTH = r"(?:jan|feb|fev|mar|mär|apr|abr|may|mai|jun|jul|aug|ago|sep|set|oct|out|okt|nov|dec|dez|dic|ene|janv|févr|avr|juin|juil|août|déc)[a-zçéû]{0,8}\.?"
_DATE = re.compile(
    r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}(?![0-9])"
    rf"|[0-9]{{1,2}}(?:st|nd|rd|th|º|\.)?(?: of| de)? ?{_MONTH}(?:,? (?:de |of )?[0-9]{{4}})?"
    rf"|{_MONTH} [0-9]{{1,2}}(?:st|nd|rd|th)?(?:,? [0-9]{{4}})?(?![0-9])"
    r"|[0-9]{4}年[0-9]{1,2}月[0-9]{1,2}日|[0-9]{8}(?![0-9])|[0-9]{1,2} [0-9]{1,2} [0-9]{4}(?![0-9])",
    re.IGNORECASE,
)


def homes(reading: Reading) -> Iterator[Span]:
    """Streets behind "my address is", "I live at", a key; only where a number says which door."""
    text, done = reading.text, 0
    for start, end, _ in reading.cues.phrased("home"):
        if start < done:
            continue
        if _MACHINES.search(reading.cues.text, max(0, start - 12), start) or _ELECTRONIC.match(text, end):
            continue
        key = _KEY.match(text, end)
        if key:
            found = key.span("value")
        else:
            address = reading.cues.text[start:end] in _ADDRESSES
            link = (_BEHIND_ADDRESS if address else _BEHIND_LIVING).match(text, end)
            found = (link.end(), _street_end(text, link.end())) if link and link.end() > end else (end, end)
            if link and not address and not _AT.search(link[0]) and not _STREET.search(text, *found):
                continue
        if found[1] - found[0] >= _SHORTEST and _DOOR.search(text, *found):
            done = found[1]
            yield Span(*found, "STREET_ADDRESS")


def _street_end(text: str, start: int) -> int:
    """Where the address ends that begins at `start`: with its sentence, or before it grows too long to be one."""
    limit = min(len(text), start + _LONGEST)
    stop = _STOP.search(text, start, limit)
    end = stop.start() if stop else limit
    if not stop and limit < len(text):
        end = max(text.rfind(" ", start, end), start)
    while end > start and not text[end - 1].isalnum():
        end -= 1
    return end


def births(reading: Reading) -> Iterator[Span]:
    """Dates that a cue says somebody was born on."""
    for _, end, _ in reading.cues.phrased("birth"):
        link = _BEHIND_BIRTH.match(reading.text, end)
        day = _DATE.match(reading.text, link.end() if link else end)
        if day:
            yield Span(*day.span(), "BIRTH_DATE")
