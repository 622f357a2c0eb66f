"""`afterturn doctor`: is the set-up sound, and where it is not, what is there to do?"""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

from cli import checks
from cli.checks import Finding, State
from cli.failure import Ended, Failed
from cli.output import answer
from cli.servers import read, settings
from config import logging
from config.settings import Settings, WrongSetting, default_data_dir

_MARK = {State.FINE: "ok  ", State.DOUBTFUL: "note", State.WRONG: "BAD "}


def run(data_dir: Path | None, *, as_json: bool) -> None:
    """Prints one finding per check; Failed when one is wrong."""
    findings = list(_findings(data_dir))
    document = [{"check": one.check, "state": one.state, "says": one.says, "do": one.do} for one in findings]
    answer(document, [line for one in findings for line in _lines(one)], as_json=as_json)
    wrong = [one.check for one in findings if one.state is State.WRONG]
    if wrong:
        raise Failed(f"{len(wrong)} of {len(findings)} checks found something wrong: {', '.join(wrong)}")


def _findings(data_dir: Path | None) -> Iterator[Finding]:
    try:
        there = settings(data_dir)
        there.stores.master()
        there.stores.former_master()
    except (WrongSetting, Ended) as error:
        yield Finding("settings", State.WRONG, str(error), "docs/configuration.md lists every variable")
        return
    logging.configure(there.logs, "cli")
    yield Finding("settings", State.FINE, "every variable holds what it takes")
    yield from asyncio.run(_all(there))
    folder = data_dir or default_data_dir()
    if read(folder) is not None:
        yield checks.disk(folder)


async def _all(there: Settings) -> list[Finding]:
    findings: dict[str, Finding] = {}
    for name, check in checks.CHECKS.items():
        wrong = _wrong(name, findings)
        if wrong is None:
            findings[name] = await checks.guarded(name, check, there)
        else:
            findings[name] = Finding(name, State.DOUBTFUL, f"not looked at, since {wrong} is wrong")
    return list(findings.values())


def _wrong(name: str, findings: Mapping[str, Finding]) -> str | None:
    """What is wrong of all that a check needs, and of what that needs in turn."""
    needed = checks.NEEDS.get(name)
    if needed is None:
        return None
    return needed if findings[needed].state is State.WRONG else _wrong(needed, findings)


def _lines(finding: Finding) -> Iterator[str]:
    yield f"{_MARK[finding.state]}  {finding.check:<12}  {finding.says}"
    if finding.do:
        yield f"{'':20}{finding.do}"
