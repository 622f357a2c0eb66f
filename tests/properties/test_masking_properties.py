"""What masking promises for every text."""

import json
import sys

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from presidio_anonymizer import AnonymizerEngine
from presidio_anonymizer.entities import OperatorConfig, RecognizerResult

from privacy.applying import Masker
from privacy.budget import Budget
from privacy.detector import find, is_clean, is_clear
from privacy.json_text import layout
from privacy.kind import KINDS, PLACEHOLDER
from privacy.known import Known
from privacy.masking import mask
from privacy.policy import DEFAULT_POLICY, Operator, Policy
from privacy.span import Span
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
    *(
        "4 5 3 9 3 1 0 3 4 1 3 1 6 4 7 4",
        "4539, 3103, 4131, 6474",
        "4242424242424242",
        "ana @ example.com",
        '"ana b"@x.co',
    ),
    *("%2540", "&amp;#64;", "api_key=", "verizonnet", "x@y.z@w.com", "4 ", ", ", "110 20"),
    *("ramgmail", "maria 67 gmail", "lopez ", "its ", "send it to worldwidecom", "\\u00ad", "\\u00"),
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


# What slips through is somebody's: three times what other properties are tried on.
thorough = settings(max_examples=3 * settings().max_examples)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join))
@settings(deadline=None, max_examples=12)
def test_eight_times_a_text_is_eight_times_the_work(piece: str) -> None:
    few, many = (_calls(piece * (size // len(piece))) for size in (500, 4_000))
    assert many < 16 * few  # sixty-four times where it is quadratic


def _calls(text: str) -> int:
    """Calls of functions and methods, whatever the machine does meanwhile."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    mask(text, known=KNOWN)  # what is looked up once is looked up now
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        mask(text, known=KNOWN)
    finally:
        sys.setprofile(before)
    return calls


@given(texts, policies)
@thorough
def test_masking_twice_is_masking_once(text: str, policy: Policy) -> None:
    once = mask(text, policy, KNOWN).text
    assert mask(once, policy, KNOWN).text == once


@given(st.lists(st.sampled_from(PERSONAL), min_size=1, max_size=4), st.sampled_from(Operator), texts)
@thorough
def test_every_operator_is_a_fixed_point(values: list[str], operator: Operator, between: str) -> None:
    policy = Policy(operators=dict.fromkeys(KINDS, operator), key=b"k" * 32)
    pseudonyms: dict[str, str] = {}
    once = mask(between.join(values), policy, KNOWN, pseudonyms=pseudonyms).text
    given_so_far = dict(pseudonyms)
    assert mask(once, policy, KNOWN, pseudonyms=pseudonyms).text == once
    assert pseudonyms == given_so_far


@given(policies.map(Policy.to_document))
@thorough
def test_a_policy_reads_what_it_writes(document: dict[str, object]) -> None:
    assert Policy.from_document(document, key=b"k").to_document() == document


@given(texts, st.lists(st.tuples(st.integers(-3, 90), st.integers(-3, 90), st.sampled_from(["PERSON", "CPF", "GPE"]))))
@thorough
def test_what_somebody_else_found_is_masked_with_the_rest(text: str, found: list[tuple[int, int, str]]) -> None:
    once = mask(text, known=KNOWN, extra=[Span(*span) for span in found])
    covered = {at for span in once.spans for at in range(span.start, span.end)}
    whole = list(PLACEHOLDER.finditer(text))
    for start, end, kind in found:
        inside = set(range(max(start, 0), min(end, len(text))))
        if kind != "GPE" and not any(place.start() <= start and end <= place.end() for place in whole):
            assert all(at in covered or text[at - 1] == "\\" or _in_escape(text, at) for at in inside)
    assert mask(once.text, known=KNOWN).text == once.text


def _in_escape(text: str, at: int) -> bool:
    return "\\" in text[max(0, at - 5) : at]


@given(texts, st.sampled_from([Operator.REPLACE, Operator.MASK, Operator.HASH]))
@thorough
def test_the_engine_of_presidio_would_put_the_same(text: str, operator: Operator) -> None:
    spans = find(text, KNOWN, DEFAULT_POLICY, Budget(len(text)))
    assume(spans and not layout(text).regions)
    masker = Masker(Policy(operators=dict.fromkeys(KINDS, operator), key=b"k" * 32), {})
    stand_ins = {
        span: masker.apply(text[span.start : span.end], [Span(0, span.end - span.start, span.kind)]).text
        for span in spans
    }
    result = AnonymizerEngine().anonymize(  # type: ignore[no-untyped-call,unused-ignore]  # it ships no types
        text,
        [RecognizerResult(str(at), span.start, span.end, 1.0) for at, span in enumerate(spans)],  # type: ignore[no-untyped-call,unused-ignore]
        {str(at): OperatorConfig("replace", {"new_value": stand_ins[span]}) for at, span in enumerate(spans)},
        merge_entities_with_spaces=False,
    )
    applied = masker.apply(text, spans)
    assert applied.text == result.text
    assert list(applied.places) == sorted((item.start, item.end) for item in result.items)


@given(texts, policies)
@thorough
def test_spans_are_in_order_apart_and_inside_the_text(text: str, policy: Policy) -> None:
    edges = [edge for span in mask(text, policy, KNOWN).spans for edge in span[:2]]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)
    assert all(span.start < span.end for span in mask(text, policy, KNOWN).spans)


@given(texts)
@thorough
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
@thorough
def test_a_personal_value_among_spaces_never_comes_through(value: str, before: str, after: str) -> None:
    assume(value[:5] not in before + after)
    assert value not in mask(f"{before}\n {value} \n{after}", known=KNOWN).text


@given(document=documents, ascii_only=st.booleans(), wrapped=st.booleans())
@thorough
def test_json_stays_json(*, document: object, ascii_only: bool, wrapped: bool) -> None:
    inner = json.dumps([document], ensure_ascii=ascii_only)
    text = json.dumps({"arguments": inner}) if wrapped else inner
    masked = json.loads(mask(text, known=KNOWN).text)
    if wrapped and isinstance(masked, dict) and "arguments" in masked:
        json.loads(masked["arguments"])


@given(texts)
@thorough
def test_the_quick_look_overlooks_nothing(text: str) -> None:
    if is_clean(text, KNOWN):
        assert not find(text, KNOWN, DEFAULT_POLICY, Budget(len(text)))
    masked = mask(text, known=KNOWN).text
    if is_clear(masked, KNOWN):
        assert not find(masked, KNOWN, DEFAULT_POLICY, Budget(len(masked)))


@given(texts)
@thorough
def test_every_character_of_a_view_has_a_place_in_the_original(text: str) -> None:
    for view in views(text, Budget(len(text))):
        places = [view.origin(at, at + 1) for at in range(len(view.text))]
        assert all(0 <= start < end <= len(text) for start, end in places)
        assert [start for start, _ in places] == sorted(start for start, _ in places)


@given(documents)
@thorough
def test_a_document_is_one_region_of_json(document: object) -> None:
    text = json.dumps([document])
    assert layout(text).regions == ((0, len(text)),)


@given(st.from_regex(PLACEHOLDER, fullmatch=True))
@thorough
def test_a_placeholder_is_left_alone(placeholder: str) -> None:
    assert mask(f"a {placeholder} b", known=["Person", "email", "phone"]).text == f"a {placeholder} b"
