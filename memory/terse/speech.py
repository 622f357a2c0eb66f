"""Who speaks in a talk, in which language, and what of a turn's text is speech at all."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from memory import sentences
from memory.terse.words import PARTS
from memory.turn import Role, Turn

PAUSE = timedelta(hours=6)  # after so long a silence people begin anew
_MACHINE = re.compile(
    r"\b(?:assistant|agent|bot|chatbot|support|helpdesk|system|ai|llm|gpt\S*|claude|gemini|copilot)\b", re.IGNORECASE
)
_FENCED = re.compile(r"```.*?(?:```|\Z)|<(script|style)\b.*?(?:</\1>|\Z)", re.DOTALL)
_ENCODED = re.compile(r"(?<!\S)(?!https?://)[\x21-\x7e]{80,}")
_ATTACHED = re.compile(
    r"\[(?:shared )?(?:image|photo|picture)(?::\s*([^\]\n]{0,300}))?\]|\[(?:audio|video|file|document)[^\]\n]{0,300}\]"
)
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|prompts?|rules|guidelines|above|everything)\b|\bsystem prompt\b"
    r"|\byou are now\b|\bdeveloper mode\b|\bjailbreak\b|</?(?:system|instructions?|turn|log|observations?)\b"
    r"|\b(?:ignor[ae]|esque[çc]a|olvida)\b.{0,40}\b(?:instruç(?:ão|ões)|instrucciones|regras|reglas)\b|(?:忽略|无视|無視).{0,12}(?:指令|指示|提示|规则)",
    re.IGNORECASE,
)
_MARK = re.compile(r"[^\w\s]")
_BRIEF = 16  # characters of a sentence that may be half marks: "$59.90"
_LONGEST_NAME = 60  # characters
_LABELS = {"en": "User", "pt": "Usuário", "es": "Usuario", "zh": "用户", "ja": "ユーザー"}


@dataclass(frozen=True, slots=True)
class Voices:
    """The people of a talk: their names, and what each may be called ("mel" for Melanie), in lower case."""

    names: tuple[str, ...]
    called: dict[str, str]

    @property
    def several(self) -> bool:
        return len(self.names) > 1

    def hearer_of(self, turn: Turn) -> str | None:
        """Whom "you" means, where two people talk."""
        others = [name for name in self.names if name != turn.name]
        return others[0] if len(self.names) == 2 and len(others) == 1 else None

    def is_person(self, turn: Turn) -> bool:
        """Users are people; so are named assistants among several named speakers, as imports of chats between people have them."""
        return turn.role is Role.USER or (self.several and turn.role is Role.ASSISTANT and turn.name in self.names)


def label_of(turn: Turn, language: str) -> str:
    """Who a line says is speaking: a name where there is one."""
    name = " ".join((turn.name or "").split())[:_LONGEST_NAME]
    return name or _LABELS.get(language, _LABELS["en"])


def talks(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    """The turns of one conversation, without a long pause between them, at a time."""
    talk: list[Turn] = []
    for turn in turns:
        if talk and (turn.conversation != talk[-1].conversation or abs(turn.said_at - talk[-1].said_at) > PAUSE):
            yield talk
            talk = []
        talk.append(turn)
    if talk:
        yield talk


def voices_of(talk: Sequence[Turn]) -> Voices:
    """The named people of a talk. Who calls tools, or is named like a machine, is none."""
    with_tools = any(turn.role is Role.TOOL or turn.tool_calls for turn in talk)
    roles = {Role.USER} if with_tools else {Role.USER, Role.ASSISTANT}
    named = [turn.name for turn in talk if turn.name and turn.role in roles and not _MACHINE.search(turn.name)]
    names = tuple(dict.fromkeys(named))
    return Voices(names, _called(names))


def _called(names: Sequence[str]) -> dict[str, str]:
    """Full names, first names and their beginnings, as far as they are no other word and mean one person."""
    called: dict[str, str] = {}
    for name in names:
        first = name.split()[0] if name.split() else name
        for short in {name.lower(), *(first[:end].lower() for end in range(2, len(first) + 1))}:
            called[short] = "" if short in called else name
    return {short: name for short, name in called.items() if name and short not in PARTS}


def spoken(text: str) -> tuple[list[str], list[str]]:
    """The sentences of `text` that are speech, and the captions of the pictures beside it.

    Code and data are no speech; neither is what addresses the machinery instead of the person it talks to.
    """
    captions = [match[1] for match in _ATTACHED.finditer(text) if match[1]]
    said = _ENCODED.sub(" ", _ATTACHED.sub("\n", _FENCED.sub("\n", text)))
    ordering = _ORDERS.search(said) is not None
    found = [one for one in sentences.split(said) if _is_prose(one) and not (ordering and _ORDERS.search(one))]
    return found, captions


def _is_prose(sentence: str) -> bool:
    marks = sum(unicodedata.category(mark)[0] != "M" for mark in _MARK.findall(sentence))  # vowel signs are no marks
    return marks * (4 if len(sentence) >= _BRIEF else 2) <= len(sentence)
