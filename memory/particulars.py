"""What tells two facts of the same words apart: their numbers, their names, and whether they deny."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from memory.wordlist import listed

_NUMBER = re.compile(r"(?:(?<![^\s(])[-−+])?\d+(?:[.,:/]\d+)*")
_WORD = re.compile(r"[^\W\d_][^\W_]*")
_BEGINS = re.compile(r"(?:^|[.!?:;。！？：；]\s*)[\"'“¡¿(\s]*$")
# Scripts without capitals: any word may be a name. Ideographs stand without spaces, each for itself.
_IDEOGRAPH = r"\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNCASED = re.compile(rf"[{_IDEOGRAPH}]|[^\W\d_]+")
_MEANT_SIGNS = frozenset("%‰#&*@/\\+")
# Of these a text is full, however it writes them; at the head of a sentence a capital makes no name of them.
_SMALL = frozenset(
    listed(
        """
        a an the and or but if of to in on at by for with from as is are was were has have had do does did he she it they we you i my his her
        its our your their this that these those there here what which who when where why how not no yes so then also
        o os um uma e de da do em na para por com que se eu meu minha não sim el la los las un una y en con yo mi su
        """
    )
)
_DENIALS = frozenset(
    listed(
        """
        no not never none nothing nobody without cannot neither nor hardly can't won't don't doesn't didn't isn't aren't wasn't weren't hasn't
        haven't hadn't wouldn't shouldn't couldn't não nao nunca nem sem jamais nada ninguém ni sin jamás tampoco nadie
        ne pas plus aucun kein keine keinen keinem keiner nicht nie niemals ohne non mai senza niet geen не нет никогда без
        """
    )
)
_DENYING_SIGNS = re.compile(r"[不没沒無无非未别別勿]|ない|ません|않|아니|없")
_SAID = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def numbers(text: str) -> tuple[str, ...]:
    """The numbers of `text` in their order, with their signs and points: 3.5 is not 35, nor -5 5."""
    return tuple(_NUMBER.findall(unicodedata.normalize("NFKC", text)))


def signs(text: str) -> frozenset[str]:
    """Currencies, per cent and the like: 20 € are not 20 $, nor C# C."""
    return frozenset(mark for mark in text if mark in _MEANT_SIGNS or unicodedata.category(mark) == "Sc")


def names(text: str) -> tuple[str, ...]:
    """Words with a capital, folded, in their order; small words that only begin a sentence aside."""
    plain = unicodedata.normalize("NFKC", text)
    return tuple(
        word[0].casefold()
        for word in _WORD.finditer(plain)
        if word[0] != word[0].lower()
        and word[0] not in {"I", "A"}
        and not (word[0].casefold() in _SMALL and _BEGINS.search(plain[max(0, word.start() - 8) : word.start()]))
    )


def uncased(text: str) -> frozenset[str]:
    """Words in scripts that have no capitals, and ideographs: what may name somebody where nothing marks a name."""
    plain = unicodedata.normalize("NFKC", text)
    return frozenset(word for word in _UNCASED.findall(plain) if word == word.upper() == word.lower())


def words(text: str) -> frozenset[str]:
    """All words, folded as `names` folds them."""
    return frozenset(word.casefold() for word in _WORD.findall(unicodedata.normalize("NFKC", text)))


def denials(text: str) -> int:
    """How often `text` denies, in the languages that are known here."""
    said = (word.casefold().replace("’", "'") for word in _SAID.findall(text))
    return sum(word in _DENIALS for word in said) + len(_DENYING_SIGNS.findall(text))


def stands_in(lost: str, kept: str) -> bool:
    """Whether each number, sign and name of `lost` stands in `kept`, and both deny as often."""
    return (
        set(numbers(lost)) <= set(numbers(kept))
        and signs(lost) <= signs(kept)
        and set(names(lost)) <= words(kept)
        and uncased(lost) <= uncased(kept)
        and denials(lost) == denials(kept)
    )


def in_order(these: Sequence[str], those: Iterable[str]) -> bool:
    """Whether `these` stand among `those`, in the same order."""
    rest = iter(those)
    return all(one in rest for one in these)
