"""What is said in the benches: an invented customer's chat, about 25 tokens a turn, some turns with an address in them."""

import json
import random
from collections.abc import Iterator

_OPENINGS = (
    "Could you tell me whether",
    "I was wondering if",
    "Please check whether",
    "My sister asked me if",
    "Before I decide I would like to know if",
    "It is not clear to me whether",
)
_MATTERS = (
    "the blue jacket is still there in a larger size",
    "the train to Porto on Friday has a place by the window",
    "my order of last Tuesday has left the warehouse already",
    "the garden table can be delivered before the weekend",
    "the course in the evening takes beginners as well",
    "the invoice for March was sent to the old address",
    "the kitchen lamp comes with a bulb or without one",
    "the doctor has a free hour on Thursday morning",
)
_ENDINGS = (
    "because I would like to pick it up on my way home.",
    "since we are leaving on the ninth and I want it settled.",
    "and how much I would have to pay for the faster delivery?",
    "as my brother has asked for the same one in green.",
    "and thank you for the quick answer of yesterday!",
    "since I moved to a flat with four rooms last month.",
)
_WITH_AN_ADDRESS = 0.12  # of the turns
_ADDRESSES = (
    "You can write to me at {name}.lima@example.com about it.",
    "My number is +44 20 7946 0{number:03} in case it is urgent.",
    "The order was placed with {name}{number}@example.org, I think.",
)
_NAMES = ("ana", "boris", "chiara", "dmitri", "elin", "farid", "grace", "hugo")


def sentences(seed: int) -> Iterator[str]:
    """Turn after turn without an end; the same seed says the same."""
    draw = random.Random(seed)
    while True:
        said = f"{draw.choice(_OPENINGS)} {draw.choice(_MATTERS)} {draw.choice(_ENDINGS)}"
        if draw.random() < _WITH_AN_ADDRESS:
            said += " " + draw.choice(_ADDRESSES).format(name=draw.choice(_NAMES), number=draw.randrange(1000))
        yield said


def body(conversation: str, call: str, texts: list[str]) -> bytes:
    """One call's JSON: the two parties in turn, each message with an id that begins with `call`."""
    turns = [
        {"id": f"{call}-{index}", "role": "assistant" if index % 2 else "user", "content": text}
        for index, text in enumerate(texts)
    ]
    return json.dumps({"agent": "bench", "conversation_id": conversation, "turns": turns}).encode()
