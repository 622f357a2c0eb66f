"""/healthz, /readyz, /metrics: for probes and Prometheus, without a key."""

from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from api.desk import AtDesk
from api.door import Door
from api.readiness import Check

router = APIRouter(route_class=Door)

_SPARED = {"redis", "models_layer"}


class Alive(BaseModel):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    """`checks` says what answers. `degraded` still serves: without Redis work starts by the sweep, a little later; without
    the models layer turns are kept and wait."""

    status: Literal["ready", "degraded", "unready"]
    checks: dict[str, Literal["ok", "down"]]


@router.get("/healthz")
async def read_health() -> Alive:
    """Whether the process lives; it asks nobody."""
    return Alive()


@router.get("/readyz", response_model=Ready, responses={503: {"model": Ready, "description": "Not ready to serve"}})
async def read_readiness(desk: AtDesk) -> Response:
    """Whether what is needed to serve answers."""
    checks = await desk.readiness.check()
    ready = Ready(status=_status(checks), checks=checks)
    return JSONResponse(ready.model_dump(), status_code=503 if ready.status == "unready" else 200)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def read_metrics(desk: AtDesk) -> Response:
    """Prometheus' text format."""
    await desk.reader.read()
    desk.meters.missed_bells.set(desk.bell.missed)
    return Response(desk.meters.written(), media_type=CONTENT_TYPE_LATEST)


def _status(checks: dict[str, Check]) -> Literal["ready", "degraded", "unready"]:
    down = {name for name, check in checks.items() if check == "down"}
    if not down:
        return "ready"
    return "degraded" if down <= _SPARED else "unready"
