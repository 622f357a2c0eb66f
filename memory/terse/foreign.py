"""What a turn in another language than English states: its sentences, with their dates resolved and their fillers gone."""

import re
from collections.abc import Iterable, Iterator

from memory import dates
from memory.reckoning.written import in_place_of
from memory.sentences import is_question
from memory.terse.ear import Ear, Speech
from memory.terse.statement import Statement

_OPENERS = re.compile(
    r"(?:(?:ol[áa]|oi|bom dia|boa (?:tarde|noite)|obrigad[oa]|muito obrigad[oa]|valeu|tudo bem|sim|não|claro|bem|pois"
    r"|hola|buen(?:os|as) (?:d[ií]as|tardes|noches)|(?:muchas )?gracias|s[ií]|claro|bueno|vale|pues|hey|ok(?:ay)?|hallo|guten (?:tag|morgen|abend)|danke(?: schön| sehr)?|vielen dank|bonjour|bonsoir|salut|merci(?: beaucoup)?|buongiorno|buonasera|ciao|grazie(?: mille)?"
    r"|你好|您好|嗨|哈喽|谢谢你?|謝謝你?|好的|是的|嗯|哦|啊|对|對|不客气|不客氣|早上好|晚上好|再见|再見|拜拜|哈哈+)(?!\w|[\u3400-\u9fff])[\s,.!:，。！、~～]*)+",
    re.IGNORECASE,
)
_ONLY_POLITE = re.compile(
    r"\W*(?:(?:muito |muchas )?(?:obrigad[oa]|gracias)\b.{0,40}|de nada|at[ée] (?:logo|mais|amanhã)|hasta (?:luego|mañana|pronto)|adi[óo]s|tchau"
    r"|por favor|tudo bem|(?:vielen |herzlichen )?dank(?:e (?:schön|sehr|dir|ihnen))?\b.{0,20}|gute nacht|bis (?:bald|morgen|später)|(?:un grand )?merci\b.{0,24}|bonne (?:nuit|journée|soirée)|à (?:bientôt|demain)|grazie\b.{0,24}|buona (?:notte|giornata)|a (?:presto|domani)|(?:太|真)?(?:谢谢|謝謝|感谢|感謝)[^，,]{0,12}|(?:太|真)[\u3400-\u9fff]{1,4}了|没问题|沒問題|好啊|好呀|不错|明白了?|知道了|我会的|辛苦了)\W*",
    re.IGNORECASE,
)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN = 0x024F  # the last Latin letter of the two-byte range; beyond it signs are parts of words
_TRAILING = " \t.。!！~～;；।॥۔"


# A person by kin or work, with the name that follows; and the pronoun that a later sentence begins with in their place.
_WOMAN = re.compile(
    r"\b(?:[Mm]inha|[Mm]i) (?P<who>(?:filha|mulher|esposa|mãe|irmã|amiga|namorada|chefe|avó|hija|mujer|madre|mamá|hermana|novia|jefa|abuela)"
    r"(?:,? [A-ZÁÉÍÓÚ][\w-]+)?)|我?(?P<zh>女儿|女兒|妈妈|媽媽|太太|妻子|老婆|姐姐|妹妹|奶奶|女朋友)"
)
_MAN = re.compile(
    r"\b(?:[Mm]eu|[Mm]i) (?P<who>(?:filho|marido|pai|irmão|amigo|namorado|chefe|avô|hijo|padre|papá|esposo|hermano|novio|jefe|abuelo)"
    r"(?:,? (?:don )?[A-ZÁÉÍÓÚ][\w-]+)?)|我?(?P<zh>儿子|兒子|爸爸|先生|丈夫|老公|哥哥|弟弟|爷爷|爺爺|男朋友)"
)
_SHE = re.compile(r"(?:Ela|Ella)\b|她(?!们|們)")
_HE = re.compile(r"(?:Ele|Él)\b|他(?!们|們)")


def statements(speech: Speech, language: str, ear: Ear) -> Iterator[Statement]:
    """One statement for each sentence that is neither a question nor a courtesy; its "she" by whom it means."""
    for sentence in speech.sentences:
        said = _OPENERS.sub("", sentence, count=1) if _OPENERS.match(sentence) else sentence
        if is_question(sentence) or _ONLY_POLITE.fullmatch(said) or not _tells(said):
            continue
        mentions = dates.resolve(said, speech.turn.said_at)
        days = mentions[0].interval if mentions else None
        yield Statement(_named(_dated(said, mentions, language), ear).strip(_TRAILING), sentence, days)


def _named(said: str, ear: Ear) -> str:
    """`said` with the last woman or man spoken of in place of the pronoun at its head; whom it speaks of is noted."""
    for pronoun, who in ((_SHE, ear.woman), (_HE, ear.man)):
        if who and pronoun.match(said):
            said = pronoun.sub(lambda _, who=who: who, said, count=1)  # type: ignore[misc]
    ear.woman = _last(_WOMAN, said) or ear.woman
    ear.man = _last(_MAN, said) or ear.man
    return said


def _last(people: re.Pattern[str], said: str) -> str | None:
    found = [match["who"] or match["zh"] for match in people.finditer(said)]
    return found[-1][0].upper() + found[-1][1:] if found else None


def _tells(said: str) -> bool:
    """Two words or more, or three characters of Chinese, or a number: less than that is an interjection."""
    return any(map(str.isdigit, said)) or len(_UNSPACED.findall(said)) > 2 or sum(map(_is_word, said.split())) > 1


def _is_word(word: str) -> bool:
    """Two letters at least; the vowel signs of a script count as letters."""
    return sum(letter.isalpha() or ord(letter) > _LATIN for letter in word) > 1


def _dated(said: str, mentions: Iterable[dates.Mention], language: str) -> str:
    for mention in reversed(list(mentions)):
        day = in_place_of(said[mention.start : mention.end], mention.interval, language)
        said = said[: mention.start] + day + said[mention.end :]
    return said
