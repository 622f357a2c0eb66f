"""Numbers and codes that name a person: by check digits, by shape, by the word before them."""

import pytest
from stdnum import luhn

from privacy.check import cpf
from privacy.masking import mask


def found(text: str) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.kind) for span in mask(text).spans]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("card 4539 3103 4131 6474 exp 12/29", "4539 3103 4131 6474"),
        ("card 4539.3103.4131.6474 ok", "4539.3103.4131.6474"),
        ("card 4716‑4139‑5376‑7243", "4716‑4139‑5376‑7243"),
        ("4539\u00a03103\u00a04131\u00a06474", "4539\u00a03103\u00a04131\u00a06474"),
        ("4539 3103\n4131 6474", "4539 3103\n4131 6474"),
        ("PAN4716413953767243 glued", "4716413953767243"),
        ("card_4111111111111111_x", "4111111111111111"),
        ("card 4111 1111 1111 1111.com paid", "4111 1111 1111 1111"),
        ("mastercard 2223003122003222", "2223003122003222"),
        ("4152488713445952355", "4152488713445952355"),
        ("3782 822463 10005", "3782 822463 10005"),
        ("número ４５３９３１０３４１３１６４７４", "４５３９３１０３４１３１６４７４"),
        ("٤٥٣٩٣١٠٣٤١٣١٦٤٧٤", "٤٥٣٩٣١٠٣٤١٣١٦٤٧٤"),
        ("order 4539310341316474", "4539310341316474"),
        ("my credit card 060426070011", "060426070011"),
    ],
)
def test_a_payment_card_is_found_whatever_parts_its_digits(text: str, number: str) -> None:
    assert found(text) == [(number, "CREDIT_CARD")]


@pytest.mark.parametrize(
    "text",
    ["4539310341316475", "1748503543004", "4500 4600 4700 4800", "2019 2020 2021 2022", "12345678901234567890"],
)
def test_digits_that_fail_the_check_are_no_card(text: str) -> None:
    assert mask(text).text == text


@pytest.mark.parametrize(
    ("text", "number", "kind"),
    [
        ("meu CPF é 104.332.181-00.", "104.332.181-00", "CPF"),
        ("cpf: 083 863 794 99", "083 863 794 99", "CPF"),
        ("cpf10433218100", "10433218100", "CPF"),
        ("C.P.F.: 529.982.247-25", "529.982.247-25", "CPF"),
        ("CPF: 529.982.247-26", "529.982.247-26", "CPF"),  # mistyped, and no less personal
        ("CNPJ 11.222.333/0001-81 da loja", "11.222.333/0001-81", "CNPJ"),
        ("12.ABC.345/01DE-35", "12.ABC.345/01DE-35", "CNPJ"),
        ("ssn 987-65-4321", "987-65-4321", "US_ITIN"),
        ("SSN 078-05-1121", "078-05-1121", "US_SSN"),
        ("my social is 078051121", "078051121", "US_SSN"),
        ("DNI 12345678z por favor", "12345678z", "ES_NIF"),
        ("NIE X1234567L", "X1234567L", "ES_NIE"),
        ("NHS number 943 476 5919", "943 476 5919", "UK_NHS"),
        ("AB 12 34 56 C", "AB 12 34 56 C", "UK_NINO"),
        ("Aadhaar 2341 2341 2346", "2341 2341 2346", "IN_AADHAAR"),
        ("PAN ABCPM1234Z", "ABCPM1234Z", "IN_PAN"),
        ("GSTIN 27AAPFU0939F1ZV", "27AAPFU0939F1ZV", "IN_GSTIN"),
        ("PESEL 44051401359", "44051401359", "PL_PESEL"),
        ("TC Kimlik No 10000000146", "10000000146", "TR_NATIONAL_ID"),
        ("Steuer-ID 36574261809", "36574261809", "DE_TAX_ID"),
        ("RVNR 15070649C103", "15070649C103", "DE_SOCIAL_SECURITY"),
        ("KVNR: A123456780", "A123456780", "DE_HEALTH_INSURANCE"),
        ("Ausweis L01X00T44", "L01X00T44", "DE_ID_CARD"),
        ("255081416802538", "255081416802538", "FR_NIR"),
        ("RSSMRA85T10A562S", "RSSMRA85T10A562S", "IT_FISCAL_CODE"),
        ("BSN 111222333", "111222333", "NL_BSN"),
        ("85.07.30-033.28", "85.07.30-033.28", "BE_NN"),
        ("756.9217.0769.85", "756.9217.0769.85", "CH_AHV"),
        ("811228-9874", "811228-9874", "SE_PERSONNUMMER"),
        ("131052-308T", "131052-308T", "FI_PERSONAL_IDENTITY_CODE"),
        ("010594Y9032", "010594Y9032", "FI_PERSONAL_IDENTITY_CODE"),
        ("15108695088", "15108695088", "NO_FNR"),
        ("CPR 010190-1234", "010190-1234", "DK_CPR"),
        ("736028/5163", "736028/5163", "CZ_RC"),
        ("11010519491231002X", "11010519491231002X", "CN_RIC"),
        ("주민등록번호 960121-1021413", "960121-1021413", "KR_RRN"),
        ("เลขประจำตัวประชาชน: 3456789012347", "3456789012347", "TH_TNIN"),
        ("SA ID 8001015009087", "8001015009087", "ZA_ID"),
        ("S1234567D", "S1234567D", "SG_FIN"),
        ("51 824 753 556", "51 824 753 556", "AU_ABN"),
        ("TFN 876 543 210", "876 543 210", "AU_TFN"),
        ("SIN 435-418-165", "435-418-165", "CA_SIN"),
        ("1EG4-TE5-MK73", "1EG4-TE5-MK73", "US_MBI"),
        ("NPI: 1234567893", "1234567893", "US_NPI"),
        ("MORGA607054SM9IJ", "MORGA607054SM9IJ", "UK_DRIVING_LICENCE"),
        ("BADD110313HCMLNS09", "BADD110313HCMLNS09", "MX_CURP"),
        ("20-12345678-6", "20-12345678-6", "AR_CUIT"),
        ("12.345.678-5", "12.345.678-5", "CL_RUT"),
        ("1-2345-67890-12-1", "1-2345-67890-12-1", "TH_TNIN"),
        ("my passport number is T3569075", "T3569075", "IN_PASSPORT"),
        ("CNH: 12345678901", "12345678901", "DRIVER_LICENSE"),
        ("RG nº 1.234.567-8", "1.234.567-8", "BR_RG"),
        ("MATRÍCULA 98745632D", "98745632D", "REGISTRATION_NUMBER"),
        ("título de eleitor: 0123 4567 8901", "0123 4567 8901", "BR_VOTER"),
        ("placa do veículo: ABC-1234", "ABC-1234", "LICENSE_PLATE"),
        ("account number is 12345678", "12345678", "ACCOUNT_NUMBER"),
        ("Prontuário médico nº 12345", "12345", "MEDICAL_RECORD"),
    ],
)
def test_an_id_is_found_and_named(text: str, number: str, kind: str) -> None:
    assert found(text) == [(number, kind)]


@pytest.mark.parametrize("text", ["550090112", "44051401359", "10000000146", "006249976", "2345678901234"])
def test_a_checked_number_that_is_the_whole_text_is_an_answer(text: str) -> None:
    assert found(text)[0][0] == text


@pytest.mark.parametrize(
    "text",
    [
        "score 12345678901 points",
        "lote 550090112 chegou",
        "O processo 123.456.789-09 foi arquivado",
        "000.000.000-00 or 111.111.111-11",
        "CPF inválido: 999.999.999-99",
        "invoice INV-2026-000123 for 1.234,56 €",
        "release v1.2.3 to 2.0.0-rc.1",
        "tracking 1Z999AA10123456784",
        "uuid 123e4567-e89b-12d3-a456-426614174000",
        "EAN 4006381333931",
        "Passaporte: AA000000",
        "population 123 456 789",
        "123 456\n789",
        "#12345678 and nº 123456",
        "id: 8917263540",
        "commit 1234567 of 0xdeadbeef",
        "Código de barras: 12345678901",
    ],
)
def test_numbers_of_things_stay(text: str) -> None:
    assert mask(text).text == text


def test_the_cue_nearest_to_a_number_decides() -> None:
    assert found("phone 415-555-0132, order 2125550147") == [("415-555-0132", "PHONE_NUMBER")]


def test_our_own_check_of_a_cpf_agrees_with_the_library() -> None:
    from stdnum.br import cpf as library

    numbers = [f"{number:011}" for number in range(10_433_218_000, 10_433_219_000)]
    assert [cpf(number) for number in numbers] == [library.is_valid(number) for number in numbers]
    assert luhn.is_valid("4539310341316474")


def test_a_bare_number_of_ten_digits_is_nobodys() -> None:
    assert not [number for number in range(2_125_550_000, 2_125_551_000) if mask(str(number)).spans]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("ticket 4539310341316474, order no. GB82WEST12345698765432", "ticket <CREDIT_CARD>, order no. <IBAN_CODE>"),
        ("4242 4242 4242 4242 or 4111111111111111", "<CREDIT_CARD> or <CREDIT_CARD>"),
        ("it is 4 5 3 9 3 1 0 3 4 1 3 1 6 4 7 4 ok", "it is <CREDIT_CARD> ok"),
        ("4-5-3-9-3-1-0-3-4-1-3-1-6-4-7-4", "<CREDIT_CARD>"),
        ("4539,3103,4131,6474 or 4539, 3103, 4131, 6474", "<CREDIT_CARD> or <CREDIT_CARD>"),
        ("4242424242424242,4111111111111111", "<CREDIT_CARD>,<CREDIT_CARD>"),
        ("card 45 39 31 03 41 31 64 74", "card <CREDIT_CARD>"),
        ("1 0 4 3 3 2 1 8 1 0 0", "<CPF>"),
    ],
)
def test_a_number_is_found_however_it_is_parted(text: str, masked: str) -> None:
    assert mask(text).text == masked


@pytest.mark.parametrize(
    "text",
    [
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3",
        "4539, 3103, 4131, 6474, 1200",
        "4,539,310,341",
        "4 5 3 9 3 1 0 3 4 1 3 1 6 4 7 5",
        "4000 0000 0000 0000",
    ],
)
def test_a_row_of_numbers_is_no_card(text: str) -> None:
    assert mask(text).text == text
