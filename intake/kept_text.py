"""Text as it is kept: what no database takes is replaced, and bytes dressed up as text leave a marker."""

import hashlib
import re

# Shorter runs are ids, hashes, tokens and signatures, which may be what the talk is about.
BLOB_CHARS = 512
_LINE_CHARS = 60

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

# One line of base64, in either alphabet; a slash may be escaped as PHP does it.
_LINE = r"[A-Za-z0-9+/_-]++(?:\\/[A-Za-z0-9+/_-]*+)*+"
# A wrapped body goes on over line ends, plain or escaped inside JSON, while its lines stay long.
_BODY = (
    _LINE
    + r"(?:(?:\r?\n|\\r\\n|\\n)(?=[A-Za-z0-9+/_\\-]{40})"
    + _LINE
    + r")*+(?:(?:\r?\n|\\r\\n|\\n)?+[A-Za-z0-9+/]*+={1,2})?"
)
_DATA_URI = re.compile(
    r"data:(?P<kind>[a-z]*+)[^\s,;:\"'<>]{0,127}(?:;[^\s,;:\"'<>]{1,127}){0,4}?;base64," + rf"(?:{_BODY})?"
)
_BLOB = re.compile(r"(?:(?<![A-Za-z0-9+/_\\-])|(?<=\\[nrt]))(?=[A-Za-z0-9+/_\\-]{60})" + _BODY)

_MARKERS = {"image": "[image]", "audio": "[audio]", "video": "[video]"}
_IMAGE_STARTS = ("iVBORw0KGgo", "/9j/", "R0lGOD")


def kept(text: str) -> str:
    """`text` without NULs, lone surrogates (each becomes U+FFFD), data URIs and long runs of base64 (each a marker)."""
    text = storable(text)
    if "base64," in text:
        text = _DATA_URI.sub(lambda found: _MARKERS.get(found["kind"], "[file]"), text)
    if len(text) >= BLOB_CHARS and max(map(len, text.split()), default=0) >= _LINE_CHARS:
        text = _BLOB.sub(_marker_of_a_blob, text)
    return text


def storable(text: str) -> str:
    """`text` with U+FFFD for each NUL and lone surrogate; control and bidi characters stay."""
    if text.isascii():
        return text.replace("\x00", "\ufffd") if "\x00" in text else text
    return _UNSTORABLE.sub("\ufffd", text)


def kept_id(text: str) -> str:
    """An id as it is kept. Where something in it had to be replaced it ends in a mark made of what was sent, so that two
    ids that differ only there stay two."""
    name = storable(text)
    if name == text:
        return text
    return f"{name}#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def _marker_of_a_blob(found: re.Match[str]) -> str:
    run = found[0]
    if len(run) < BLOB_CHARS or not _mixed(run):
        return run
    return "[image]" if run.startswith(_IMAGE_STARTS) else "[file]"


def _mixed(run: str) -> bool:
    # A long word, a ruler of dashes or a shout is text; bytes in base64 have all three kinds within a few dozen characters.
    return run != run.lower() and run != run.upper() and any(map(str.isdigit, run))
