"""A policy as a document: read with errors that name the place, written so that it reads the same."""

import pytest

from privacy.masking import mask
from privacy.policy import DEFAULT_POLICY, Operator, Policy, PolicyError

KEY = b"k" * 32


def test_an_empty_document_is_the_default() -> None:
    assert Policy.from_document({}) == DEFAULT_POLICY
    assert Policy.from_document(DEFAULT_POLICY.to_document()) == DEFAULT_POLICY


def test_a_document_comes_back_as_it_was_written_and_never_with_the_key() -> None:
    document = {"version": 3, "operators": {"CPF": "keep", "PERSON": "pseudonym"}, "regions": ["BR", "PT"]}
    policy = Policy.from_document(document, key=KEY)
    assert policy.to_document() == document
    assert (policy.operator("PERSON"), policy.operator("IBAN_CODE")) == (Operator.PSEUDONYM, Operator.REPLACE)
    assert KEY.decode() not in repr(policy)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], ""),
        (None, ""),
        ({"operator": {}}, "operator"),
        ({"operators": []}, "operators"),
        ({"operators": {"SHOE_SIZE": "mask"}}, "operators.SHOE_SIZE"),
        ({"operators": {"MASKED": "keep"}}, "operators.MASKED"),
        ({"operators": {"CPF": "shred"}}, "operators.CPF"),
        ({"operators": {"CPF": None}}, "operators.CPF"),
        ({"operators": {"CPF": ["mask"]}}, "operators.CPF"),
        ({"operators": {"CPF": "hash"}}, "operators.CPF"),
        ({"regions": "BR"}, "regions"),
        ({"regions": ["BR", "br"]}, "regions[1]"),
        ({"regions": ["BR", 1]}, "regions[1]"),
        ({"regions": ["BR", "BR"]}, "regions[1]"),
        ({"version": True}, "version"),
        ({"version": -1}, "version"),
        ({"version": "1"}, "version"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(document: object, path: str) -> None:
    with pytest.raises(PolicyError) as refused:
        Policy.from_document(document)
    assert refused.value.path == path
    assert str(refused.value).startswith(path)


@pytest.mark.parametrize("operator", ["mask", "hash", "pseudonym", "replace"])
def test_a_card_masked_by_any_operator_is_never_seen_again(operator: str) -> None:
    policy = Policy.from_document({"operators": {"CREDIT_CARD": operator}}, key=KEY)
    pseudonyms: dict[str, str] = {}
    once = mask("card 4111 1111 1111 1111, thanks", policy, pseudonyms=pseudonyms)
    assert len(once.spans) == 1
    again = mask(once.text, policy, pseudonyms=pseudonyms)
    assert (again.text, again.spans) == (once.text, ())


def test_pseudonyms_go_on_where_the_mapping_stands_and_give_no_number_twice() -> None:
    policy = Policy.from_document({"operators": {"EMAIL_ADDRESS": "pseudonym"}}, key=KEY)
    pseudonyms: dict[str, str] = {}
    assert mask("a1@x.co b2@x.co", policy, pseudonyms=pseudonyms).text == "<EMAIL_ADDRESS_1> <EMAIL_ADDRESS_2>"
    del pseudonyms[next(iter(pseudonyms))]
    assert mask("c3@x.co b2@x.co", policy, pseudonyms=pseudonyms).text == "<EMAIL_ADDRESS_3> <EMAIL_ADDRESS_2>"
