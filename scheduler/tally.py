"""What workers count, for Prometheus: kinds, classes and outcomes, never an id."""

from prometheus_client import CollectorRegistry, Counter, Histogram


class Tally:
    """The counters of one process, on the registry that it is handed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._runs = Counter("afterturn_jobs", "Jobs by what became of them.", ["kind", "outcome"], registry=registry)
        self._seconds = Histogram("afterturn_job_seconds", "How long runs took.", ["kind"], registry=registry)
        self.bells = Counter("afterturn_bells", "Bells heard, by class.", ["queue_class"], registry=registry)
        self.noise = Counter("afterturn_bells_not_understood", "What was no bell.", ["queue_class"], registry=registry)
        self._known: dict[tuple[str, str], tuple[Counter, Histogram]] = {}

    def ran(self, kind: str, outcome: str, jobs: int, seconds: float) -> None:
        """Counts one run of so many jobs."""
        if (kind, outcome) not in self._known:
            self._known[kind, outcome] = self._runs.labels(kind, outcome), self._seconds.labels(kind)
        runs, times = self._known[kind, outcome]
        runs.inc(jobs)
        times.observe(seconds)
