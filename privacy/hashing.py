"""Looking people and ids up without storing them: keyed hashes of their folded form."""

import hashlib
import re
import secrets
import unicodedata

SECRET_PREFIX = "at_"  # noqa: S105 - the public prefix of every API key, so that scanners recognise a leaked one

_NOT_PHONE = re.compile(r"[^\d+]")


def fold(kind: str, value: str) -> str:
    """The form in which two spellings of one handle are equal. Phones keep digits and a leading plus."""
    text = unicodedata.normalize("NFKC", value).strip()
    if kind == "phone":
        return _NOT_PHONE.sub("", text)
    if kind == "email":
        return text.casefold()
    return text


def api_secret() -> str:
    """A new API key's secret: a known prefix and 256 random bits."""
    return SECRET_PREFIX + secrets.token_urlsafe(32)


def api_secret_digest(secret: str) -> bytes:
    """What is stored of it. 256 random bits need no slow hash: there is nothing to guess."""
    return hashlib.sha256(secret.encode()).digest()
