"""What comes out of masking: the text, the spans, and that a second look finds nothing more."""

import json

import pytest

from privacy import masking
from privacy.budget import Budget, Exhausted
from privacy.masking import Masked, mask
from privacy.policy import Operator, Policy
from privacy.span import Span, united

KEY = b"k" * 32
CARD = "4539310341316474"


def test_spans_are_places_in_the_original() -> None:
    text = "Ana\u200b: ana@example.com, CPF 104.332.181-00"
    masked = mask(text)
    assert masked.text == "Ana\u200b: <EMAIL_ADDRESS>, CPF <CPF>"
    assert [text[span.start : span.end] for span in masked.spans] == ["ana@example.com", "104.332.181-00"]


@pytest.mark.parametrize("text", ["", " ", "\n", "a", "\ud800", "\u200b" * 9, "🙂", "plain words only", "\ufdfa" * 20])
def test_a_text_without_personal_data_comes_back_as_it_was(text: str) -> None:
    assert mask(text) == Masked(text, ())


def test_a_lone_surrogate_survives_beside_a_masked_value() -> None:
    assert mask("\ud83d ana@example.com \ude00").text == "\ud83d <EMAIL_ADDRESS> \ude00"


def test_an_accent_written_apart_goes_with_its_letter() -> None:
    assert mask("ana@example.com\u0301 ok").text == "<EMAIL_ADDRESS> ok"


@pytest.mark.parametrize(
    "text",
    [
        "ana@example.com",
        "<EMAIL_ADDRESS> <PHONE_NUMBER> <PERSON_12> <MASKED> <CPF:abcdefghijklmnop>",
        "my name is Ana Lima, phone <PHONE_NUMBER> 12345678",
        f"card {CARD} {CARD} 4539 3103 4131 6474",
        "password: ana@example.com",
        "(415) 555-0132(415) 555-0133",
    ],
)
def test_masking_twice_changes_nothing(text: str) -> None:
    once = mask(text).text
    assert mask(once).text == once


def test_a_placeholder_is_no_cue_for_the_number_beside_it() -> None:
    assert mask("<PHONE_NUMBER> 12345678 <CREDIT_CARD>").spans == ()


def test_what_only_looks_like_a_placeholder_hides_nothing() -> None:
    assert mask("<PERSON_104.332.181-00> <ana@example.com>").text == "<PERSON_<CPF>> <<EMAIL_ADDRESS>>"


def test_overlaps_become_one_span_named_by_the_longest_and_neighbours_stay_two() -> None:
    spans = [Span(0, 4, "A"), Span(2, 9, "B"), Span(9, 10, "C"), Span(9, 10, "D")]
    assert united(spans) == [Span(0, 9, "B"), Span(9, 10, "C")]


def test_kept_kinds_hide_nothing_inside_them() -> None:
    policy = Policy(operators={"STREET_ADDRESS": Operator.KEEP})
    text = "my address is 12 High Street +44 20 7946 0958 Leeds"
    assert mask(text, policy).text == "my address is 12 High Street <PHONE_NUMBER> Leeds"


def test_mask_leaves_the_last_four_and_is_a_fixed_point() -> None:
    policy = Policy(operators={"EMAIL_ADDRESS": Operator.MASK, "CREDIT_CARD": Operator.MASK, "PERSON": Operator.MASK})
    once = mask(f"ana@example.com {CARD} Mr. Li", policy).text
    assert once == "***********.com ************6474 Mr. **"
    assert mask(once, policy).text == once


def test_hash_is_keyed_equal_for_equal_values_and_says_nothing() -> None:
    policy = Policy(operators={"PHONE_NUMBER": Operator.HASH}, key=KEY)
    first, second, other = (mask(text, policy).text for text in ("+44 20 7946 0958", "+442079460958", "+442079460959"))
    assert first == second != other
    assert first != mask("+442079460958", Policy(operators={"PHONE_NUMBER": Operator.HASH}, key=b"x" * 32)).text
    assert not any(sign.isdigit() for sign in first)


def test_a_pseudonym_is_stable_within_a_subject() -> None:
    policy = Policy(operators={"PERSON": Operator.PSEUDONYM}, key=KEY)
    pseudonyms: dict[str, str] = {}
    known = ["Mia Li", "Ana Souza"]
    first = mask("Mia Li met Ana Souza", policy, known, pseudonyms=pseudonyms).text
    second = mask("ANA SOUZA thanked Mia Li", policy, known, pseudonyms=pseudonyms).text
    assert second.split()[0] == first.split()[2]
    assert {first.split()[0], first.split()[2]} == {"<PERSON_1>", "<PERSON_2>"}
    assert not any("mia" in entry.lower() for item in pseudonyms.items() for entry in item)


def test_a_policy_names_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="SHOE_SIZE"):
        Policy(operators={"SHOE_SIZE": Operator.MASK})
    with pytest.raises(ValueError, match="XX"):
        Policy(regions=("XX",))
    with pytest.raises(ValueError, match="key"):
        Policy(operators={"PERSON": Operator.HASH})
    assert "secret" not in repr(Policy(key=b"secret"))


def test_a_policy_is_not_changed_by_its_use() -> None:
    operators = {"PERSON": Operator.MASK}
    mask("Mr. Johnson, ana@example.com", Policy(operators=operators))
    assert operators == {"PERSON": Operator.MASK}


def test_a_text_that_costs_too_much_is_masked_wholly(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = Budget(0)
    spent.spend(spent.left)
    monkeypatch.setattr(masking, "Budget", lambda _: spent)
    assert mask("call 415-555-0132").text == "<MASKED>"
    assert mask('{"a": "ana@example.com"}').text == '"<MASKED>"'
    assert mask("call 415-555-0132").spans == (Span(0, 17, "MASKED"),)


def test_what_still_shows_after_masking_masks_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "find", lambda text, *_: [Span(0, len(text), "PERSON")])
    monkeypatch.setattr(masking, "is_clear", lambda *_: False)
    assert mask("Ana 1") == Masked("<MASKED>", (Span(0, 5, "MASKED"),))


def test_a_budget_is_spent_the_same_way_every_time() -> None:
    budget = Budget(0)
    budget.spend(budget.left)
    with pytest.raises(Exhausted):
        budget.spend(1)


def test_json_stays_json_when_numbers_and_keys_are_masked() -> None:
    document = {"pan": int(CARD), "list": [1, int(CARD), "x"], "ana@example.com": {"phone": 11987654321}, "n": -1.5}
    masked = json.loads(mask(json.dumps(document)).text)
    assert masked == {
        "pan": "<CREDIT_CARD>",
        "list": [1, "<CREDIT_CARD>", "x"],
        "<EMAIL_ADDRESS>": {"phone": "<PHONE_NUMBER>"},
        "n": -1.5,
    }


def test_json_inside_a_string_of_json_stays_json() -> None:
    inner = json.dumps(
        {"user": "ana@example.com", "pan": int(CARD), "pans": [int(CARD)], "note": "hi\nana@example.com"}
    )
    masked = json.loads(mask(json.dumps({"arguments": inner})).text)
    assert json.loads(masked["arguments"]) == {
        "user": "<EMAIL_ADDRESS>",
        "pan": "<CREDIT_CARD>",
        "pans": ["<CREDIT_CARD>"],
        "note": "hi\n<EMAIL_ADDRESS>",
    }


def test_an_escape_is_never_cut_in_two() -> None:
    document = {"a": "one\nana@example.com\tbob@example.com", "b": 'say "ana@example.com"', "c": "Zoë\nMia Li"}
    masked = json.loads(mask(json.dumps(document), known=["Mia Li"]).text)
    assert masked["a"] == "one\n<EMAIL_ADDRESS>\t<EMAIL_ADDRESS>"
    assert masked["c"] == "Zoë\n<PERSON>"


def test_json_among_words_stays_json_too() -> None:
    text = f'The tool said:\n```json\n{{"pan": {CARD}, "ok": true}}\n```\ncard {CARD}'
    assert mask(text).text == 'The tool said:\n```json\n{"pan": "<CREDIT_CARD>", "ok": true}\n```\ncard <CREDIT_CARD>'


def test_escaped_scripts_in_json_are_read() -> None:
    text = json.dumps({"nota": "número ４５３９３１０３４１３１６４７４", "nome": "王小明"})
    assert json.loads(mask(text, known=["王小明"]).text) == {"nota": "número <CREDIT_CARD>", "nome": "<PERSON>"}


def test_spans_that_somebody_else_found_are_masked_too_and_kinds_of_nobody_are_not() -> None:
    found = [Span(6, 10, "PERSON"), Span(16, 20, "LOCATION")]
    assert mask("hello Zeno from Elea", extra=found).text == "hello <PERSON> from Elea"
    assert mask("hello Zeno", Policy(operators={"PERSON": Operator.KEEP}), extra=found[:1]).spans == ()
    assert mask("Zeno ana@example.com", extra=[Span(0, 8, "PERSON")]).text == "<EMAIL_ADDRESS>"


def test_spans_of_somebody_else_are_cut_to_the_text_and_leave_placeholders_alone() -> None:
    wild = [Span(-5, 4, "PERSON"), Span(18, 900, "PERSON"), Span(7, 7, "PERSON"), Span(40, 50, "PERSON")]
    assert (
        mask("Zeno and <PERSON>, Zoe", extra=[*wild, Span(10, 16, "PERSON")]).text == "<PERSON> and <PERSON>,<PERSON>"
    )
    assert mask("", extra=[Span(0, 1, "PERSON")]) == Masked("", ())


def test_a_card_in_a_list_of_numbers_leaves_the_list_whole() -> None:
    assert json.loads(mask('{"pan": [4539, 3103, 4131, 6474]}').text) == {"pan": ["<CREDIT_CARD>"]}


def test_json_written_line_by_line_stays_json() -> None:
    document = {"pans": [int(CARD), -int(CARD), [int(CARD)]], "note": "ana@example.com"}
    masked = json.loads(mask(json.dumps(document, indent=12)).text)
    assert masked == {"pans": ["<CREDIT_CARD>", "<CREDIT_CARD>", ["<CREDIT_CARD>"]], "note": "<EMAIL_ADDRESS>"}


@pytest.mark.parametrize("escape", ["\u00ad", "\uff0d", "\u200b"])
def test_what_begins_within_an_escape_leaves_the_escape_whole(escape: str) -> None:
    text = json.dumps({"said": f"{escape}phone gmailcom", "inner": json.dumps([f"{escape}phone gmailcom"])})
    said = json.loads(mask(text).text)
    assert json.loads(said["inner"]) == [said["said"]]
    assert "gmailcom" not in said["said"]
