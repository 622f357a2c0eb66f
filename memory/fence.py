"""Text of others on one line, so that it can never pass for a line of ours.

Every prompt and every block is built of lines, and each line begins with a mark of ours. Text that holds no line break
cannot begin a line, so it can forge neither a turn, a heading nor an end, whatever it says. That costs no quoting: a
JSON string would double the quotes of every tool result.
"""

import re

_WHITESPACE = re.compile(r"\s+")
_LINE_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]+")
# Some model servers read their chat template's own tokens wherever they stand, so those lose their shape.
_TEMPLATE = re.compile(
    r"[<＜](?=[|｜]|/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|think)[>＞])|\[(?=/?INST])", re.IGNORECASE
)


def one_line(text: str, joint: str = "\\n") -> str:
    """`text` without line breaks, control characters and chat-template tokens; `joint` stands for each break."""
    bare = _CONTROL.sub("", text).strip()
    spaced = _WHITESPACE.sub(lambda run: joint if _LINE_BREAK.search(run[0]) else " ", bare)
    return _TEMPLATE.sub("‹", spaced)
