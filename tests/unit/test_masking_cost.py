"""Texts made to cost: each ends soon, and what stands at its end is masked all the same."""

import time
from collections.abc import Callable

import pytest

from privacy.known import Known
from privacy.masking import mask

BYTES = 64 * 1_024
GENEROUS = 3  # seconds of processor time; quadratic work on 64 KB takes minutes
DEAREST = 90  # times what a look at each character costs; the worst takes a third of it on a quiet machine
TRIES = 4  # because a machine that others share is slow at times, and never fast
SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se")
FLOODS = {
    "dots": "a.",
    "digits": "7",
    "spaced digits": "1 ",
    "groups": "123 45 678 9 ",
    "at signs": "a@",
    "dotted addresses": "a@b.c@",
    "zero width": "\u200b",
    "swelling letters": "\ufdfa",
    "open brackets": '{"a":[',
    "escaped quotes": '\\"',
    "backslashes": "\\",
    "quotes": '"',
    "plus": "+1",
    "plus numbers": "+1234567 ",
    "percent": "%40",
    "entities": "&#64;",
    "colons": "ab:",
    "hex": "a",
    "hyphens": "a-",
    "name cues": "my name is ",
    "titles": "Mr. A ",
    "address cues": "address 1 ",
    "password cues": "password: x1x ",
    "com": "mail com ",
    "ibans": "GB82WEST",
    "iban heads": "GB12",
    "phones": "+442079460958 ",
    "bracketed phones": "(415) 555-0132 ",
    "cards": "4539 3103 4131 6474 ",
    "long number": "4539310341316474",
    "codes": "A1234567Z ",
    "e-mails": "a@b.co ",
    "placeholders": "<PERSON>",
    "openings": "<",
    "keys": "-----BEGIN PRIVATE KEY-----",
    "tokens": "eyJhbGciOiJI.eyJ",
    "urls": "http://a.b/?phone=",
    "accents": "e\u0301",
    "foreign digits": "٣",
    "ideographs": "电话",
    "keys in keys": "api_key=",
    "bearers": "bearer bearer1",
    "spaced addresses": "a @ b.com ",
    "quoted addresses": '"a b"@',
    "escapes of escapes": "%25",
    "ampersands": "&amp;amp;#64;",
    "commas": "4539, 3103, ",
    "single digits with dashes": "4-",
    "pairs": "12 34 ",
    "slashed dates": "12/12/",
    "card cues": "card 1 2 3 ",
    "pairs of numbers by dashes": "415-555-0132 12-34 ",
    "shapes without their check": "123.456.789-00 ",
    "rows of threes": "123 456 789 01 ",
    "cued rows": "phone 12 34 56 ",
    "lost signs": "maria 67 gmail ",
    "answers": "its maria com ",
    "sent": "send to com ",
    "known pairs": "mia li ",
    "colons of machines": "a1:b2:",
    "signs of wallets": "1bc1",
    "half escapes": "\\u00",
    "bidirectional marks": "4\u200f5\u200f",
    "mixture": 'phone card 4539 name: Mr. A +1 (415 a@b com {"',
}


KNOWN = Known.compile(["Mia Li", "mia_li_3668"])


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def look(text: str) -> int:
    seen = 0
    for character in text:
        if character.isdigit():
            seen += 1
    return seen


@pytest.mark.parametrize("name", sorted(FLOODS))
def test_a_text_made_to_cost_is_masked_to_its_end(name: str) -> None:
    flood = FLOODS[name]
    text = flood * (BYTES // len(flood.encode())) + " ana.lima@example.com, card 4539310341316474"
    masked = mask(text, known=KNOWN)
    assert any(seconds(lambda: mask(text, known=KNOWN)) < DEAREST * seconds(lambda: look(text)) for _ in range(TRIES))
    assert "ana.lima" not in masked.text
    assert "card 4539310341316474" not in masked.text
    assert mask(masked.text).text == masked.text


def test_thousands_of_names_that_begin_alike_cost_no_more_than_one() -> None:
    text = "ana maria " * (BYTES // 10) + "Ana Maria Zuzubadu"
    names = Known.compile([f"Ana Maria {a}{b}{c}" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES])
    begun = time.process_time()
    masked = mask(text, known=names)
    assert time.process_time() - begun < GENEROUS
    assert "ana" not in masked.text.lower()


def test_a_key_longer_than_any_key_is_masked_to_its_end() -> None:
    assert mask("api_key=" * 8_000 + "Zz9 end").text == "api_key=<SECRET> end"


def test_seven_hundred_contacts_in_one_turn_are_masked_one_by_one() -> None:
    line = "Contact: Ana Lima, ana.lima@example.com, phone +44 20 7946 0958, order no. 12345 is on its way. \n"
    masked = mask(line * 670)
    assert masked.text.count("Contact: <PERSON>, <EMAIL_ADDRESS>, phone <PHONE_NUMBER>, order no. 12345 is on") == 670


def test_a_long_row_of_numbers_in_json_stays_json() -> None:
    assert mask('{"n": ' + "4539310341316474" * 4_000 + "}").text.startswith('{"n": ')


def test_the_same_text_always_ends_the_same_way() -> None:
    text = FLOODS["groups"] * 3_000
    assert len({mask(text).text for _ in range(3)}) == 1


def test_a_long_dense_text_is_masked_value_by_value() -> None:
    line = (
        "Please write to ana.lima@example.com when the parcel is there, or ring +44 20 7946 0958 after nine o'clock.\n"
    )
    masked = mask(line * 300)
    assert masked.text.count("<EMAIL_ADDRESS>") == masked.text.count("<PHONE_NUMBER>") == 300
