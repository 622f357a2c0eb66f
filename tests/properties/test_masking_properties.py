"""What masking promises for every text."""

import json

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacy.budget import Budget
from privacy.detector import find, is_clean
from privacy.json_text import layout
from privacy.kind import PLACEHOLDER
from privacy.known import Known
from privacy.masking import mask
from privacy.policy import DEFAULT_POLICY, Operator, Policy
from privacy.view import views

NAMES = ["Mia Li", "Ana Beatriz Souza", "mia_li_3668", "王小明", "Will May", "+1 415 555 0132"]
KNOWN = Known.compile(NAMES)
PERSONAL = [
    "ana.lima@example.com",
    "+44 20 7946 0958",
    "4539 3103 4131 6474",
    "104.332.181-00",
    "GB82WEST12345698765432",
]
PIECES = [
    *PERSONAL,
    *NAMES,
    *"{}[]\":,\\.-/()+@<>%&_'\n\t 0129aBé٣４",
    *(
        "4539310341316474",
        "10433218100",
        "203.0.113.7",
        "my name is ",
        "phone: ",
        "password: ",
        "address is 12 High St",
    ),
    *("\\n", "\\u0040", "%40", "&#64;", "\u200b", "\u0301", "\ud800", "<PERSON>", "<PHONE_NUMBER_1>", "order ", "Mr. "),
    *("gmailcom", " at example dot com", "true", "1.5e9", "415 555 0132", "12", "345", "6789", "wa.me/5521987654321"),
]
texts = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
actions = st.dictionaries(
    st.sampled_from(
        ["PERSON", "EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "CPF", "HANDLE", "PASSWORD", "IBAN_CODE"]
    ),
    st.sampled_from(Operator),
)
policies = st.builds(lambda operators: Policy(operators=operators, key=b"k" * 32), actions)
numbers = st.sampled_from([4539310341316474, 10433218100, 11987654321, -3, 1.5, True, None])
documents = st.recursive(
    st.one_of(texts, numbers),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)


@given(texts, policies)
@settings(deadline=None, max_examples=400)
def test_masking_twice_is_masking_once(text: str, policy: Policy) -> None:
    once = mask(text, policy, KNOWN).text
    assert mask(once, policy, KNOWN).text == once


@given(texts, policies)
@settings(deadline=None, max_examples=300)
def test_spans_are_in_order_apart_and_inside_the_text(text: str, policy: Policy) -> None:
    edges = [edge for span in mask(text, policy, KNOWN).spans for edge in span[:2]]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)
    assert all(span.start < span.end for span in mask(text, policy, KNOWN).spans)


@given(texts)
@settings(deadline=None, max_examples=300)
def test_what_stands_outside_the_spans_is_not_touched(text: str) -> None:
    masked = mask(text, known=KNOWN)
    at, kept = 0, []
    for span in masked.spans:
        kept.append(text[at : span.start])
        at = span.end
    kept.append(text[at:])
    if masked.spans and masked.spans[0].kind == "MASKED":
        return
    rest = masked.text
    for piece in kept:
        assert piece in rest
        rest = rest[rest.index(piece) + len(piece) :]


@given(st.sampled_from(PERSONAL), texts, texts)
@settings(deadline=None, max_examples=300)
def test_a_personal_value_among_spaces_never_comes_through(value: str, before: str, after: str) -> None:
    assume(value[:5] not in before + after)
    assert value not in mask(f"{before}\n {value} \n{after}", known=KNOWN).text


@given(document=documents, ascii_only=st.booleans(), wrapped=st.booleans())
@settings(deadline=None, max_examples=400)
def test_json_stays_json(*, document: object, ascii_only: bool, wrapped: bool) -> None:
    inner = json.dumps([document], ensure_ascii=ascii_only)
    text = json.dumps({"arguments": inner}) if wrapped else inner
    masked = json.loads(mask(text, known=KNOWN).text)
    if wrapped and isinstance(masked, dict) and "arguments" in masked:
        json.loads(masked["arguments"])


@given(texts)
@settings(deadline=None, max_examples=300)
def test_the_quick_look_overlooks_nothing(text: str) -> None:
    if is_clean(text, KNOWN):
        assert not find(text, KNOWN, DEFAULT_POLICY, Budget(len(text)))


@given(texts)
@settings(deadline=None, max_examples=300)
def test_every_character_of_a_view_has_a_place_in_the_original(text: str) -> None:
    for view in views(text, Budget(len(text))):
        places = [view.origin(at, at + 1) for at in range(len(view.text))]
        assert all(0 <= start < end <= len(text) for start, end in places)
        assert [start for start, _ in places] == sorted(start for start, _ in places)


@given(documents)
@settings(deadline=None, max_examples=200)
def test_a_document_is_one_region_of_json(document: object) -> None:
    text = json.dumps([document])
    assert layout(text).regions == ((0, len(text)),)


@given(st.from_regex(PLACEHOLDER, fullmatch=True))
@settings(deadline=None, max_examples=100)
def test_a_placeholder_is_left_alone(placeholder: str) -> None:
    assert mask(f"a {placeholder} b", known=["Person", "email", "phone"]).text == f"a {placeholder} b"
