"""Raw answers, as models really write them: each ends in the right outcome, with the items that it holds."""

import json
import time

import pytest

from memory.claims import FORM
from memory.outcome import Answer, Outcome
from memory.reply import MAX_CHARACTERS, Reply, read

ONE = {"text": "Ana moved to Porto", "kind": "event", "priority": "high", "evidence": [1], "refers_to": None}
TWO = {"text": "Ana likes tea", "kind": "preference", "priority": "low", "evidence": [2], "refers_to": None}
BOTH = ["Ana moved to Porto", "Ana likes tea"]
PLAIN = json.dumps({"observations": [ONE, TWO]})
PRETTY = json.dumps({"observations": [ONE, TWO]}, indent=2)
LIST = json.dumps([ONE, TWO])
FIRST, SECOND = json.dumps(ONE), json.dumps(TWO)


def texts(reply: Reply) -> list[str]:
    return [item["text"] for item in reply.items]


GOOD = {
    "plain": (PLAIN, BOTH),
    "pretty printed": (PRETTY, BOTH),
    "a bare list": (LIST, BOTH),
    "one bare object": (FIRST, BOTH[:1]),
    "an object where a list belongs": (json.dumps({"observations": ONE}), BOTH[:1]),
    "another name for the list": (json.dumps({"facts": [ONE, TWO]}), BOTH),
    "wrapped twice": (json.dumps({"result": {"observations": [ONE, TWO]}}), BOTH),
    "a list in a list": (json.dumps([{"observations": [ONE]}, {"observations": [TWO]}]), BOTH),
    "in a fence": (f"```json\n{PLAIN}\n```", BOTH),
    "in a fence without a name": (f"```\n{PLAIN}\n```", BOTH),
    "in an open fence": (f"```json\n{PLAIN}", BOTH),
    "in a fence amid prose": (f"Here you are:\n\n```json\n{PRETTY}\n```\n\nAnything else?", BOTH),
    "prose around": (f"Sure, this is what I found: {PLAIN} I hope that helps!", BOTH),
    "prose with a brace before": (f"In the form {{observations}}: {PLAIN}", BOTH),
    "an apology and then JSON": (f"I'm sorry for the delay. {PLAIN}", BOTH),
    "the word json before": (f"json\n{PLAIN}", BOTH),
    "a byte order mark": ("\ufeff" + PLAIN, BOTH),
    "a byte order mark and a fence": ("\ufeff```json\n" + PLAIN + "\n```", BOTH),
    "thoughts before": (f"<think>Should I write {FIRST}? No.</think>\n{json.dumps([TWO])}", BOTH[1:]),
    "thoughts without a beginning": (f'The turns say {{"text": "draft"}}.</think>{PLAIN}', BOTH),
    "trailing commas": (PLAIN.replace("}]", "},]").replace("null}", "null,}"), BOTH),
    "missing commas between items": (PLAIN.replace("}, {", "} {"), BOTH),
    "missing commas between fields": ('{"text": "Ana likes tea" "kind": "preference" "evidence": [2]}', BOTH[1:]),
    "comments": (PRETTY.replace('"kind": "event",', '"kind": "event", // happened\n'), BOTH),
    "smart quotes": ("{“text”: “Ana likes tea”, “kind”: “preference”, “evidence”: [2]}", BOTH[1:]),
    "single quotes": (str({"observations": [ONE, TWO]}), BOTH),
    "Python's own words": ("[{'text': 'Ana likes tea', 'refers_to': None, 'sure': True, 'evidence': (2,)}]", BOTH[1:]),
    "keys without quotes": ('{text: "Ana likes tea", kind: "preference", evidence: [2]}', BOTH[1:]),
    "full-width punctuation": ('{"text"："Ana likes tea"，"kind"："preference"，"evidence"：[2]}', BOTH[1:]),
    "upper-case keys": (PLAIN.replace('"text"', '"TEXT"').replace('"observations"', '"Observations"'), BOTH),
    "keys in camel case": (PLAIN.replace("refers_to", "refersTo"), BOTH),
    "a line for each": (f"{FIRST}\n{SECOND}\n", BOTH),
    "a line for each, with bullets": (f"- {FIRST}\n- {SECOND}", BOTH),
    "said twice": (f"{FIRST}\n\n{FIRST}", [BOTH[0], BOTH[0]]),
    "quoted as a string": (json.dumps(PLAIN), BOTH),
    "quotes inside a text": ('{"text": "Ana said "tea" and left", "evidence": [1]}', ['Ana said "tea" and left']),
    "an inch inside a text": (f'[{{"text": "a 5" pipe", "evidence": [1]}}, {SECOND}]', ['a 5" pipe', BOTH[1]]),
    "braces inside a text": (
        f'Look: [{{"text": "uses {{x}} and }}", "evidence": [1]}}, {SECOND}]',
        ["uses {x} and }", BOTH[1]],
    ),
    "a raw line break inside a text": ('{"text": "tea\nand milk", "evidence": [1]}', ["tea\nand milk"]),
    "an escape that JSON has not": (r'{"text": "C:\docs \& more", "evidence": [1]}', None),
    "numbers with a sign or a zero": ('{"text": "Ana likes tea", "evidence": [02, +3]}', BOTH[1:]),
    "white space after the end": (PLAIN + "\n" * 5_000, BOTH),
    "a nested date": (
        'Here: {"text": "Ana likes tea", "refers_to": {"start": "2026-03-02", "end": "2026-03-02"},}',
        BOTH[1:],
    ),
}


@pytest.mark.parametrize(("text", "found"), GOOD.values(), ids=GOOD.keys())
def test_what_can_be_read_is_read(text: str, found: list[str] | None) -> None:
    reply = read(Answer(Outcome.OK, text), FORM)
    assert reply.outcome is Outcome.OK
    assert texts(reply) == found if found else texts(reply)
    assert not reply.cut_off


CUT_OFF = {
    "inside the third item": (PLAIN.removesuffix("]}") + ', {"text": "Ana has', BOTH),
    "inside the second item": (PLAIN[: PLAIN.index("tea")], BOTH[:1]),
    "after the comma": (PLAIN.removesuffix("]}") + ",", BOTH),
    "before the last brackets": (PLAIN.removesuffix("]}"), BOTH),
    "inside a fence": (f"```json\n{PRETTY[: PRETTY.index('tea')]}", BOTH[:1]),
    "inside a key": (LIST.removesuffix("]") + ', {"te', BOTH),
}


@pytest.mark.parametrize(("text", "found"), CUT_OFF.values(), ids=CUT_OFF.keys())
def test_of_an_answer_cut_off_the_complete_items_are_kept(text: str, found: list[str] | None) -> None:
    reply = read(Answer(Outcome.OK, text, finish_reason="length"), FORM)
    assert reply.outcome is Outcome.OK
    assert texts(reply) == found
    assert reply.cut_off


NOTHING = {
    "an empty list": "[]",
    "an empty list in its object": '{"observations": []}',
    "an empty list in a fence": "```json\n[]\n```",
    "an empty object list in a fence": '```json\n{"observations": [ ]}\n```',
    "prose and an empty list": "There is nothing worth keeping: []",
    "prose and an empty object list": 'Nothing to note. {"observations": []} Good day.',
}


@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING.keys())
def test_an_explicit_empty_list_is_no_failure(text: str) -> None:
    reply = read(Answer(Outcome.OK, text), FORM)
    assert reply.outcome is Outcome.OK
    assert reply.items == ()


LOOPS = {
    "one word": "tea " * 500,
    "one word inside JSON": '{"observations": [{"text": "' + "tea " * 2_000,
    "one item": '{"observations": [' + ", ".join([SECOND] * 60) + ", " + SECOND[:20],
    "one item, all closed": json.dumps({"observations": [TWO] * 40}),
    "one item with another number": json.dumps([TWO | {"evidence": [at]} for at in range(40)]),
    "a sentence": "Ana moved to Porto and then she went to see the old harbour. " * 40,
    "a sentence after good items": PLAIN.removesuffix("]}")
    + ', {"text": "'
    + "She likes the old harbour of Porto. " * 200,
    "letters": "{" + "a" * 5_000,
    "Chinese": "我喜欢茶" * 300,
    "brackets": "[" * 3_000,
    "brackets and braces": "[{" * 3_000,
    "blank lines": '{"observations": [' + "\n" * 3_000,
    "tabs": "{" + "\t" * 3_000,
}


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS.keys())
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_loop_is_degenerate(text: str, finish: str) -> None:
    assert read(Answer(Outcome.OK, text, finish_reason=finish), FORM).outcome is Outcome.DEGENERATE


REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I’m sorry, I cannot assist with this request.",
    "I cannot process conversations that contain personal data.",
    "As an AI language model, I am not able to do this.",
    "Lo siento, no puedo ayudar con eso.",
    "Desculpe, não posso ajudar com isso.",
    "Je suis désolé, je ne peux pas vous aider.",
    "Es tut mir leid, dabei kann ich nicht helfen.",
    "Mi dispiace, non posso aiutarti.",
    "抱歉，我无法处理这个请求。",
    "申し訳ありませんが、お手伝いできません。",
    "죄송합니다. 도와드릴 수 없습니다.",
    "Извините, я не могу с этим помочь.",
    "عذرًا، لا أستطيع المساعدة في ذلك.",
    '{"error": "I\'m sorry, I can\'t do that."}',
    '{"refusal": "not allowed"}',
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_one_in_any_language(text: str) -> None:
    assert read(Answer(Outcome.OK, text), FORM).outcome is Outcome.REFUSAL


UNREADABLE = {
    "prose": "The user moved to Porto and likes tea.",
    "a bullet list": "- Ana moved to Porto\n- Ana likes tea",
    "an empty object": "{}",
    "null": "null",
    "null in its object": '{"observations": null}',
    "a number": "42",
    "a list of strings": '["Ana moved to Porto", "Ana likes tea"]',
    "an object of something else": '{"status": "ok", "count": 2}',
    "braces in prose": "I like {braces} a lot, and [brackets] too.",
    "HTML": "<html><body><h1>502 Bad Gateway</h1></body></html>",
    "one item, cut off": '{"observations": [{"text": "Ana moved',
    "deep nesting": "".join(f'{{"k{depth}": ' for depth in range(5_000)),
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_words_that_make_no_item_are_unparsable(text: str) -> None:
    assert read(Answer(Outcome.OK, text), FORM).outcome is Outcome.UNPARSABLE


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\ufeff", "\u200b", "\t\r\n"])
def test_no_words_at_all_are_empty(text: str) -> None:
    assert read(Answer(Outcome.OK, text), FORM).outcome is Outcome.EMPTY


def test_no_words_because_the_thoughts_took_all_tokens_are_over_long() -> None:
    assert read(Answer(Outcome.OK, "", finish_reason="length"), FORM).outcome is Outcome.OVER_LONG
    thinking = "<think>Let me see. Ana moved to Porto, so"
    assert read(Answer(Outcome.OK, thinking, finish_reason="length"), FORM).outcome is Outcome.OVER_LONG


def test_an_answer_cut_off_before_its_first_item_is_over_long() -> None:
    text = '{"observations": [{"text": "Ana moved'
    assert read(Answer(Outcome.OK, text, finish_reason="length"), FORM).outcome is Outcome.OVER_LONG


def test_an_endless_answer_is_over_long() -> None:
    text = " ".join(f"word{at * 7919 % 100_003}" for at in range(MAX_CHARACTERS // 8))
    assert read(Answer(Outcome.OK, text * 2), FORM).outcome is Outcome.OVER_LONG


def test_a_filter_that_cut_in_is_a_refusal() -> None:
    assert read(Answer(Outcome.OK, "", finish_reason="content_filter"), FORM).outcome is Outcome.REFUSAL
    assert read(Answer(Outcome.OK, "The user", finish_reason="content_filter"), FORM).outcome is Outcome.REFUSAL


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.OK])
def test_a_call_that_failed_stays_the_failure_that_it_was(outcome: Outcome) -> None:
    assert read(Answer(outcome, PLAIN), FORM).outcome is outcome


def test_a_long_list_of_short_facts_is_no_loop() -> None:
    items = [TWO | {"text": f"Ana likes tea number {at}", "evidence": [at]} for at in range(200)]
    reply = read(Answer(Outcome.OK, f"Here: {json.dumps(items)}"), FORM)
    assert reply.outcome is Outcome.OK
    assert len(reply.items) == 200


def test_one_broken_item_does_not_take_the_others_along() -> None:
    items = [json.dumps(TWO | {"text": f"Ana keeps the letter of day {at}"}) for at in range(100)]
    items[50] = '{"text": "broken" ; ,,, "evidence": }'
    reply = read(Answer(Outcome.OK, '{"observations": [' + ",".join(items) + "],}"), FORM)
    assert reply.outcome is Outcome.OK
    assert len(reply.items) >= 99


HOSTILE = {
    "open braces": "{" * 200_000,
    "closed braces": "{" * 100_000 + "}" * 100_000,
    "quotes": '"' * 200_000,
    "braces and quotes": '{"' * 100_000,
    "backticks": "`" * 200_000 + "x",
    "thoughts": "<think>" * 30_000,
    "spaces": '{ "' + " " * 200_000 + '"',
    "spaces between": '" ' * 100_000,
    "broken items": ('{"text"' + ' "x"' * 900 + "}") * 50,
    "backslashes": '{"text": "' + "\\" * 200_001,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_answer_takes_more_than_linear_time(text: str) -> None:
    began = time.process_time()
    assert read(Answer(Outcome.OK, text), FORM).outcome is not Outcome.OK
    assert time.process_time() - began < 5
