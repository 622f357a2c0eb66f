"""What text keeps, and what leaves a marker: bytes go, words stay, in linear time."""

import base64
import json
import random
import time

import pytest

from intake.kept_text import BLOB_CHARS, kept

_BYTES = random.Random(7).randbytes(3_001)
_BASE64 = base64.b64encode(_BYTES).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see data:image/png;base64,iVBORw0KGgo= here", "see [image] here"),
        ("data:audio/wav;base64,UklGRg==", "[audio]"),
        ("data:video/mp4;base64,AAAA and more", "[video] and more"),
        ("data:application/pdf;charset=utf-8;base64,JVBERi0x.", "[file]."),
        ("data:;base64,QQ==", "[file]"),
        ("![x](data:image/gif;base64,R0lGODlh)", "![x]([image])"),
        ('<img src="data:image/png;base64,iVBO">', '<img src="[image]">'),
        ("the data: base64, is an encoding", "the data: base64, is an encoding"),
        ("data:text/plain,hello", "data:text/plain,hello"),
    ],
)
def test_data_uris_leave_a_marker_of_their_kind(text: str, expected: str) -> None:
    assert kept(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"here: {_BASE64} ok?", "here: [file] ok?"),
        (f"/9j/{_BASE64}", "[image]"),
        (base64.urlsafe_b64encode(_BYTES).decode(), "[file]"),
        (f"Mail:\n{base64.encodebytes(_BYTES).decode()}Regards", "Mail:\n[file]\nRegards"),
        (json.dumps({"a": f"\n{base64.encodebytes(_BYTES).decode()}"}), '{"a": "\\n[file]\\n"}'),
        (_BASE64.replace("/", "\\/"), "[file]"),
    ],
    ids=["inline", "image", "url-safe", "wrapped", "wrapped in JSON", "escaped slashes"],
)
def test_long_base64_leaves_a_marker_wherever_it_stands(text: str, expected: str) -> None:
    assert kept(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "A" * 5_000,
        "-" * 5_000,
        "0123456789abcdef" * 100,
        "word " * 5_000,
        "OneWordOnALine1\n" * 500,
        "我喜欢喝绿茶" * 1_000,
        _BASE64[: BLOB_CHARS - 1],
        "https://example.org/" + "path/Of-9/" * 40,
    ],
    ids=lambda text: text[:12],
)
def test_long_text_that_is_not_bytes_stays(text: str) -> None:
    assert kept(text) == text


@pytest.mark.parametrize(
    "unit",
    [
        "data:",
        "data:a;",
        "data:a;base64,",
        "\\/",
        "\\n",
        "a\\/",
        "a" * 59 + " ",
        "a" * 61 + "\n",
        "Aa1" * 20 + "=",
        "\\",
        "é",
    ],
)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit)) + "base64,"
        began = time.process_time()
        kept(text)
        return time.process_time() - began

    # Sixteen times the text: quadratic work would take 256 times as long. The floor covers a busy machine.
    assert min(seconds(1 << 20) for _ in range(2)) < max(0.5, 80 * min(seconds(1 << 16) for _ in range(3)))
