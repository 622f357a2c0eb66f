"""`python -m api`: serves until it is told to stop, and then until what is in flight has been answered."""

import gc

import uvicorn

from api.app import create_app
from api.bounded import bounded
from config.logging import configure
from config.settings import load_or_exit
from jobs.start import check_stores_or_exit

_GRACE = 20  # seconds that requests in flight may take once the process was told to stop


def main() -> None:
    settings = load_or_exit()
    configure(settings.logs, "api")
    check_stores_or_exit(settings)
    app = create_app(settings)
    # What is made by now stays; a request leaves few cycles behind, and a full collection would hold up all of them.
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    uvicorn.run(
        app,
        host=settings.http.host,
        port=settings.http.port,
        loop="uvloop",
        http=bounded(settings.http.max_head, settings.http.read_within.total_seconds()),
        ws="none",
        access_log=False,  # a path may hold an id
        server_header=False,
        proxy_headers=False,  # nothing here goes by the caller's address
        log_config=None,
        timeout_graceful_shutdown=_GRACE,
    )


if __name__ == "__main__":
    main()
