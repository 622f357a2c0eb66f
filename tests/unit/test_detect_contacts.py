"""Addresses of people and of their machines: e-mail, phone, IP, MAC, IBAN, wallets."""

import pytest

from privacy.masking import mask
from privacy.policy import Policy


def found(text: str) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.kind) for span in mask(text).spans]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Please write to ana.lima@example.com today", "ana.lima@example.com"),
        ("ana.lima@example.com.", "ana.lima@example.com"),
        ("https://x.example/u/ana.lima@example.com/profile", "ana.lima@example.com"),
        ("?email=ana+news@example.co.uk&x=1", "ana+news@example.co.uk"),
        ("ａｎａ＠ｅｘａｍｐｌｅ．ｃｏｍ です", "ａｎａ＠ｅｘａｍｐｌｅ．ｃｏｍ"),
        ("我的邮箱是ana@example.com谢谢", "ana@example.com"),
        ("我的邮箱是ana@example.com。谢谢", "ana@example.com"),
        ("ana@example。com", "ana@example。com"),
        ("ana@bücher.de", "ana@bücher.de"),
        ("ana@xn--bcher-kva.de", "ana@xn--bcher-kva.de"),
        ("josé@exemplo.com.br", "josé@exemplo.com.br"),
        ("ana@corp.internal", "ana@corp.internal"),
        ("root@localhost", "root@localhost"),
        ("ana\u200b@exa\u00admple.com", "ana\u200b@exa\u00admple.com"),
        ("mailto:ana%40example.com", "ana%40example.com"),
        (r"ana\u0040example.com", r"ana\u0040example.com"),
        ("ana&#64;example.com", "ana&#64;example.com"),
        ("ana&commat;example.com", "ana&commat;example.com"),
        ("o'brien@example.ie", "o'brien@example.ie"),
        ("john at example dot com", "john at example dot com"),
        ("john (at) example (dot) com", "john (at) example (dot) com"),
        ("john [at] example.com", "john [at] example.com"),
        ("sure its johnsmith gmailcom", "johnsmith gmailcom"),
        ("sure its john 12 gmailcom thanks", "john 12 gmailcom"),
        ("my email is winnerworldexamplecom", "winnerworldexamplecom"),
        ("winnerworldexamplecom", "winnerworldexamplecom"),
        ("yes it is winnerworldexamplecom.", "winnerworldexamplecom"),
        ("please send the ticket to winnerworldcom", "winnerworldcom"),
        ("maria 67 worldcom", "maria 67 worldcom"),
        ("maria 67 yahooin", "maria 67 yahooin"),
        ("it is maria 67 kanyahooin", "maria 67 kanyahooin"),
        ("mariagmail", "mariagmail"),
        ("mariagaimlcom", "mariagaimlcom"),
        ("lopez maria 67 gmailcom", "lopez maria 67 gmailcom"),
        ("thanks mariagmailcom", "mariagmailcom"),
    ],
)
def test_an_address_is_found_however_it_is_written(text: str, address: str) -> None:
    assert found(text) == [(address, "EMAIL_ADDRESS")]


def test_an_address_glued_to_words_leaves_no_fragment() -> None:
    assert "lima" not in mask("Emailana.lima@example.comObrigada").text


def test_neighbouring_addresses_stay_several() -> None:
    masked = mask("ana@example.com bob@example.com, eva@example.com")
    assert masked.text == "<EMAIL_ADDRESS> <EMAIL_ADDRESS>, <EMAIL_ADDRESS>"


@pytest.mark.parametrize(
    "text",
    [
        "icon@2x.png",
        "@maria mentioned you",
        "react@18.2.0 and @types/node@18.11.9",
        "git@github.com:org/repo.git",
        "os.system rpc.py a.b.c",
        "O@#$%email&*()",
        "ouvidoria@saude.df.gov.br",
        "welcome to the telecom sitcom",
        "look at google.com",
        "sitcom",
        "send the bill to telecom",
        "what a winnerworldexamplecom that is",
        "I lost 3 gmail accounts",
        "is it on my gmail or hotmail?",
    ],
)
def test_what_only_looks_like_an_address_stays(text: str) -> None:
    assert mask(text).text == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+44 20 7946 0958 please", "+44 20 7946 0958"),
        ("+55 (11) 98765-4321", "+55 (11) 98765-4321"),
        ("tel:+442079460958", "+442079460958"),
        ("+49 (0)30 1234567", "+49 (0)30 1234567"),
        ("0044 20 7946 0958", "0044 20 7946 0958"),
        ("+1 (415) 555-0132 ext. 22", "+1 (415) 555-0132 ext. 22"),
        ("https://wa.me/5521987654321", "5521987654321"),
        ("https://x.example/send?phone=5521987654321", "5521987654321"),
        ("call (415) 555-0132 now", "(415) 555-0132"),
        ("415-555-0132", "415-555-0132"),
        ("international one is415-555-0132", "415-555-0132"),
        ("in 2024 415-555-0132", "415-555-0132"),
        ("meu zap (11) 98765-4321", "(11) 98765-4321"),
        ("11 98765-4321", "11 98765-4321"),
        ("ligue para o 912 345 678 à tarde", "912 345 678"),
        ("llama al 612 34 56 78", "612 34 56 78"),
        ("tél. 01 42 68 53 00", "01 42 68 53 00"),
        ("06.12.34.56.78", "06.12.34.56.78"),
        ("Tel. 030/1234567", "030/1234567"),
        ("電話 03-3224-5000", "03-3224-5000"),
        ("我的电话是13812345678", "13812345678"),
        ("เบอร์โทร 081-234-5678", "081-234-5678"),
        ("+٤٤ ٢٠ ٧٩٤٦ ٠٩٥٨", "+٤٤ ٢٠ ٧٩٤٦ ٠٩٥٨"),
        ("４１５－５５５－０１３２", "４１５－５５５－０１３２"),
        ("my phone number is 7458963218", "7458963218"),
        ("phone 5555555", "5555555"),
    ],
)
def test_a_phone_number_is_found_by_country_shape_or_cue(text: str, number: str) -> None:
    assert found(text) == [(number, "PHONE_NUMBER")]


def test_two_numbers_in_a_row_are_both_found() -> None:
    text = "+44 20 7946 0958 ou (415) 555-0132 (415) 555-0133 (415) 555-0134"
    assert mask(text).text == "<PHONE_NUMBER> ou <PHONE_NUMBER> <PHONE_NUMBER> <PHONE_NUMBER>"


@pytest.mark.parametrize(
    "text",
    [
        "order 2125550147",
        "2125550147",
        "created 1700000000",
        "1748503543004 1748503543012 1748503543020",
        "call me at 10, room 415, building 555",
        "between 2009/2010 and 1999-2001",
        "processo 00001-00012345/2026-11",
        "2024-05-20T10:30:00.123456Z",
        "coordinates 38.7223, -9.1393",
        "price 4 111 111 111 KRW",
        "0800 644 9100",
        "1-800-555-0199",
        "Central de atendimento: (61) 3312-5000",
        "1 2 3 4 5 6 7 8 9 10 11 12",
        "Acórdão 0158/2015",
        "ISBN 978-3-16-148410-0",
    ],
)
def test_numbers_of_nobody_are_no_phone_numbers(text: str) -> None:
    assert mask(text).text == text


def test_a_national_number_counts_only_in_the_regions_of_the_space() -> None:
    assert mask("01 42 68 53 00", Policy(regions=("FR",))).spans
    assert not mask("01 42 68 53 00", Policy(regions=("US",))).spans


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("from 203.0.113.7 at noon", "203.0.113.7"),
        ("203.0.113.7:8080", "203.0.113.7"),
        ("203.000.113.007", "203.000.113.007"),
        ("http://[2001:db8::1]/path", "2001:db8::1"),
        ("2001:db8:85a3::8a2e:370:7334", "2001:db8:85a3::8a2e:370:7334"),
        ("::ffff:203.0.113.7", "::ffff:203.0.113.7"),
    ],
)
def test_a_public_ip_address_is_personal(text: str, address: str) -> None:
    assert found(text) == [(address, "IP_ADDRESS")]


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.0 127.0.0.1 10.0.0.1 172.16.3.4 192.168.1.1 169.254.1.1 255.255.255.255",
        ":: ::1 fe80::1 fd00::1",
        "version 12.0.4.1 and 1.2.3.4",
        "192.168.1.256 300.168.1.1",
        "std::vector a::b dead::beef",
        "12:34:56 and 16:9",
        "00:00:00:00:00:00",
    ],
)
def test_private_addresses_versions_and_code_stay(text: str) -> None:
    assert mask(text).text == text


@pytest.mark.parametrize("address", ["3D:F2:C9:A6:B3:4F", "aa-bb-cc-dd-ee-0f", "aabb.ccdd.eeff", "AA:BB:CC:DD:EE:FA"])
def test_a_mac_address_is_found(address: str) -> None:
    assert found(f"mac {address} here") == [(address, "MAC_ADDRESS")]


@pytest.mark.parametrize(
    ("text", "account"),
    [
        ("iban gb82west12345698765432", "gb82west12345698765432"),
        ("GB82 WEST 1234 5698 7654 32", "GB82 WEST 1234 5698 7654 32"),
        ("transfer to DE89370400440532013000OK", "DE89370400440532013000"),
        ("IBANGB82WEST12345698765432", "GB82WEST12345698765432"),
    ],
)
def test_an_iban_is_found_in_any_dress(text: str, account: str) -> None:
    assert found(text) == [(account, "IBAN_CODE")]


@pytest.mark.parametrize(
    "text",
    ["GB83WEST12345698765432", "AT227 from ATL to ORD on 2024", "sk62v1EXN9CRC4T8ADNPe56U", "IBAN of the bank"],
)
def test_what_fails_the_check_is_no_iban(text: str) -> None:
    assert mask(text).text == text


def test_wallets_are_found_and_hashes_are_not() -> None:
    assert found("bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq")[0][1] == "CRYPTO"
    assert not found("16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ2")
    assert not found("sha 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Ana,415-555-0132,1990", "Ana,<PHONE_NUMBER>,1990"),
        ("phone='415-555-0132'", "phone='<PHONE_NUMBER>'"),
        ("x=415-555-0132&y", "x=<PHONE_NUMBER>&y"),
        ("1'234-567-8901 and 1,415-555-0132", "1'234-567-8901 and 1,415-555-0132"),
        ("v1.415-555-0132", "v1.415-555-0132"),
    ],
)
def test_what_touches_a_phone_number_tells_a_field_from_a_fraction(text: str, masked: str) -> None:
    assert mask(text).text == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to ana @ example.com", "write to <EMAIL_ADDRESS>"),
        ("ana @example.com, ana@ example.com", "<EMAIL_ADDRESS>, <EMAIL_ADDRESS>"),
        ('"ana b"@example.com', "<EMAIL_ADDRESS>"),
        ('{"to": "\\"ana b\\"@example.com"}', '{"to": "<EMAIL_ADDRESS>"}'),
        ("ana%2540example.com x%252540y.com", "<EMAIL_ADDRESS> <EMAIL_ADDRESS>"),
        ("ana&amp;#64;example.com", "<EMAIL_ADDRESS>"),
        ("x@y.z@w.com", "<EMAIL_ADDRESS>"),
        ("bwcartysbcglobalnet", "<EMAIL_ADDRESS>"),
        ("my email address is kartikabccom", "my email address is <EMAIL_ADDRESS>"),
    ],
)
def test_an_address_is_found_apart_quoted_and_escaped_twice(text: str, masked: str) -> None:
    assert mask(text).text == masked


@pytest.mark.parametrize(
    "text",
    [
        "see a @ b",
        "meet @ noon.ok",
        "3 @ 4.50 each",
        "via @example.com",
        '["a", "@b"]',
        "R&amp;D 100%25",
        "the internet",
    ],
)
def test_a_sign_alone_makes_no_address(text: str) -> None:
    assert mask(text).text == text


def test_an_answer_of_nothing_but_a_mobile_number_with_its_zero_is_one() -> None:
    assert mask("09171234567").text == mask(" 05321234567. ").text.strip(" .") == "<PHONE_NUMBER>"
    assert mask("ref 09171234567").spans == mask("00171234567").spans == mask("01234567891").spans == ()
