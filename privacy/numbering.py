"""Which phone numbers exist: the numbering plan of each region, from the metadata of phonenumbers."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata
from phonenumbers.phonemetadata import PhoneNumberDesc

_LONGEST_COUNTRY_CODE = 3


@dataclass(frozen=True, slots=True)
class _Plan:
    """A region's numbering: what a call from inside puts first, lines of people, lines of anybody."""

    prefix: re.Pattern[str] | None
    personal: re.Pattern[str]
    every: re.Pattern[str]
    mobile: re.Pattern[str]

    def nationals(self, digits: str) -> Sequence[str]:
        """The national numbers that `digits` may be: as they are, or behind the national prefix."""
        prefix = self.prefix.match(digits) if self.prefix else None
        if prefix is None or not prefix.end():
            return (digits,)
        rest = prefix[prefix.lastindex] if prefix.lastindex and prefix[prefix.lastindex] else digits[prefix.end() :]
        return (digits, rest)


def is_personal(digits: str, regions: Iterable[str]) -> bool:
    """Whether a line with this national number can be a person's in one of `regions`: no free call, no premium line."""
    plans = (plan for plan in map(_plan, regions) if plan)
    return any(plan.personal.fullmatch(national) for plan in plans for national in plan.nationals(digits))


def is_mobile(digits: str, regions: Iterable[str]) -> bool:
    """Whether `digits` are a trunk prefix of one zero and a mobile number of one of `regions`."""
    plans = (plan for plan in map(_plan, regions) if plan)
    return digits[0] == "0" != digits[1] and any(plan.mobile.fullmatch(digits, 1) for plan in plans)


def has_country(digits: str, *, possible: bool) -> bool:
    """Whether `digits` begin with a country's code and go on as a number there; `possible`: the code is enough."""
    for length in range(1, _LONGEST_COUNTRY_CODE + 1):
        regions = COUNTRY_CODE_TO_REGION_CODE.get(int(digits[:length]))
        if regions and digits[0] != "0":
            nationals = (digits[length:], digits[length:].removeprefix("0"))
            plans = [plan for plan in map(_plan, regions) if plan]
            return any(possible or plan.every.fullmatch(national) for plan in plans for national in nationals)
    return False


@cache
def _plan(region: str) -> _Plan | None:
    data = PhoneMetadata.metadata_for_region(region, None)
    if data is None or data.general_desc is None:
        return None
    prefix = data.national_prefix_for_parsing
    return _Plan(
        re.compile(prefix) if prefix else None,
        _lines(data.fixed_line, data.mobile, data.personal_number, data.voip, data.pager),
        _lines(data.general_desc),
        _lines(data.mobile),
    )


def _lines(*descriptions: PhoneNumberDesc | None) -> re.Pattern[str]:
    patterns = (description.national_number_pattern for description in descriptions if description)
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns if pattern and pattern != "NA") or r"(?!)")
