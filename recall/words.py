"""Why a log's turns are not observed yet, in words that an operator understands."""

from dataclasses import dataclass
from datetime import datetime, timedelta

_ASKED_NO_MODEL = {
    "daily_cap": "this space's tokens for today are used up",
    "paced": "waiting: the model server is being spared (its rate is used up, or it failed or asked for a pause)",
    "timeout": "waiting: the model server takes too long",
    "unmasked": "waiting: the models layer has not looked for names in what was said",
    "crashed": "waiting: a worker died over it",
}
_RUNNING = {"observe": "observing now", "remask": "waiting: a model looks for names in what was said"}
_WAS_OFF = "memory_off"  # the work waits for its next look since memory was off; the scheduler pulls it forward
_SERVER_SAYS = frozenset({"rate_limit", "provider_error"})
_NO_USE = frozenset({"refusal", "unparsable", "degenerate", "over_long", "empty"})


@dataclass(frozen=True, slots=True)
class Standing:
    """All that the words are made of.

    `due_at` is when the pending turns are due, `asked` whether somebody asked for them. `running` names the kind of work
    that a worker is doing on this log, `next_try` is when its waiting work runs, and `trouble` the code of why it waits.
    """

    on: bool
    pending_turns: int
    pending_tokens: int
    threshold: int
    due_at: datetime | None
    now: datetime
    asked: bool = False
    running: str | None = None
    next_try: datetime | None = None
    trouble: str | None = None
    quarantined: int = 0


def why_not_yet(standing: Standing) -> str:
    """One line. It names numbers and codes, never a person or a text."""
    if not standing.on:
        return "memory is off"
    if standing.pending_turns == 0:
        return (
            f"nothing is pending; {standing.quarantined} in quarantine"
            if standing.quarantined
            else "nothing is pending"
        )
    if standing.running is not None:
        return _RUNNING.get(standing.running, "waiting: the log is being rewritten")
    if standing.trouble is not None and standing.trouble != _WAS_OFF:
        return _troubled(standing.trouble, standing.next_try, standing.now)
    if standing.due_at is None or standing.due_at <= standing.now:
        return f"due ({_why_due(standing)}), waiting for a worker"
    tokens = f"{standing.pending_tokens:,} of {standing.threshold:,} tokens"
    return f"{tokens}; flush by age {_in(standing.due_at - standing.now)}"


def _troubled(code: str, next_try: datetime | None, now: datetime) -> str:
    if code in _SERVER_SAYS:
        words = f"waiting: the model server answers {code}"
    elif code in _NO_USE:
        words = f"waiting: the model's answers are of no use ({code})"
    else:
        words = _ASKED_NO_MODEL.get(code, f"waiting: the last try failed ({code})")
    return words if next_try is None else f"{words}, next try {_in(next_try - now)}"


def _why_due(standing: Standing) -> str:
    if standing.asked:
        return "asked for"
    if standing.pending_tokens > standing.threshold:
        return f"{standing.pending_tokens:,} of {standing.threshold:,} tokens"
    return "by age"


def _in(wait: timedelta) -> str:
    """Rounded up, so that it never promises too much."""
    seconds = -(-wait // timedelta(seconds=1))
    if seconds <= 0:
        return "now"
    if seconds < 90:
        return f"in {seconds} s"
    if seconds < 90 * 60:
        return f"in {-(-seconds // 60)} min"
    if seconds < 48 * 3600:
        return f"in {-(-seconds // 3600)} h"
    return f"in {-(-seconds // 86400)} days"
