"""When failed work is tried again: later each time, at random, within bounds; never where its attempts are used up."""

import errno
from datetime import timedelta

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from jobs.job import BackOff, Job
from jobs.letters import QueueClass, observe_letter, reflect_letter
from jobs.verdict import Done, Hopeless, Later, Verdict
from models.work import Claim
from scheduler import outage
from scheduler.errand import settled


async def nothing(_: Claim, __: None) -> Verdict:
    return Done()


def job(attempts: int | None = None) -> Job[None]:
    return Job(QueueClass.MEMORY, nothing, timedelta(seconds=1), attempts=attempts)


def claim(attempt: int = 1, crashes: int = 0, waits: int = 0, last_error: str | None = None) -> Claim:
    return Claim(1, 1, "observe", "memory", 1, "log:1", attempt, crashes, waits, {}, {}, None, last_error)


@pytest.mark.parametrize("attempt", [0, 1, 2, 5, 50, 10**9])
def test_the_delay_grows_to_a_bound_and_is_drawn_from_all_of_it(attempt: int) -> None:
    back_off = BackOff(timedelta(seconds=2), timedelta(minutes=10))
    assert back_off.delay(attempt, 0.0) == timedelta(0)
    assert back_off.delay(attempt, 1.0) == min(
        timedelta(seconds=2 * 2 ** min(max(attempt - 1, 0), 30)), timedelta(minutes=10)
    )


def test_a_provider_that_says_how_long_is_obeyed() -> None:
    assert settled(claim(), job(), Later(37.5, "rate_limit", counts=False)) == (
        timedelta(seconds=37.5),
        Later(37.5, "rate_limit", counts=False),
    )


def test_waiting_grows_the_delay_though_it_uses_up_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 1.0)
    later = Later(None, "provider_error", counts=False)
    held = [claim(waits=waits, last_error="provider_error") for waits in (0, 1, 2)]
    delays = [settled(one, job(attempts=1), later) for one in held]
    assert [delay[0].total_seconds() for delay in delays if isinstance(delay, tuple)] == [2, 4, 8]


def test_a_short_outage_is_not_paid_for_what_failed_long_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 1.0)
    old = claim(attempt=40, waits=30, last_error="provider_error")
    first = settled(old, job(), Later(None, "ConnectionResetError", counts=False))
    assert isinstance(first, tuple)
    assert first[0].total_seconds() == 2


def test_the_last_attempt_that_counts_is_the_end() -> None:
    assert settled(claim(attempt=3), job(attempts=3), Later(None, "unparsable")) == Hopeless("unparsable")
    assert isinstance(settled(claim(attempt=2), job(attempts=3), Later(None, "unparsable")), tuple)


def test_crashes_are_no_attempts_and_memory_never_ends() -> None:
    assert isinstance(settled(claim(attempt=3, crashes=1), job(attempts=3), Later(None, "unparsable")), tuple)
    assert isinstance(settled(claim(attempt=10**6), job(), Later(None, "unparsable")), tuple)


def test_a_store_that_is_away_is_told_from_a_fault_of_the_jobs_own() -> None:
    wrapped = DBAPIError("SELECT", {}, ConnectionResetError())
    wrapped.__cause__ = ConnectionResetError()
    assert outage.caused(wrapped)
    assert outage.caused(ConnectionRefusedError())
    assert not outage.caused(ValueError())
    assert not outage.caused(FileNotFoundError())
    assert not outage.caused(FileNotFoundError(errno.ENOENT, "No such file or directory", "an export"))
    assert outage.caused(FileNotFoundError(errno.ENOENT, "No such file or directory"))  # PostgreSQL's socket
    not_yet = Exception("the adapter's")
    not_yet.__cause__ = asyncpg.CannotConnectNowError("starting up")
    assert outage.caused(DBAPIError("SELECT", {}, not_yet))
    assert not outage.caused(DBAPIError("SELECT", {}, ValueError()))


def test_one_logs_letters_share_a_scope_and_hold_its_number_only() -> None:
    observe, reflect = observe_letter(1, 7), reflect_letter(1, 7)
    assert observe.scope == reflect.scope
    assert (observe.kind, reflect.kind) == ("observe", "reflect")
    assert dict(observe.payload) == {"log_id": 7}
