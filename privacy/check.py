"""Check digits: whether a compact id (no separators, upper case) can be a real one. Nothing is remembered."""

import re
from collections.abc import Callable
from datetime import date
from functools import cache
from importlib import import_module

Check = Callable[[str], bool]

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"  # Mastercard, both series
    r"|3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11,16}|35(?:2[89]|[3-8][0-9])[0-9]{12,15}"  # Amex, Diners, JCB
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12,15}|62[0-9]{14,17}"  # Discover, UnionPay
    r"|(?:5[0678]|6[0-9])[0-9]{14,17}|(?:9792|220[0-4]|60[0-9]{2}|8[12][0-9]{2})[0-9]{12}"  # Maestro, Troy, Mir, RuPay
)
_SSN = re.compile(r"(?!000|666|9)[0-9]{3}(?!00)[0-9]{2}(?!0000)[0-9]{4}")
_ITIN = re.compile(r"9[0-9]{2}(?:5[0-9]|6[0-5]|7[0-9]|8[0-8]|9[0-24-9])[0-9]{4}")
_NINO = re.compile(r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][0-9]{6}[A-D]")
_MBI = re.compile(
    r"[1-9][AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9][0-9]"
    r"[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9][0-9][AC-HJKMNP-RT-Y]{2}[0-9]{2}"
)
_UK_LICENCE = re.compile(
    r"(?=[A-Z]{1,5}9{0,4}[0-9]{6})[A-Z0-9]{5}[0-9](?:[05][1-9]|[16][0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]"
    r"[A-Z9]{2}[0-9A-Z][A-Z]{2}"
)
_GSTIN = re.compile(r"(?:0[1-9]|[1-3][0-9])[A-Z]{5}[0-9]{4}[A-Z][1-9A-Z]Z[0-9A-Z]")
_PAN = re.compile(r"[A-Z]{3}[PCHABGJLFT][A-Z][0-9]{4}[A-Z]")
_FISCAL = re.compile(r"[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]")
_CURP = re.compile(r"[A-Z]{4}[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[HMX][A-Z]{5}[0-9A-Z][0-9]")
_AADHAAR = re.compile(r"[2-9][0-9]{11}")
_EPOCH_MILLISECONDS = range(1_400_000_000_000, 2_200_000_000_000)
_MRZ_WEIGHTS = (7, 3, 1)


def stdnum(module: str) -> Check:
    """The check of `stdnum.<module>`, imported when first asked."""

    @cache
    def found() -> Check:
        valid: Check = import_module(f"stdnum.{module}").is_valid
        return valid

    def check(number: str) -> bool:
        return found()(number)

    return check


def pattern(shape: re.Pattern[str]) -> Check:
    return lambda number: shape.fullmatch(number) is not None


def luhn(digits: str) -> bool:
    total = sum(map(int, digits[-1::-2])) + sum(_DOUBLED[int(digit)] for digit in digits[-2::-2])
    return total % 10 == 0


def card(digits: str) -> bool:
    return _ISSUERS.fullmatch(digits) is not None and luhn(digits) and varied(digits)


def cpf(digits: str) -> bool:
    """Done here because nearly every number of eleven digits is asked."""
    values = [int(digit) for digit in digits]
    first = sum([value * weight for value, weight in zip(values, range(10, 1, -1), strict=False)]) * 10 % 11 % 10
    if first != values[9]:
        return False
    second = sum([value * weight for value, weight in zip(values, range(11, 1, -1), strict=False)]) * 10 % 11 % 10
    return second == values[10] and varied(digits)


def varied(digits: str) -> bool:
    """Not one digit over and over, which is what an example looks like."""
    return len(set(digits)) > 1


def dated(digits: str, year: slice, month: slice, day: slice) -> bool:
    """Whether a day of the calendar stands at these places; a year of two digits may be of any century."""
    text = digits[year]
    century = "" if len(text) == 4 else "20"
    try:
        date(int(century + text), int(digits[month]), int(digits[day]))
    except ValueError:
        return digits[month] == "02" and digits[day] == "29"
    return True


def south_african(digits: str) -> bool:
    return digits[10] in "012" and luhn(digits) and dated(digits, slice(0, 2), slice(2, 4), slice(4, 6))


def korean(digits: str) -> bool:
    """Dates and the century digit; the check digit was dropped for new numbers in 2020."""
    return dated(digits, slice(0, 2), slice(2, 4), slice(4, 6)) and digits[6] in "1234"


def korean_foreigner(digits: str) -> bool:
    return dated(digits, slice(0, 2), slice(2, 4), slice(4, 6)) and digits[6] in "5678"


def korean_checked(digits: str) -> bool:
    total = sum(
        int(digit) * weight for digit, weight in zip(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=False)
    )
    closing = 13 if digits[6] in "5678" else 11
    return (korean(digits) or korean_foreigner(digits)) and (closing - total % 11) % 10 == int(digits[12])


def thai(digits: str) -> bool:
    """Check digit, kind of person and province; a time in milliseconds has the same length."""
    if digits[0] in "09" or int(digits) in _EPOCH_MILLISECONDS or digits[1] == "0" or int(digits[1:3]) in _NO_PROVINCE:
        return False
    total = sum(int(digit) * (13 - at) for at, digit in enumerate(digits[:12]))
    return (11 - total % 11) % 10 == int(digits[12])


_NO_PROVINCE = frozenset((28, 29, 59, 68, 69, 78, 79, 87, 88, 89, 97, 98, 99))


def medicare(digits: str) -> bool:
    weights = (1, 3, 7, 9, 1, 3, 7, 9)
    total = sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))
    return digits[0] in "23456" and total % 10 == int(digits[8])


def philippine(digits: str) -> bool:
    total = sum(int(digit) * (9 - at) for at, digit in enumerate(digits[:8]))
    return varied(digits) and total % 11 == int(digits[8])


def finnish(number: str) -> bool:
    """Day, month, year, the sign of the century, a serial and a check sign."""
    control = "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(number[:6] + number[7:10]) % 31]
    return number[10] == control and dated(number, slice(4, 6), slice(2, 4), slice(0, 2))


def npi(digits: str) -> bool:
    return digits[0] in "12" and luhn("80840" + digits) and varied(digits)


def machine_readable(number: str) -> bool:
    """The check digit of passports and identity cards (ICAO 9303), German ones: no vowels."""
    values = (int(sign, 36) * _MRZ_WEIGHTS[at % 3] for at, sign in enumerate(number[:-1]))
    return number[-1].isdigit() and sum(values) % 10 == int(number[-1]) and not set(number) & set("ABDEIOQSU")


def health_insurance(number: str) -> bool:
    """A letter, eight digits and a check digit: the letter counts as two digits, then Luhn with weights 1, 2."""
    digits = f"{ord(number[0]) - 64:02d}" + number[1:9]
    total = sum(_quersumme(int(digit) * (1 + at % 2)) for at, digit in enumerate(digits))
    return total % 10 == int(number[9])


def _quersumme(value: int) -> int:
    return value // 10 + value % 10


def pension(number: str) -> bool:
    """The German pension insurance number: area, birth date, initial, serial, check digit."""
    month, day = int(number[4:6]), int(number[2:4]) % 50
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return False
    digits = number[:8] + f"{ord(number[8]) - 64:02d}" + number[9:11]
    weights = (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)
    total = sum(_quersumme(int(digit) * weight) for digit, weight in zip(digits, weights, strict=True))
    return total % 10 == int(number[11])


def hong_kong(number: str) -> bool:
    values = [36] * (9 - len(number)) + [int(sign, 36) for sign in number]
    return sum(value * (9 - at) for at, value in enumerate(values)) % 11 == 0


def taiwanese(number: str) -> bool:
    code = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(number[0]) + 10
    digits = [code // 10, code % 10, *map(int, number[1:])]
    return (
        sum(digit * weight for digit, weight in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0
    )


ssn, itin, nino, mbi = pattern(_SSN), pattern(_ITIN), pattern(_NINO), pattern(_MBI)
uk_licence, gstin, pan, fiscal, curp = (
    pattern(_UK_LICENCE),
    pattern(_GSTIN),
    pattern(_PAN),
    pattern(_FISCAL),
    pattern(_CURP),
)
_verhoeff = stdnum("verhoeff")


def aadhaar(digits: str) -> bool:
    return _AADHAAR.fullmatch(digits) is not None and digits != digits[::-1] and _verhoeff(digits)
