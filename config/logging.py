"""Structured logs on standard error: past-tense events, ids and numbers, never a text or a handle."""

import logging
import sys

import structlog

from config.settings import Logs

_LEVEL = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# These log what they carry (arguments, URLs, bodies) below WARNING.
_TALKATIVE = ("arq", "httpx", "httpcore", "openai", "asyncio", "sqlalchemy", "presidio-anonymizer", "uvicorn.access")


def configure(logs: Logs, role: str) -> None:
    """Sets the whole process up; every event carries the process's role."""
    structlog.contextvars.bind_contextvars(role=role)
    renderer = structlog.processors.JSONRenderer() if logs.log_format == "json" else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _where_it_broke,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVEL[logs.log_level]),
        logger_factory=_on_standard_error,
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s", force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)  # tracebacks of lost connections, which are said elsewhere
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it quotes headers and messages


def _on_standard_error(*_: object) -> structlog.PrintLogger:
    # Looked up for each event: whoever redirects standard error may close what it was before.
    return structlog.PrintLogger(sys.stderr)


def _where_it_broke(_: object, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    """A traceback as file, line and type only: an exception's message may quote what somebody said."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, tuple):
        error = error[1]
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        event["at"] = _frames(error)
    return event


def _frames(error: BaseException) -> list[str]:
    frames, step = [], error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        place = "/".join(code.co_filename.rsplit("/", 2)[-2:])
        frames.append(f"{place}:{step.tb_lineno} {code.co_name}")
        step = step.tb_next
    return frames[-6:]
