"""What each data set is, in words for the person whose data it is. One that has none here goes by its own name."""

from collections.abc import Mapping
from typing import NamedTuple


class Words(NamedTuple):
    """`what` is a sentence, or nothing."""

    title: str
    what: str


def words(data_set: str) -> Words:
    """How people are told of a data set."""
    return _KNOWN.get(data_set) or Words(data_set.replace("_", " ").capitalize(), "")


_KNOWN: Mapping[str, Words] = {
    "agent_states": Words(
        "Where assistants were",
        "What an assistant kept of its work with you between turns, such as the step of a form.",
    ),
    "agents": Words("Assistants", "Assistants that are registered in your name."),
    "api_keys": Words("Access keys", "Keys that let programs speak for you. The keys themselves are not kept."),
    "conversations": Words("Conversations", "The conversations you had, and with which assistant."),
    "distillations": Words(
        "What assistants learned from", "When an assistant asked to learn from a conversation of yours. No text."
    ),
    "exports": Words("Packages like this one", "When a package of your data was asked for, and what became of it."),
    "generations": Words("Versions of your memory", "When the list of what was noted about you was tidied up."),
    "handles": Words("How you are known", "The addresses, numbers and account names by which you are recognised."),
    "logs": Words(
        "Your memory at each assistant", "One for each assistant: how much was said, and how much of it was noted."
    ),
    "model_answers": Words(
        "Answers of language models",
        "What a language model answered, kept for a short time in case work stops half-way.",
    ),
    "model_usage": Words(
        "Use of language models", "How much work language models had with what you said. Numbers only."
    ),
    "names": Words(
        "Your names", "Names that were registered for you, so that they can be replaced wherever they come up."
    ),
    "note_allowances": Words("Limits of notes", "How many notes an assistant has written. Numbers only."),
    "note_versions": Words("Earlier versions of notes", "What assistants' notes said before they were changed."),
    "notes": Words("Notes of assistants", "What an assistant noted about its own work."),
    "observations": Words(
        "What was noted about you", "Short lines that were drawn from what you said, with their dates."
    ),
    "proposals": Words("Proposed notes", "Notes that wait for somebody's approval, or got it."),
    "pseudonyms": Words(
        "Stand-ins for names", "Which stand-in, such as <PERSON_1>, is used for which name in what you said."
    ),
    "quarantine": Words("Set aside", "Messages that could not be worked on, and why."),
    "receipts": Words("What was done with your data", "Who exported, erased or changed something, and when. Ids only."),
    "subjects": Words("You, as a record", "The record that everything else here belongs to."),
    "turns": Words("What was said", "Your messages and the answers, as they are kept."),
    "work": Words("Work on your data", "Jobs that wait or ran, such as noting what was said. Ids and numbers only."),
}
