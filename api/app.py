"""The API as an application: what it holds open while it runs, and its routes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from uuid import UUID

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from api import (
    agent_block,
    agent_memory,
    agent_state,
    agents,
    context,
    coverage,
    distillations,
    erasure_proof,
    erasures,
    exports,
    features,
    health,
    holds,
    keys,
    mcp,
    object_types,
    observations,
    policies,
    profiles,
    proposals,
    quarantine,
    receipts,
    retention,
    subjects,
    turns,
    webhooks,
)
from api.auth import Doorman
from api.desk import Desk
from api.document import Documented
from api.door import let_in
from api.gate import Gate
from api.meters import Meters, Reader
from api.problems import answer_router
from api.readiness import Readiness
from config.settings import Settings
from intake.accept import Intake
from intake.batcher import Batcher
from intake.called import Called
from intake.identity import People
from intake.messages import Limits
from intake.rules import Rules
from jobs.resources import Resources, opened, rhythm
from jobs.watch import Watch
from memory import tokens
from models.api_key import Scope
from privacy.masking import mask
from privacy.policy import of_regions
from recall.agent_block import Blocks

_ROUTERS = (
    turns.router,
    observations.router,
    coverage.router,
    context.router,
    quarantine.router,
    exports.router,
    erasures.router,
    erasure_proof.router,
    receipts.router,
    retention.router,
    holds.router,
    webhooks.router,
    keys.router,
    policies.router,
    agent_block.router,
    agent_memory.router,
    mcp.router,
    proposals.router,
    distillations.router,
    features.router,
    object_types.router,
    agent_state.router,
    subjects.router,
    profiles.router,
    agents.router,
    health.router,
)


def create_app(settings: Settings) -> FastAPI:
    """The application. Nothing is opened before its lifespan begins."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await asyncio.to_thread(_warm_up)
            resources = await stack.enter_async_context(opened(settings, within=settings.stores.start_within))
            tasks = await stack.enter_async_context(asyncio.TaskGroup())  # left first: what runs may still commit
            app.state.desk = _desk(resources, tasks)
            app.state.mcp = await stack.enter_async_context(mcp.listening(settings.http))
            yield

    app = Direct(
        title="Afterturn",
        version=version("afterturn"),
        lifespan=lifespan,
        redirect_slashes=False,  # a redirect would repeat the path
        docs_url=None,  # the pages would fetch their scripts from a CDN
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},  # it quotes bodies
    )
    app.add_exception_handler(HTTPException, answer_router)
    for router in _ROUTERS:
        app.include_router(router)
    return app


class Direct(Documented):
    """Serves the hot route past the framework: routing, dependencies and middleware cost more than taking a turn.

    The route is declared like the others, for the document and for other methods.
    """

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != turns.PATH or scope["method"] != "POST":
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        response = await let_in(Request(scope, receive), Scope.TURNS_WRITE, turns.take_turns, takes_body=True)
        await response(scope, receive, send)


def _desk(resources: Resources, tasks: asyncio.TaskGroup) -> Desk:
    settings, database = resources.settings, resources.database
    pace, meters = rhythm(settings), Meters()
    people = People(database, resources.keys)
    called = Called(database, resources.keys)
    on = settings.memory.observational_memory
    batcher = Batcher(database, resources.bell, pace, tasks)
    rules = Rules(resources.keys, of_regions(settings.privacy.phone_regions))
    return Desk(
        resources=resources,
        limits=Limits(settings.http.max_body, settings.http.max_turns, settings.http.max_turn),
        doorman=Doorman(database),
        gate=Gate(Watch(database, resources.keys, lambda gone: _forget(gone, people, called))),
        people=people,
        intake=Intake(people, resources.keys, batcher, rules, pace, on, called, resources.analyzer is not None),
        meters=meters,
        reader=Reader(database, meters),
        readiness=Readiness(resources),
        blocks=Blocks(database),
        bell=resources.bell,
        tasks=tasks,
    )


def _forget(gone: set[UUID], people: People, called: Called) -> None:
    people.forget_all(gone)
    called.forget(gone)


def _warm_up() -> None:
    """Loads the token tables and the detectors, so that the first turn after a start is not the slowest."""
    tokens.count(mask("Call me on +351 912 345 678, please.").text)
