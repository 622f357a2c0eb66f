"""When the next model call may start: two token buckets, a pause, a circuit breaker. Once for Redis, once for one process.

Both say the same, and a test holds them to it: the script runs inside Redis, by Redis' clock, so that workers on many
machines share one state; the class stands in while there is no Redis.
"""

from dataclasses import dataclass

LONGEST_PAUSE = 900.0  # seconds


@dataclass(frozen=True, slots=True)
class Limits:
    """What a provider grants, and how many failures in a row mean that it is down.

    Rates of 0 are no limit. The buckets hold a sixth of a minute: a burst stays near the rate in every minute. A call
    may start while any token is left and may leave a debt, so that a large one is not overtaken for ever by small ones.
    While the circuit is half open, one call at a time is let through, and counts as lost after `probe_seconds`.
    """

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    failures_to_open: int = 5
    open_seconds: float = 15.0  # doubled by each failed probe
    longest_open_seconds: float = 300.0
    probe_seconds: float = 120.0

    @property
    def request_burst(self) -> float:
        return max(1.0, self.requests_per_minute / 6)

    @property
    def token_burst(self) -> float:
        return max(1.0, self.tokens_per_minute / 6)


# KEYS: the state's hash. ARGV: verb, its number, then requests and tokens per second with their bursts, failures to
# open, seconds open, longest open, seconds of a probe, the longest pause. Answers seconds, as text.
SCRIPT = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local verb, number = ARGV[1], tonumber(ARGV[2])
local request_rate, request_burst = tonumber(ARGV[3]), tonumber(ARGV[4])
local token_rate, token_burst = tonumber(ARGV[5]), tonumber(ARGV[6])
local failures_to_open, open_seconds = tonumber(ARGV[7]), tonumber(ARGV[8])
local longest_open, probe_seconds, longest_pause = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

local names = {'at', 'requests', 'tokens', 'paused_until', 'failures', 'open_until', 'reopened', 'probe_until'}
local found = redis.call('HMGET', KEYS[1], unpack(names))
local s = {}
for i, name in ipairs(names) do s[name] = tonumber(found[i] or 0) end
if s.at == 0 or s.at > now + 5 then -- new, or the clock was set back: what it says lies in no known future
  for _, name in ipairs(names) do s[name] = 0 end
  s.at, s.requests, s.tokens = now, request_burst, token_burst
end

local passed = math.max(now - s.at, 0)
s.requests = math.min(s.requests + passed * request_rate, request_burst)
s.tokens = math.min(s.tokens + passed * token_rate, token_burst)
s.at = now

local wait = 0
if verb == 'acquire' then
  wait = math.max(s.paused_until - now, s.open_until - now, s.probe_until - now, 0)
  if request_rate > 0 then wait = math.max(wait, (1 - s.requests) / request_rate) end
  if token_rate > 0 then wait = math.max(wait, (1 - s.tokens) / token_rate) end
  wait = math.min(wait, longest_pause)
  if wait > 0 then
    wait = math.max(wait, 0.001) -- a shorter one would be written as 0, which says go
  else
    s.requests, s.tokens = s.requests - 1, s.tokens - number
    if s.open_until > 0 then s.probe_until = now + probe_seconds end
  end
elseif verb == 'pause' then
  s.paused_until = math.max(s.paused_until, now + math.min(number, longest_pause))
elseif verb == 'answered' then
  s.failures, s.open_until, s.reopened, s.probe_until = 0, 0, 0, 0
elseif verb == 'failed' and s.open_until <= now then
  s.failures = s.failures + 1
  if s.open_until > 0 then s.reopened = s.reopened + 1 end
  if s.open_until > 0 or s.failures >= failures_to_open then
    s.open_until = now + math.min(open_seconds * 2 ^ math.min(s.reopened, 20), longest_open)
    s.probe_until = 0
  end
end

local pairs = {}
for _, name in ipairs(names) do
  pairs[#pairs + 1] = name
  pairs[#pairs + 1] = string.format('%.6f', s[name])
end
redis.call('HSET', KEYS[1], unpack(pairs))
redis.call('EXPIRE', KEYS[1], 3600)
return string.format('%.6f', wait)
"""


def arguments(limits: Limits) -> list[float]:
    """The script's, after verb and number."""
    return [
        limits.requests_per_minute / 60,
        limits.request_burst,
        limits.tokens_per_minute / 60,
        limits.token_burst,
        limits.failures_to_open,
        limits.open_seconds,
        limits.longest_open_seconds,
        limits.probe_seconds,
        LONGEST_PAUSE,
    ]


class LocalPace:
    """The same rules for one process. `now` is in seconds of any clock that does not run backwards."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._at, self._requests, self._tokens = now, limits.request_burst, limits.token_burst
        self._paused_until = self._open_until = self._probe_until = 0.0
        self._failures = self._reopened = 0

    def acquire(self, tokens: int, now: float) -> float:
        """Seconds to wait before asking again; 0 says go, and has taken the call's share."""
        self._refill(now)
        wait = max(self._paused_until - now, self._open_until - now, self._probe_until - now, 0.0)
        if rate := self._limits.requests_per_minute / 60:
            wait = max(wait, (1 - self._requests) / rate)
        if rate := self._limits.tokens_per_minute / 60:
            wait = max(wait, (1 - self._tokens) / rate)
        if wait <= 0:
            self._take(tokens, now)
        return min(wait, LONGEST_PAUSE)

    def pause(self, seconds: float, now: float) -> None:
        self._paused_until = max(self._paused_until, now + min(seconds, LONGEST_PAUSE))

    def answered(self) -> None:
        """The provider is alive."""
        self._failures = self._reopened = 0
        self._open_until = self._probe_until = 0.0

    def failed(self, now: float) -> None:
        if self._open_until > now:
            return  # a call that began before the circuit opened
        self._failures += 1
        if self._open_until:
            self._reopened += 1
        if self._open_until or self._failures >= self._limits.failures_to_open:
            longer = self._limits.open_seconds * 2 ** min(self._reopened, 20)
            self._open_until = now + min(longer, self._limits.longest_open_seconds)
            self._probe_until = 0.0

    def _refill(self, now: float) -> None:
        passed, limits = max(now - self._at, 0.0), self._limits
        self._requests = min(self._requests + passed * limits.requests_per_minute / 60, limits.request_burst)
        self._tokens = min(self._tokens + passed * limits.tokens_per_minute / 60, limits.token_burst)
        self._at = now

    def _take(self, tokens: int, now: float) -> None:
        self._requests -= 1
        self._tokens -= tokens
        if self._open_until:
            self._probe_until = now + self._limits.probe_seconds
