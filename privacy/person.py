"""Names that a text itself announces: "my name is", a title, a label, a key. Without a cue no name is guessed."""

import re
from collections.abc import Iterator

from privacy.reading import Reading
from privacy.span import Span

KIND = "PERSON"
_LINK = re.compile(
    r"(?:'s|’s)?(?: completo| complet| on| and| e cognome)?(?P<verb>\s{0,2}(?:is|was|as|é|e|es|est|ist|er|como|-se|se)\b|\s?[:=?\-]|\*\*:?)?\**\s{1,6}"
    r"(?:is |as |: |mr\.? |mrs\.? |ms\.? |dr\.? |sr\.? |sra\.? )?",
    re.IGNORECASE,
)
_COLON = re.compile(r"(?: legal| name)?\**\s?[:\-]\**\s{0,2}", re.IGNORECASE)
_AFTER_TITLE = re.compile(r"\.?(?:\([a-z]{1,3}\))? ")
_AFTER_ROLE = re.compile(r"[,:]?\s{1,2}(?:a |o |the |sra?\.? |dra?\.? |mr\.? |mrs\.? |ms\.? )?", re.IGNORECASE)
_KEY = re.compile(r"\\{0,3}[\"']\s{0,2}:\s{0,2}\\{0,3}[\"'](?P<value>[^\"'\\\n<]{1,80})\\{0,3}[\"']")
_PREFIX = re.compile(r"([^\W\d_]+)(?:[ _-]|['’]s )?\Z")
_OWN = frozenset("my his her their full first last sur given family middle maiden real complete meu seu mi mon mein".split())
_KEY_OWN = _OWN | frozenset("passenger customer guest contact holder card cardholder patient sender recipient display traveler".split())
_NAMED_ALONE = frozenset(
    """firstname lastname fullname surname sobrenome apellido apellidos nachname vorname givenname familyname passengername
    customername cardholdername""".split()
)
_ITSELF = frozenset("chamo chama chamado chamada chamar llamo llama appelle heiße heisse chiamo heter heet identificou nazywam".split())
_CALLED = frozenset("chama chamado chamada chamar identificou".split())  # also "calls", "a call"
_THINGS = frozenset(
    """user file brand product hotel company business domain event place street city school class function table column
    package project host key game movie song book band restaurant airline flight drug pet store bank account card screen
    login display model variable field method group team channel server database code tag branch airport station""".split()
)
_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['’\-](?=[^\W\d_]))*\.?")
_PARTICLES = frozenset("da de do das dos e del de la van von der den bin al el la le du di du ten y i".split())
_NO_NAME = frozenset(
    """a about add added address after ai all also am an and another any are as asked at available back be because been before big booked booking but by
    call called can cancel cannot cant card change changed check checking come confirm confirmation contact correct correction could customer day did
    different do does doing done dont email first fine flight for from full get getting give given go going good got great had happy has have having
    he hello help her here hereby hi his how i id if im in incorrect information interested is isnt it its itself just keep kindly last legal let like listed locked
    looking m mail may me message mine misspelled mobile more mr mrs ms my name names new next no not now number of off ok okay on one only or other our out over
    passenger password phone please provide provided ready really right s same say send sent she should showing shown so some sorry spelled spelling
    still sure t tag thank thanks that the their them then there they thing this those to today told too traveling trying under unable up update us use
    used user very want was we well were what when where which while who why will with wondering wrong yes yet you your yours ticket seat
    appear appears appeared shows showed spelt isn isnt doesn doesnt wasn incorrectly wrongly sir madam actually want matches match
    é e o a os as do da de um uma não nao que com sem para por seu sua meu minha no na está foi es el la los las un una y con su""".split()
)
_ORGANISATION = frozenset(
    """team support customer service services bank banco company inc corp ltd ltda llc gmbh university universidade universidad school escola escuela
    hospital secretaria ministério ministerio department departamento ouvidoria equipe equipo central airlines airways airline hotel institute
    instituto agência agencia government governo detran card account flight gold silver platinum visa mastercard street avenue road rua avenida
    administração prefeitura tribunal polícia police conselho diretoria gerência coordenação setor hello dear english real person human representative supervisor manager world there team sir madam
       basic economy business class monday tuesday wednesday thursday friday saturday sunday january february march april
    june july august september october november december email phone cpf rg address order booking""".split()
)
_MOST_WORDS = 5
_INITIAL = 2  # letters at most, before a dot that does not end the name


def persons(reading: Reading) -> Iterator[Span]:
    """Names behind their cues, whole as far as they are written like names."""
    text = reading.text
    for start, end, family in reading.cues.phrased("name", "title", "label", "role"):
        if family == "name":
            found = _behind_name(text, reading.cues.text, start, end)
        elif family == "title":
            found = _behind_title(text, start, end)
        else:
            link = (_COLON if family == "label" else _AFTER_ROLE).match(text, end)
            found = link and _capitalised(text, link.end(), fewest=1 if family == "label" else 2)
        if found:
            yield found


def _behind_name(text: str, lowered: str, start: int, end: int) -> Span | None:
    """Behind the word "name" or one like it: the value of a key, or words in capitals, or behind a verb in small letters."""
    word = lowered[start:end]
    prefix = _PREFIX.search(lowered, max(0, start - 16), start)
    owner = prefix[1] if prefix else ""
    key = _KEY.match(text, end)
    if key:
        return Span(*key.span("value"), KIND) if word in _NAMED_ALONE or owner in _KEY_OWN else None
    link = _LINK.match(text, end)
    if link is None or owner in _THINGS:
        return None
    told = owner in _OWN or word in _ITSELF or not lowered[:start].strip()
    verb = link["verb"] or ""
    found = _capitalised(text, link.end(), fewest=1 if verb or told else 2)
    if found or "?" in verb or word in _CALLED or not (verb or told):
        return found
    return _small(text, link.end())


def _behind_title(text: str, start: int, end: int) -> Span | None:
    small = text[start].islower()
    link = _AFTER_TITLE.match(text, end)
    if link is None or (start and text[start - 1] in "._'’-@/") or (small and text[:start].rstrip()[-1:].isdigit()):
        return None
    if text[start:end] == "miss":
        return None
    return _capitalised(text, link.end(), fewest=1) or (_small(text, link.end()) if text[start:end] in ("mr", "mrs") else None)


def _capitalised(text: str, at: int, *, fewest: int) -> Span | None:
    """The words from `at` on that are written with a capital, at least `fewest`; particles and initials may stand between."""
    start, end, count, particle = at, at, 0, False
    while count < _MOST_WORDS:
        word = _WORD.match(text, at)
        if word is None:
            break
        bare = word[0].rstrip(".")
        lowered = bare.lower()
        if bare[0].isupper() or not bare[0].islower():  # a script without capitals counts as written with one
            if lowered in _ORGANISATION and particle:
                break
            if lowered in _ORGANISATION or (count == 0 and lowered in _NO_NAME):
                return None
            particle = False
            count += 1
            end = word.end() if len(bare) == 1 else word.start() + len(bare)
        elif count == 0 or lowered not in _PARTICLES:
            break
        else:
            particle = True
        at = word.end() + 1
        if text[word.end() : at] != " " or (word[0].endswith(".") and len(bare) > _INITIAL):
            break
    return Span(start, end, KIND) if count >= fewest else None


def _small(text: str, at: int) -> Span | None:
    """One or two words in small letters, the first of which could be a name."""
    start, end = at, at
    for _ in range(2):
        word = _WORD.match(text, at)
        if word is None or not word[0].islower() or word[0].rstrip(".") in _NO_NAME:
            break
        end = word.start() + len(word[0].rstrip("."))
        if text[end : end + 1] != " ":
            break
        at = end + 1
    return Span(start, end, KIND) if end > start else None
