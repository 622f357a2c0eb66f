"""The table of commands: what each is called, and what it takes. What a command does is loaded when it is typed."""

from pathlib import Path
from typing import Annotated

import typer

from cli import governance_groups, groups, proposal_group
from cli.options import Agent, As, Context, DataDir, Json, Space

app = typer.Typer(
    name="afterturn",
    help="Turns conversations into governed agent memory, after the turn.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(governance_groups.hold, name="hold")
app.add_typer(groups.keys, name="keys")
app.add_typer(groups.observations, name="observations")
app.add_typer(proposal_group.proposals, name="proposals")
app.add_typer(groups.quarantine, name="quarantine")
app.add_typer(groups.receipts, name="receipts")
app.add_typer(governance_groups.retention, name="retention")


@app.command()
def up(
    data_dir: DataDir = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The API's port, 0 for a free one. [default: AFTERTURN_PORT]")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Run everything here until Ctrl-C.

    PostgreSQL, Valkey, api, worker and scheduler; whatever dies is started again.
    """
    from cli import up as it  # noqa: PLC0415 - loaded when typed

    it.run(data_dir, port, as_json=as_json)


@app.command()
def demo(*, as_json: Json = False) -> None:
    """See it work, and leave nothing behind.

    A fresh folder, a sample conversation, what is remembered of it.
    """
    from cli import demo as it  # noqa: PLC0415 - loaded when typed

    it.run(as_json=as_json)


@app.command()
def api(data_dir: DataDir = None) -> None:
    """Run the HTTP API."""
    _become("api", data_dir)


@app.command()
def worker(data_dir: DataDir = None) -> None:
    """Run a worker."""
    _become("worker", data_dir)


@app.command()
def scheduler(data_dir: DataDir = None) -> None:
    """Run the scheduler."""
    _become("scheduler", data_dir)


@app.command()
def migrate(
    data_dir: DataDir = None,
    *,
    replay_erasures: Annotated[
        bool, typer.Option("--replay-erasures", help="After a restored backup: erase again what it brought back.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring both databases to this release's schema."""
    from cli import migrate as it  # noqa: PLC0415 - loaded when typed

    it.run(data_dir, replay_erasures=replay_erasures, as_json=as_json)


@app.command()
def erase(  # noqa: PLR0913 - one parameter per option
    reason: Annotated[str, typer.Option(help="Why: subject_request, consent_withdrawn, account_closed, …")],
    subject: Annotated[str | None, typer.Option(help="The person, as KIND:HANDLE.")] = None,
    conversation: Annotated[str | None, typer.Option(help="Only this conversation of theirs.")] = None,
    agent: Annotated[str | None, typer.Option(help="An agent, with all that it knows of its own.")] = None,
    space: Space = "default",
    data_dir: DataDir = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is completed and its certificate signed.")] = False,
    as_json: Json = False,
) -> None:
    """Erase everything about one person, for good, with a certificate."""
    from cli import erase as it  # noqa: PLC0415 - loaded when typed

    it.run(it.Wanted(space, reason, subject, conversation, agent, wait), data_dir, as_json=as_json)


@app.command()
def status(data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """What waits, what runs, what went wrong."""
    from cli import status as it  # noqa: PLC0415 - loaded when typed

    it.run(data_dir, as_json=as_json)


@app.command()
def doctor(data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """Check the set-up, and say what to do."""
    from cli import doctor as it  # noqa: PLC0415 - loaded when typed

    it.run(data_dir, as_json=as_json)


@app.command("import")
def import_files(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Chats: OpenAI messages, ShareGPT, LoCoMo, exports.")
    ],
    agent: Agent,
    as_: As,
    space: Space = "default",
    context: Context = "corporate",
    data_dir: DataDir = None,
    *,
    as_json: Json = False,
) -> None:
    """Take in files of conversations.

    What was taken before is not taken again, so an import that broke off is simply run again.
    """
    from cli import importing as it  # noqa: PLC0415 - loaded when typed

    it.run(files, it.Owner(space, agent, as_, context), data_dir, as_json=as_json)


@app.command()
def export(
    subject: Annotated[
        str, typer.Option("--subject", metavar="KIND:HANDLE", help="Whose: email:ana@example.org, canonical_user:ana.")
    ],
    space: Space = "default",
    out: Annotated[
        Path | None, typer.Option("--out", dir_okay=False, help="Write the package to this file, once it is made.")
    ] = None,
    data_dir: DataDir = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is made, and show how far it is.")] = False,
    as_json: Json = False,
) -> None:
    """Make a package of everything about one person."""
    from cli import export as it  # noqa: PLC0415 - loaded when typed

    it.run(it.Wanted(space, subject, out, wait), data_dir, as_json=as_json)


@app.command()
def mask(*, as_json: Json = False) -> None:
    """Mask what is personal in a text.

    The text comes on standard input; with --json it is JSON Lines with `text`, and `known` names.
    """
    from cli import masking as it  # noqa: PLC0415 - loaded when typed

    it.run(as_json=as_json)


@app.command()
def mcp(
    url: Annotated[
        str | None,
        typer.Option(envvar="AFTERTURN_URL", help="Where the API answers; without it, what runs in the data folder."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Whose memory, for a key of no one agent.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Offer agent memory's tools to a model, by MCP on standard input and output.

    The key comes as AFTERTURN_API_KEY. Over HTTP the API offers the same at /mcp.
    """
    from cli import mcp as it  # noqa: PLC0415 - loaded when typed

    it.run(url, agent, data_dir)


def _become(role: str, data_dir: Path | None) -> None:
    from cli import roles as it  # noqa: PLC0415 - loaded when typed

    it.become(role, data_dir)
