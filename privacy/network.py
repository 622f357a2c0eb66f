"""Addresses of machines, accounts and wallets: IP, MAC, IBAN, cryptocurrency."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from privacy.check import stdnum
from privacy.reading import Reading
from privacy.span import Span
from privacy.vocabulary import words

# Each begins with a sign and then looks behind it, so that the engine skips by itself to where one can begin.
_IPV4 = re.compile(r"[0-9](?<![\w.][0-9])[0-9]{0,2}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?(?![\w]|\.[0-9])")
_IPV6 = re.compile(
    r"(?<![\w:.])[0-9A-Fa-f]{0,4}:(?:[0-9A-Fa-f]{0,4}:){1,6}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4})(?:/[0-9]{1,3})?(?![\w:])"
)
_NOT_PERSONAL = tuple(
    ip_network(network)
    for network in words(
        """0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 224.0.0.0/3
    ::/128 ::1/128 fc00::/7 fe80::/10 ff00::/8"""
    )
)
_VERSION = re.compile(r"(?:\bv(?:er(?:s(?:ion|ão|ión))?)?|\brelease|\bbuild)\s?[:.]?\s?\Z", re.IGNORECASE)
_FEWEST_GROUPS = 4  # of an IPv6 address outside the range that is routed

_MANY_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_DEVICE = re.compile(r"[:.-][0-9A-Fa-f]{2,4}[:.-]")
_MAC = re.compile(
    r"(?<![\w:-])(?:[0-9A-Fa-f]{2}(?P<sign>[:-])[0-9A-Fa-f]{2}(?:(?P=sign)[0-9A-Fa-f]{2}){4}"
    r"|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})(?![\w:-])"
)
_IBAN_HEAD = re.compile(r"([A-Za-z]{2})[0-9]{2}")
_IBAN_LENGTHS = {
    country: int(length)
    for country, length in re.findall(
        "([A-Z]{2})([0-9]{2})",
        "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27"
        "GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19"
        "MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23"
        "TN24TR26UA29VA22VG24XK20YE30",
    )
}
_IBAN_BODY = re.compile(r"[A-Za-z0-9]|[ \-\n](?=[A-Za-z0-9])")
_LETTER_VALUES = {ord("A") + at: str(10 + at) for at in range(26)}
_COST = 3

_WALLET = re.compile(
    r"[b130](?<![A-Za-z0-9][b130])"
    r"(?:(?<=b)c1[a-z0-9]{25,62}|(?<=[13])[1-9A-HJ-NP-Za-km-z]{25,34}|(?<=0)x[0-9a-fA-F]{40})(?![A-Za-z0-9])"
)
_bitcoin = stdnum("bitcoin")


def machines(reading: Reading) -> Iterator[Span]:
    """IP addresses that a person may be behind, and MAC addresses."""
    text = reading.text
    if "." in text:
        yield from (Span(*found.span(), "IP_ADDRESS") for found in _IPV4.finditer(text) if _public4(text, found))
    if _MANY_COLONS.search(text):
        yield from (Span(*found.span(), "IP_ADDRESS") for found in _IPV6.finditer(text) if _public6(reading, found[0]))
    if _DEVICE.search(text):
        yield from (Span(*found.span(), "MAC_ADDRESS") for found in _MAC.finditer(text) if _device(found))


def _public4(text: str, found: re.Match[str]) -> bool:
    octets = found[0].partition("/")[0].split(".")
    if any(int(octet) > 255 for octet in octets):  # an octet
        return False
    if all(len(octet) == 1 for octet in octets) or _VERSION.search(text, max(0, found.start() - 12), found.start()):
        return False
    return _personal(IPv4Address(".".join(str(int(octet)) for octet in octets)))


def _public6(reading: Reading, found: str) -> bool:
    reading.budget.spend(_COST)
    try:
        address = ip_address(found.partition("/")[0])
    except ValueError:
        return False
    if not isinstance(address, IPv6Address) or not any(sign.isdigit() for sign in found):
        return False
    embedded = address.ipv4_mapped or (
        IPv4Address(found.rpartition(":")[2]) if "." in found.partition("/")[0] else None
    )
    if embedded is not None:
        return _personal(embedded)
    groups = [group for group in found.partition("/")[0].split(":") if group]
    routed = found[0] in "23" and len(groups[0]) == 4 and len(groups) > 1  # 2000::/3 written in full
    return _personal(address) and (routed or len(groups) >= _FEWEST_GROUPS)


def _personal(address: IPv4Address | IPv6Address) -> bool:
    return not any(address in network for network in _NOT_PERSONAL if network.version == address.version)


def _device(found: re.Match[str]) -> bool:
    signs = set(found[0].lower()) - set(":-.")
    if len(signs) == 1:  # 00:00:…, ff:ff:…: nobody's
        return False
    return "." not in found[0] or not found[0].replace(".", "").isdigit()


def accounts(reading: Reading) -> Iterator[Span]:
    """IBANs in any case, in groups or glued to what follows, and wallets whose checksum holds."""
    text, done = reading.text, 0
    for head in _IBAN_HEAD.finditer(text):
        length = _IBAN_LENGTHS.get(head[1].upper())
        if length is None or head.start() < done:
            continue
        reading.budget.spend(_COST)
        end = _iban_end(text, head.start(), length)
        if end is not None:
            done = end
            yield Span(head.start(), end, "IBAN_CODE")
    for wallet in _WALLET.finditer(text):
        reading.budget.spend(_COST)
        if wallet[0].startswith("0x") or _bitcoin(wallet[0]):
            yield Span(*wallet.span(), "CRYPTO")


def _iban_end(text: str, start: int, length: int) -> int | None:
    """Where an IBAN of `length` signs that begins at `start` ends, if its check digits hold."""
    if start and text[start - 1].isalnum() and text[start - 4 : start].lower() != "iban":
        return None
    compact, at = text[start : start + length], start + length
    if not compact.isalnum():
        compact, at = _gathered(text, start, length)
    if len(compact) < length or not compact.isascii() or not (compact.isupper() or compact.islower()):
        return None
    number = int((compact[4:] + compact[:4]).upper().translate(_LETTER_VALUES))
    return at if number % 97 == 1 else None


def _gathered(text: str, start: int, length: int) -> tuple[str, int]:
    """The next `length` letters and digits without the signs between every four of them, and where they end."""
    signs: list[str] = []
    at = start
    while len(signs) < length:
        piece = _IBAN_BODY.match(text, at)
        if piece is None or (not piece[0].isalnum() and len(signs) % 4):
            break
        if piece[0].isalnum():
            signs.append(piece[0])
        at += 1
    return "".join(signs), at
