"""Which language a text is in, told by its small words."""

import re
from collections import Counter

from memory.wordlist import listed

_HAN, _KANA = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]"), re.compile(r"[\u3040-\u30ff]")
_WORD = re.compile(r"\b[^\W\d_]+(?:'[^\W\d_]+)?")
_FAR_LETTER = re.compile(r"[^\W\d_\x00-\u017f]|[\u0100-\u017f]")  # no letter of the languages below
_SAMPLE = 2_000  # characters that show a text's language
_MARKERS = {
    "en": "the and is to i i'm my it you of in was have for that with we are on at this me be so just not but had our no yes hi hello",
    "pt": """
o e é eu não uma meu minha para com que em na no do da foi se mas os as ao muito você estou tenho ontem nós um bom dia tudo bem olá oi
obrigado obrigada sim boa noite tarde quero vou
""",
    "es": """
el y es yo no una mi para con que en la lo del fue se pero los las al muy usted estoy tengo ayer nosotros un me hola gracias buenos buenas
días sí quiero
""",
    "de": """
ich wir sie er der dem ein eine einen einem mein meine meinen nicht und ist habe haben bin im zum zur vom mit für auf bei seit wohne
wird werde werden wurde gestern heute morgen übermorgen vorgestern letzte letzten nächste nächsten woche wochen tagen jahren monaten montag
dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember hallo danke vielen dank guten vor
""",
    "fr": """
je j'ai nous vous il elle le la les des du un une en mon ma mes et est suis sommes avec pour dans avons été hier demain aujourd'hui
semaine dernière dernier prochaine prochain janvier février avril mai juin juillet août septembre octobre novembre décembre lundi mardi
mercredi jeudi vendredi samedi dimanche jour jours mois ans bonjour merci que qui pas ne c'est au
""",
    "it": """
io noi il lo la gli della di che non una un mia mio mie e è sono ho ha abbiamo con nel nella dal al ieri oggi domani settimana scorsa
scorso prossima prossimo gennaio febbraio maggio giugno luglio settembre ottobre dicembre lunedì martedì mercoledì giovedì venerdì sabato
domenica giorni mesi anni ciao grazie fa tra
""",
    "nl": "ik het een niet van mijn wij zijn heb hebben naar ook maar dat deze voor gisteren vandaag",
}
_SPOKEN_BY: dict[str, list[str]] = {}
for _language, _words in _MARKERS.items():
    for _one in listed(_words):
        _SPOKEN_BY.setdefault(_one, []).append(_language)
_ORDER = {language: -place for place, language in enumerate(_MARKERS)}


def language_of(text: str) -> str:
    """en, pt, es, de, fr, it, nl, zh, ja, or "other"; what shows no language at all counts as English when it is plain ASCII."""
    sample = text[:_SAMPLE].lower().replace("’", "'")
    if not sample.isascii() and len(_HAN.findall(sample)) * 4 > len(sample.replace(" ", "")):
        return "ja" if _KANA.search(sample) else "zh"
    score = Counter(language for word in frozenset(_WORD.findall(sample)) for language in _SPOKEN_BY.get(word, ()))
    if not score:
        return "en" if sample.isascii() else "other"
    best = max(score, key=lambda language: (score[language], _ORDER[language]))
    # One small word ("i", "o") is in many languages: beside letters that none of ours has it shows nothing.
    return "other" if score[best] < 2 and not sample.isascii() and _FAR_LETTER.search(sample) else best
