"""A lean load client: raw sockets, requests made beforehand, keep-alive, in a process of its own.

It must never be what is measured: answering costs the server many times what asking costs here.
"""

import selectors
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from bench import talk

_ACCEPTED = b"HTTP/1.1 202"
_LONGEST_WAIT = 60.0  # seconds without any answer


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent: `calls` of `turns_a_call` turns, by `clients` connections, over `ports` in turn, for `users` of the `people` in turn.

    `label` begins the ids of conversations and messages: another one makes them new.
    `rate` None: each connection sends as soon as it is answered; else calls a second in all, whoever is free.
    """

    ports: Sequence[int]
    secret: str
    calls: int
    clients: int
    turns_a_call: int
    users: int
    label: str
    people: str = "user"
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Driven:
    """`seconds` from the first call to the last answer; `latencies` in seconds, from when each call was due."""

    seconds: float
    latencies: list[float]

    @property
    def rate(self) -> float:
        """Calls a second."""
        return len(self.latencies) / self.seconds


def drive(plan: Plan) -> Driven:
    """Sends all of it and waits for every answer. Raises when one is not an acceptance."""
    waiting = deque(requests(plan))
    with selectors.DefaultSelector() as selector:
        lines = [_Line(plan.ports[number % len(plan.ports)]) for number in range(plan.clients)]
        for line in lines:
            selector.register(line.wire, selectors.EVENT_READ, line)
        try:
            return _exchange(plan, waiting, lines, selector)
        finally:
            for line in lines:
                line.wire.close()


def requests(plan: Plan) -> Iterator[bytes]:
    """The calls as bytes. A person's calls come in turn with the others', each person in one conversation."""
    spoken = talk.sentences(len(plan.label) + plan.calls)
    for call in range(plan.calls):
        user = f"{plan.people}-{call % plan.users}"
        said = talk.body(f"{plan.label}-{user}", f"{plan.label}-{call}", list(islice(spoken, plan.turns_a_call)))
        yield (
            f"POST /v1/turns HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {plan.secret}\r\n"
            f"X-Canonical-User: {user}\r\nContent-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
        ).encode() + said


@dataclass(slots=True)
class _Line:
    """One connection; `due` is when its call in flight should have left."""

    port: int
    due: float = 0.0
    came: bytearray = field(default_factory=bytearray)
    wire: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.wire = socket.create_connection(("127.0.0.1", self.port))
        self.wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes, due: float) -> None:
        self.due = due
        self.wire.sendall(request)

    def answered(self) -> bool:
        """Takes what has come; whether the answer is whole."""
        self.came += self.wire.recv(65_536)
        head, found, body = self.came.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            return False
        if not head.startswith(_ACCEPTED):
            raise RuntimeError(f"the API answered {bytes(self.came[:400])!r}")
        self.came.clear()
        return True


def _exchange(plan: Plan, waiting: deque[bytes], lines: Sequence[_Line], selector: selectors.BaseSelector) -> Driven:
    free, latencies = deque(lines), list[float]()
    began, sent = time.perf_counter(), 0
    while len(latencies) < plan.calls:
        now = time.perf_counter()
        while free and waiting and (due := _due(plan, began, sent, now)) <= now:
            free.popleft().send(waiting.popleft(), due)
            sent += 1
        pause = _due(plan, began, sent, now) - now if free and waiting else _LONGEST_WAIT
        ready = selector.select(max(pause, 0))
        if not ready and pause == _LONGEST_WAIT:
            raise TimeoutError("the API has not answered for a minute")
        for key, _ in ready:
            if key.data.answered():
                latencies.append(time.perf_counter() - key.data.due)
                free.append(key.data)
    return Driven(time.perf_counter() - began, latencies)


def _due(plan: Plan, began: float, sent: int, now: float) -> float:
    # Counted from when a call was due, a stall is felt by every call that it holds up.
    return now if plan.rate is None else began + sent / plan.rate
