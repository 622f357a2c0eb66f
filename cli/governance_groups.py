"""The groups of commands that govern what is kept: `hold`, `retention`."""

from typing import Annotated

import typer

from cli.options import DataDir, Json, Space

hold = typer.Typer(help="Data that must not be deleted.", no_args_is_help=True, rich_markup_mode=None)
retention = typer.Typer(help="How long each data set is kept.", no_args_is_help=True, rich_markup_mode=None)

Subject = Annotated[str, typer.Option("--subject", metavar="KIND:HANDLE", help="Whose: canonical_user:ana.")]


@hold.command("place")
def place_hold(subject: Subject, space: Space = "default", data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """Stop every deletion of a person's data; what is past its term stays unserved."""
    from cli import holding as it  # noqa: PLC0415 - loaded when typed

    it.place(it.Whose(space, subject), data_dir, as_json=as_json)


@hold.command("lift")
def lift_hold(subject: Subject, space: Space = "default", data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """End a hold: the next sweep deletes what was due meanwhile."""
    from cli import holding as it  # noqa: PLC0415 - loaded when typed

    it.lift(it.Whose(space, subject), data_dir, as_json=as_json)


@hold.command("list")
def list_holds(space: Space = "default", data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """Every hold of a space, and how many handles it covers."""
    from cli import holding as it  # noqa: PLC0415 - loaded when typed

    it.show(space, data_dir, as_json=as_json)


@retention.command("show")
def show_retention(space: Space = "default", data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """The terms of a space."""
    from cli import retention as it  # noqa: PLC0415 - loaded when typed

    it.show(space, data_dir, as_json=as_json)


@retention.command("preview")
def preview_retention(
    terms: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=TERM]…", help="What would change: turns=30d observations=1d.")
    ] = None,
    space: Space = "default",
    data_dir: DataDir = None,
    *,
    as_json: Json = False,
) -> None:
    """How many rows other terms would take; nothing is changed."""
    from cli import retention as it  # noqa: PLC0415 - loaded when typed

    it.preview(space, terms or [], data_dir, as_json=as_json)


@retention.command("run")
def run_retention(space: Space = "default", data_dir: DataDir = None, *, as_json: Json = False) -> None:
    """Sweep now what is past its term, instead of within the minute."""
    from cli import retention as it  # noqa: PLC0415 - loaded when typed

    it.run(space, data_dir, as_json=as_json)
