"""Names that a text itself announces: "my name is", a title, a label, a key. Without a cue no name is guessed."""

import re
from collections.abc import Iterator
from enum import Enum, auto

from privacy.reading import Reading
from privacy.span import Span
from privacy.vocabulary import words

KIND = "PERSON"
_LINK = re.compile(
    r"(?:'s|’s)?(?: completo| complet| on| and| e cognome)?(?P<verb>\s{0,2}(?:is|was|as|é|e|es|est|ist|er|como|-se|se)\b|\s?[:=?\-]|\*\*:?)?\**\s{1,6}"
    r"(?:is |as |: |mr\.? |mrs\.? |ms\.? |dr\.? |sr\.? |sra\.? )?",
    re.IGNORECASE,
)
_COLON = re.compile(r"(?: legal| name)?\**\s?[:\-]\**\s{0,2}", re.IGNORECASE)
_AFTER_TITLE = re.compile(r"\.?(?:\([a-z]{1,3}\))? ")
_AFTER_ROLE = re.compile(r"[,:]?\s{1,2}(?:sra?\.? |dra?\.? |mr\.? |mrs\.? |ms\.? )?", re.IGNORECASE)
_KEY = re.compile(r"\\{0,3}[\"']\s{0,2}:\s{0,2}\\{0,3}[\"'](?P<value>[^\"'\\\n<]{1,80})\\{0,3}[\"']")
_PREFIX = re.compile(r"([^\W\d_]+)(?:[ _-]|['’]s )?\Z")
_OWN = words("my his her their full first last sur given family middle maiden real complete meu seu mi mon mein")
_KEY_OWN = _OWN | words(
    "passenger customer guest contact holder card cardholder patient sender recipient display traveler"
)
_NAMED_ALONE = words("""firstname lastname fullname surname sobrenome apellido apellidos nachname vorname givenname familyname passengername
    customername cardholdername""")
_ITSELF = words(
    "chamo chama chamado chamada chamar llamo llama appelle heiße heisse chiamo heter heet identificou nazywam"
)
_CALLED = words("chama chamado chamada chamar identificou")  # also "calls", "a call"
_THINGS = words("""user file brand product hotel company business domain event place street city school class function table column
    package project host key game movie song book band restaurant airline flight drug pet store bank account card screen
    login display model variable field method group team channel server database code tag branch airport station""")
_ANSWERED = re.compile(r"[.,!]|\s*\n|\s*\Z")
_OFFICES = words("""presidente ministro ministra desembargador desembargadora relator relatora juiz juíza prefeito procurador procuradora
    president minister judge senator professor doctor doutor doutora""")
_AMOUNT = re.compile(r"[0-9]\s*\Z")  # "120 ms"
_ADDRESSED = re.compile(r"(?<![\w\"])\"?((?:[A-Z][\w.'’-]{0,30} ){1,3}[A-Z][\w.'’-]{0,30})\"? ?<[^<>\s@]{1,64}@")
_INDENTED = 40  # characters before the first word, at most
_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['’\-](?=[^\W\d_]))*\.?")
_PARTICLES = words("da de do das dos e del de la van von der den bin al el la le du di du ten y i")
_NO_NAME = words("""a about add added address after ai all also am an and another any are as asked at available back be because been before big booked booking but by
    call called can cancel cannot cant card change changed check checking come confirm confirmation contact correct correction could customer day did
    different do does doing done dont email first fine flight for from full get getting give given go going good got great had happy has have having
    he hello help her here hereby hi his how i id if im in incorrect information interested is isnt it its itself just keep kindly last legal let like listed locked
    looking m mail may me message mine misspelled mobile more mr mrs ms my name names new next no not now number of off ok okay on one only or other our out over
    passenger password phone please provide provided ready really right s same say send sent she should showing shown so some sorry spelled spelling
    still sure t tag thank thanks that the their them then there they thing this those to today told too traveling trying under unable up update us use
    used user very want was we well were what when where which while who why will with wondering wrong yes yet you your yours ticket seat
    appear appears appeared shows showed spelt isn isnt doesn doesnt wasn mentioned displayed functions given either test example unknown empty null none required missing invalid
    incorrectly wrongly sir madam actually want matches match
    al ao aos é e o a os as do da de um uma não nao que com sem para por seu sua meu minha no na está foi es el la los las un una y con su""")
_ORGANISATION = words("""team support customer service services bank banco company inc corp ltd ltda llc gmbh university universidade universidad school escola escuela
    hospital secretaria ministério ministerio department departamento ouvidoria equipe equipo central airlines airways airline hotel institute
    instituto agência agencia government governo detran card account flight gold silver platinum visa mastercard street avenue road rua avenida
    administração prefeitura tribunal polícia police conselho diretoria gerência coordenação setor hello dear english real person human representative supervisor manager world there team sir madam
       basic economy business class monday tuesday wednesday thursday friday saturday sunday january february march april
    june july august september october november december email phone cpf rg address order booking""")
_MOST_WORDS = 5
_INITIAL = 2  # a letter and its dot
_ABBREVIATION = 3  # "Jr." still belongs to the row


class _Sort(Enum):
    """What a word in a row can be."""

    NAME = auto()
    PARTICLE = auto()
    OFFICE = auto()
    ORGANISATION = auto()
    OTHER = auto()


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
    if "@" in text and "<" in text:
        yield from (Span(*found.span(1), KIND) for found in _ADDRESSED.finditer(text))


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
    told = owner in _OWN or word in _ITSELF or (start < _INDENTED and not lowered[:start].strip())
    verb = (link["verb"] or "").strip()
    found = _capitalised(text, link.end(), fewest=1 if verb or told else 2)
    if "?" in verb:
        return found if found and _ANSWERED.match(text, found.end) else None
    if found or word in _CALLED or not (told or verb.isalpha()):
        return found
    return _small(text, link.end())


def _behind_title(text: str, start: int, end: int) -> Span | None:
    small = text[start].islower()
    link = _AFTER_TITLE.match(text, end)
    if (
        link is None
        or (start and text[start - 1] in "._'’-@/")
        or (small and _AMOUNT.search(text, max(0, start - 3), start))
    ):
        return None
    if text[start:end] == "miss":
        return None
    return _capitalised(text, link.end(), fewest=1) or (
        _small(text, link.end()) if text[start:end] in ("mr", "mrs") else None
    )


def _capitalised(text: str, at: int, *, fewest: int) -> Span | None:
    """The words from `at` on that are written with a capital, at least `fewest`; particles and initials may stand between."""
    start, end, count, hanging = at, at, 0, False
    for word in _row(text, at):
        sort = _sort(word[0], first=count == 0)
        if sort is _Sort.ORGANISATION and not hanging:
            return None
        if sort in (_Sort.ORGANISATION, _Sort.OTHER):
            break
        hanging = sort is _Sort.PARTICLE
        if sort is _Sort.OFFICE:
            start = word.end() + 1
        elif sort is _Sort.NAME:
            count += 1
            end = word.end() if len(word[0]) <= _INITIAL else word.start() + len(word[0].rstrip("."))
    return Span(start, end, KIND) if count >= fewest and end > start else None


def _row(text: str, at: int) -> Iterator[re.Match[str]]:
    """Words parted by one space each; a dot ends the row, unless it is an initial's."""
    for _ in range(_MOST_WORDS):
        word = _WORD.match(text, at)
        if word is None:
            return
        yield word
        at = word.end() + 1
        if text[word.end() : at] != " " or (word[0].endswith(".") and len(word[0]) > _ABBREVIATION):
            return


def _sort(word: str, *, first: bool) -> _Sort:
    bare = word.rstrip(".")
    lowered = bare.lower()
    if bare[0].islower():  # a script without capitals counts as written with one
        return _Sort.PARTICLE if lowered in _PARTICLES and not first else _Sort.OTHER
    if lowered in _ORGANISATION or (first and lowered in _NO_NAME):
        return _Sort.ORGANISATION
    if first and lowered in _OFFICES:
        return _Sort.OFFICE
    return _Sort.OTHER if word == "I" else _Sort.NAME


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
