"""What workers count, for Prometheus: kinds, classes and outcomes, never an id."""

from prometheus_client import CollectorRegistry, Counter, Histogram


class Tally:
    """The counters of one process, on the registry that it is handed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.jobs = Counter(
            "afterturn_jobs", "Runs of jobs by what became of them.", ["kind", "outcome"], registry=registry
        )
        self.seconds = Histogram("afterturn_job_seconds", "How long runs took.", ["kind"], registry=registry)
        self.bells = Counter("afterturn_bells", "Bells heard, by class.", ["queue_class"], registry=registry)
        self.noise = Counter("afterturn_bells_not_understood", "What was no bell.", ["queue_class"], registry=registry)
        self.recovered = Counter("afterturn_work_recovered", "Claims taken back from dead workers.", registry=registry)
