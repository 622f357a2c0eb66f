"""Prints docs/configuration.md."""

from datetime import timedelta

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from config.settings import CONCERNS, variable


def document() -> str:
    """The whole page, in Markdown."""
    parts = [
        "# Configuration",
        "",
        "Everything is an environment variable (or a line of `.env`); each process reads them once, when it starts. A wrong value",
        "stops the process with one line that names the variable and what it takes. This page is generated: `python -m config`.",
    ]
    for concern in CONCERNS.values():
        parts += ["", f"## {concern.__name__}", "", str(concern.__doc__).splitlines()[0], ""]
        parts += ["| Variable | Default | Meaning |", "| --- | --- | --- |"]
        parts += [_row(name, field) for name, field in concern.model_fields.items()]
    return "\n".join(parts) + "\n"


def _row(name: str, field: FieldInfo) -> str:
    return f"| `{variable(name)}` | {_default(field.default)} | {field.description} |"


def _default(value: object) -> str:
    if value is PydanticUndefined:
        return "must be set (`afterturn up` sets it)"
    if value is None or value == () or isinstance(value, SecretStr):
        return ""
    if isinstance(value, bool):
        return "`1`" if value else "`0`"
    if isinstance(value, timedelta):
        return f"`{_span(value)}`"
    return f"`{value}`"


def _span(value: timedelta) -> str:
    seconds = int(value.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


if __name__ == "__main__":
    print(document(), end="")  # noqa: T201 - printing is what this module is for
