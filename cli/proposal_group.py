"""The group of commands `proposals`."""

from typing import Annotated

import typer

from cli.options import DataDir, Json, Space

proposals = typer.Typer(help="Notes of agents that wait for a person.", no_args_is_help=True, rich_markup_mode=None)

_Id = Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")]


@proposals.command("list")
def list_proposals(
    state: Annotated[str | None, typer.Option(help="pending, approved, rejected, expired, quarantined.")] = None,
    space: Space = "default",
    data_dir: DataDir = None,
    *,
    as_json: Json = False,
) -> None:
    """What waits, and what was decided."""
    from cli import proposals as it  # noqa: PLC0415 - loaded when typed

    it.show_all(space, state, data_dir, as_json=as_json)


@proposals.command("show")
def show_proposal(proposal: _Id, space: Space = "default", data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """One of them, and how it differs from the notes that there are."""
    from cli import proposals as it  # noqa: PLC0415 - loaded when typed

    it.show(space, proposal, data_dir, as_json=as_json)


@proposals.command("approve")
def approve_proposal(  # noqa: PLR0913 - one parameter per option
    proposal: _Id,
    title: Annotated[str | None, typer.Option(help="Say this instead.")] = None,
    body: Annotated[str | None, typer.Option(help="Say this instead.")] = None,
    tags: Annotated[str | None, typer.Option(help="These tags instead, by commas.")] = None,
    visibility: Annotated[str | None, typer.Option(help="source, vendor or space instead.")] = None,
    space: Space = "default",
    data_dir: DataDir = None,
    *,
    as_json: Json = False,
) -> None:
    """Make it a note, as it is or with edits."""
    from cli import proposals as it  # noqa: PLC0415 - loaded when typed

    it.approve(space, proposal, it.Edits(title, body, tags, visibility), data_dir, as_json=as_json)


@proposals.command("reject")
def reject_proposal(
    proposal: _Id,
    reason: Annotated[
        str, typer.Option(help="incorrect, duplicate, not_reusable, outdated, personal_data or other.")
    ] = "other",
    space: Space = "default",
    data_dir: DataDir = None,
    *,
    as_json: Json = False,
) -> None:
    """Let it come to nothing."""
    from cli import proposals as it  # noqa: PLC0415 - loaded when typed

    it.reject(space, proposal, reason, data_dir, as_json=as_json)
