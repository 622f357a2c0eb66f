"""Names, homes, birth dates and secrets: beside a cue, and not without one."""

import pytest

from privacy.masking import mask


def found(text: str) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.kind) for span in mask(text).spans]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is Ana Lima.", "Ana Lima"),
        ("my name is ana", "ana"),
        ("my full name is jack and the booking is late", "jack"),
        ("name ravi", "ravi"),
        ("Meu nome é Walter Rodrigues Cruz. No dia 25", "Walter Rodrigues Cruz"),
        ("me chamo Júlia", "Júlia"),
        ("me llamo Ana", "Ana"),
        ("ich heiße Jürgen Groß", "Jürgen Groß"),
        ("Je m'appelle Zoé", "Zoé"),
        ("Mr. Johnson called", "Johnson"),
        ("Falar com Sr. Roberto da Silva hoje", "Roberto da Silva"),
        ("Dr Joaquim orientou", "Joaquim"),
        ("- **Passenger:** Ivan Smith", "Ivan Smith"),
        ("Requerente: Fernanda Costa Santos", "Fernanda Costa Santos"),
        ("I am Jane Doe and I need help", "Jane Doe"),
        ("A paciente Ana Beatriz Silva aguarda", "Ana Beatriz Silva"),
        ("Falar com José Carlos da Secretaria", "José Carlos"),
        ("Best regards,\nMia Li", "Mia Li"),
        ('{"first_name": "Mia"}', "Mia"),
        (r'"{\"last_name\": \"Li\"}"', "Li"),
        ('{"lastName": "Li"}', "Li"),
    ],
)
def test_a_name_is_found_behind_its_cue(text: str, name: str) -> None:
    assert found(text) == [(name, "PERSON")]


@pytest.mark.parametrize(
    "text",
    [
        "Ana Lima likes New York",
        "my name is not important",
        "My name appears incorrectly on the statement",
        "user name, file name: report.pdf",
        '{"name": "get_user_details"}',
        "Name: functions.lookup",
        "CAN I SPEAK TO A REAL PERSON?",
        "Atenciosamente, Equipe de Atendimento",
        "A servidora da Secretaria de Saúde do GDF",
        "I am Happy",
        "They're called Peruvian Lilies",
        "my name is <PERSON>",
        "120 ms Total",
        "miss London",
    ],
)
def test_a_name_is_not_guessed(text: str) -> None:
    assert mask(text).text == text


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ("my address is 12 High Street, Leeds. Thanks", "12 High Street, Leeds"),
        ("I live at 221B Baker Street", "221B Baker Street"),
        ("Endereço: Rua das Flores, 123, Apt 45", "Rua das Flores, 123, Apt 45"),
        ("Moro na QI 25 Conjunto 10 Casa 15, Guará", "QI 25 Conjunto 10 Casa 15, Guará"),
        ('{"address1": "975 Sunset Drive"}', "975 Sunset Drive"),
        ('{"street": "12 Baker Street", "city": "London"}', "12 Baker Street"),
    ],
)
def test_a_home_is_found_behind_its_cue(text: str, home: str) -> None:
    assert found(text) == [(home, "STREET_ADDRESS")]


@pytest.mark.parametrize(
    "text",
    ["I live in Paris", "the address is wrong", "Morador da Asa Norte há 20 anos", "12 High Street is closed"],
)
def test_places_without_a_door_or_a_cue_stay(text: str) -> None:
    assert mask(text).text == text


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("dob: 04/05/1990", "04/05/1990"),
        ("I was born on 5 April 1990", "5 April 1990"),
        ("Date of Birth: 1968-01-06", "1968-01-06"),
        ("data de nascimento 05/04/1990", "05/04/1990"),
        ("nasci em 5 de abril de 1990", "5 de abril de 1990"),
        ('{"dob": "1990-04-05"}', "1990-04-05"),
        (r'"{\"dob\": \"1990-04-05\"}"', "1990-04-05"),
    ],
)
def test_a_birth_date_is_found_and_other_dates_stay(text: str, day: str) -> None:
    assert found(text) == [(day, "BIRTH_DATE")]
    assert mask(f"we met on {day}").text == f"we met on {day}"


@pytest.mark.parametrize(
    ("text", "secret", "kind"),
    [
        ("password is Tr0ub4dor&3", "Tr0ub4dor&3", "PASSWORD"),
        ("senha: gato", "gato", "PASSWORD"),
        ('{"password": "hunter2"}', "hunter2", "PASSWORD"),
        ("my pin is 4821.", "4821", "PASSWORD"),
        ("username: jdoe_77", "jdoe_77", "USERNAME"),
        ("key AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE", "SECRET"),
        ("api key: 0123456789abcdef", "0123456789abcdef", "SECRET"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "SECRET"),
    ],
)
def test_what_lets_somebody_in_is_found(text: str, secret: str, kind: str) -> None:
    assert found(text) == [(secret, kind)]


def test_a_private_key_is_masked_to_its_end_or_to_the_end_of_the_text() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----"
    assert mask(f"a {key} b").text == "a <SECRET> b"
    assert mask("a -----BEGIN RSA PRIVATE KEY-----\nMIIB").text == "a <SECRET>"


@pytest.mark.parametrize(
    "text", ["my password is not working", "password reset", '{"password": true}', "the token is expired"]
)
def test_talk_about_secrets_is_no_secret(text: str) -> None:
    assert mask(text).text == text


def test_the_name_beside_a_mailbox_is_a_name() -> None:
    text = 'From: Ana Lima <ana@example.com>, "Bob A. Stone" <bob@example.com>'
    assert mask(text).text == 'From: <PERSON> <<EMAIL_ADDRESS>>, "<PERSON>" <<EMAIL_ADDRESS>>'
