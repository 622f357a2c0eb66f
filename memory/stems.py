"""What a text is about, as a set that does not mind the form of its words."""

import re
import unicodedata

from memory.wordlist import listed

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ENDINGS = ("ingly", "edly", "ies", "ied", "ing", "ed", "ly", "es", "s", "e")
# Too common to tell what a text is about, in the languages that chats here are in.
_COMMON = frozenset(
    listed(
        """
    a an the and or but of to in on at by for with from as is are was were be been being am do does did has have
    had it its he she they them his her their i me my we us our you your this that these those there here what
    which who when where why how not no so too very can could would should will about into over then than just
    also user assistant photo o os um uma e de da do das dos em no na nos nas para por com que se eu meu minha é
    foi são ao à el la los las un una y del al en con por para que se yo mi es fue son lo su
    """
    )
)


def stems(text: str) -> frozenset[str]:
    """The stems of the telling words of `text`; of scripts without spaces, their pairs of characters."""
    return frozenset(stemmed(text))


def stemmed(text: str) -> tuple[str, ...]:
    """The same in the order of the text."""
    found: list[str] = []
    spaced = text.isascii() or not _HAN.search(text)
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower().replace("’", "'")):
        if not spaced and _HAN.search(word):
            found.extend(word[start : start + 2] for start in range(max(1, len(word) - 1)))
        elif word not in _COMMON:
            found.append(stem(word))
    return tuple(found)


def stem(word: str) -> str:
    """`word` (lower case) without its ending: hikes, hiked and hiking are one."""
    if "'" in word:
        word = word.partition("'")[0]
    if len(word) < 4 or word[-1] not in "sdgye" or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word
