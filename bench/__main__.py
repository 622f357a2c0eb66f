"""Every bench, one after the other, each a line of JSON: `python -m bench [NAME …] [--long]`."""

import argparse
import subprocess
import sys

from bench.report import remark

_LONG = ("--long",)

# The arguments of each, in short and in long.
BENCHES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "ingest": ((), _LONG),
    "ingest_latency": ((), _LONG),
    "overlap": ((), ()),
    "queue": (("--rounds", "1", "--jobs", "2000"), ()),
    "model_cost": ((), _LONG),
    "recovery": (("--kills", "1"), ()),
    "due_sweep": ((), _LONG),
    "erasure": ((), _LONG),
    "retention": ((), _LONG),
    "export": ((), _LONG),
    "receipts": ((), _LONG),
    "block": ((), _LONG),
    "masking": ((), ()),
    "refusal": ((), ()),
    "extractive": ((), ()),
    "distil": ((), ()),
    "locomo": (("--limit", "1"), ()),
    "reflect": (("--limit", "1"), ()),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHES)}; all of them without one")
    parser.add_argument("--long", action="store_true", help="longer runs, larger tables")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(BENCHES)
    if unknown:
        parser.error(f"no bench is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    failed = [name for name in asked.names or BENCHES if not _run(name, long=asked.long)]
    if failed:
        sys.exit(f"these benches failed: {', '.join(failed)}")


def _run(name: str, *, long: bool) -> bool:
    # Each in a process of its own: what one leaves in memory must not weigh on the next.
    remark(f"--- {name}")
    return subprocess.run([sys.executable, "-m", f"bench.{name}", *BENCHES[name][long]], check=False).returncode == 0


if __name__ == "__main__":
    main()
