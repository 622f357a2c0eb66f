"""The groups of commands: `keys`, `observations`, `quarantine`, `receipts`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.options import Agent, As, Context, DataDir, Json, Space

keys = typer.Typer(help="API keys of a space.", no_args_is_help=True, rich_markup_mode=None)
observations = typer.Typer(help="What is remembered.", no_args_is_help=True, rich_markup_mode=None)
quarantine = typer.Typer(help="Turns that no answer could be had about.", no_args_is_help=True, rich_markup_mode=None)
receipts = typer.Typer(help="What was done, and that the list is whole.", no_args_is_help=True, rich_markup_mode=None)

_LARGEST_ID = 2**63 - 1  # the database numbers no further


@keys.command("create")
def create_key(  # noqa: PLR0913 - one parameter per option
    scopes: Annotated[str, typer.Option(help="What it opens, by commas: turns:write,memory:read.")],
    space: Space = "default",
    name: Annotated[str, typer.Option(help="What people call it.")] = "",
    agent: Annotated[str | None, typer.Option(help="The only agent that it may name.")] = None,
    vendor: Annotated[str | None, typer.Option(help="The vendor whose agents it serves.")] = None,
    owner: Annotated[str | None, typer.Option(help="The person whose memory it writes; without one, its own.")] = None,
    *,
    admin: Annotated[bool, typer.Option("--admin", help="Its owner is an admin.")] = False,
    allow_impersonation: Annotated[
        bool, typer.Option("--allow-impersonation", help="With --admin: its requests may name whom they speak for.")
    ] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Mint a key, and the space where it is new. The secret is printed once and never again."""
    from cli import keys as it  # noqa: PLC0415 - loaded when typed

    wanted = it.Wanted(space, name, scopes, agent, vendor, owner, admin, allow_impersonation)
    it.create(wanted, data_dir, as_json=as_json)


@keys.command("list")
def list_keys(space: Space = "default", data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """Every key of a space, without its secret."""
    from cli import keys as it  # noqa: PLC0415 - loaded when typed

    it.show(space, data_dir, as_json=as_json)


@keys.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID")],
    space: Space = "default",
    data_dir: DataDir = None,
    *,
    as_json: Json = False,
) -> None:
    """End a key; within a second it opens nothing any more."""
    from cli import keys as it  # noqa: PLC0415 - loaded when typed

    it.revoke(space, key_id, data_dir, as_json=as_json)


@keys.command("rotate-master")
def rotate_master_key(data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """Wrap every key by AFTERTURN_MASTER_KEY; then AFTERTURN_MASTER_KEY_PREVIOUS opens nothing any more."""
    from cli import rotation as it  # noqa: PLC0415 - loaded when typed

    it.run(data_dir, as_json=as_json)


@keys.command("rotate-scopes")
def rotate_scope_key(space: Space = "default", data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """Hash what agent states belong to under a new key; each state at its next write."""
    from cli import rotation as it  # noqa: PLC0415 - loaded when typed

    it.scopes(space, data_dir, as_json=as_json)


@observations.command("show")
def show_observations(
    agent: Agent,
    as_: As,
    space: Space = "default",
    context: Context = "corporate",
    form: Annotated[Literal["block", "json"], typer.Option("--format", help="As for a prompt, or with ids.")] = "block",
    data_dir: DataDir = None,
    *,
    as_json: Json = False,
) -> None:
    """One person's log with one agent."""
    from cli import observations as it  # noqa: PLC0415 - loaded when typed

    it.show(it.Owner(space, agent, as_, context), data_dir, as_json=as_json or form == "json")


@quarantine.command("list")
def list_quarantine(space: Space = "default", data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """What is set aside, and after which attempts."""
    from cli import quarantine as it  # noqa: PLC0415 - loaded when typed

    it.show(space, data_dir, as_json=as_json)


@quarantine.command("retry")
def retry_quarantined(
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="ID…", min=1, max=_LARGEST_ID, help="As `list` shows them.")
    ] = None,
    space: Space = "default",
    data_dir: DataDir = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All of the space.")] = False,
    as_json: Json = False,
) -> None:
    """Send turns back to their logs, to be observed again."""
    from cli import quarantine as it  # noqa: PLC0415 - loaded when typed

    it.retry(space, ids or [], data_dir, every=every, as_json=as_json)


@receipts.command("export")
def export_receipts(
    space: Space = "default",
    out: Annotated[Path | None, typer.Option(help="Where to; standard output without one.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Write the whole chain, to be checked anywhere."""
    from cli import receipts as it  # noqa: PLC0415 - loaded when typed

    it.export(space, out, data_dir)


@receipts.command("verify")
def verify_receipts(
    space: Space = "default",
    file: Annotated[Path | None, typer.Option(help="A chain that `receipts export` wrote: no server is asked.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="A checkpoint kept elsewhere: shows a tail cut off.")] = None,
    public_key: Annotated[str | None, typer.Option(help="The only key to trust, in hex, base64, or a file.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="An erasure's certificate, to check instead.")] = None,
    data_dir: DataDir = None,
    *,
    as_json: Json = False,
) -> None:
    """Check every receipt, or a certificate; what is not as it was sealed is named."""
    from cli import receipts as it  # noqa: PLC0415 - loaded when typed

    it.verify(space, file, checkpoint, public_key, certificate, data_dir, as_json=as_json)


@receipts.command("rotate-key")
def rotate_signing_key(data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """Sign with a new key from now on: both keys sign that it takes over."""
    from cli import receipts as it  # noqa: PLC0415 - loaded when typed

    it.rotate_key(data_dir, as_json=as_json)
