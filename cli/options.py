"""Options that many commands share, each said once."""

from pathlib import Path
from typing import Annotated

import typer

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="AFTERTURN_DATA_DIR",
        file_okay=False,
        help="The folder where `afterturn up` runs; without one, the servers of the environment.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Space = Annotated[str, typer.Option("--space", help="The tenant.")]
Agent = Annotated[str, typer.Option("--agent", help="The agent that serves the conversation.")]
As = Annotated[
    str,
    typer.Option(
        "--as", metavar="KIND:HANDLE", help="Whose memory: canonical_user:ana, owner:ana, email:ana@example.org."
    ),
]
Context = Annotated[str, typer.Option("--context", help="corporate or personal.")]
