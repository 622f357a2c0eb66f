"""The embedded PostgreSQL: private, bound, fast to come back, and content with the permissions that it finds."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from gateways import drop_root, embedded_folder, embedded_postgres
from gateways.embedded_folder import EmbeddedServerBusy, EmbeddedServerError
from gateways.embedded_postgres import Postgres

ROOT = Path(__file__).parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes users")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    started = embedded_postgres.start(tmp_path_factory.mktemp("pg") / "data")
    yield started
    started.stop()


async def ask(url: str, *statements: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements[:-1]:
            await connection.execute(statement)
        return await connection.fetchval(statements[-1])
    finally:
        await connection.close()


def in_program(source: str, *arguments: str, prefix: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    code = textwrap.dedent(source)
    command = [*prefix, sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def socket_folder(server: Postgres) -> Path:
    return Path(server.url.partition("host=")[2].partition("&")[0])


def mode(place: Path) -> int | None:
    return place.stat().st_mode & 0o777 if place.exists() else None


def status(pid: int, field: str) -> str:
    """A field of what the kernel says about a process."""
    return Path(f"/proc/{pid}/status").read_text().partition(f"{field}:")[2].split()[0]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_the_app_role_owns_its_database_and_row_security_binds_it(server: Postgres) -> None:
    told = await ask(
        server.url,
        "SELECT concat_ws(' ', rolname, rolsuper, rolbypassrls, rolcreaterole, datname) FROM pg_database d "
        "JOIN pg_roles r ON r.oid = d.datdba WHERE datname = current_database() AND rolname = current_user",
    )
    seen = await ask(
        server.url,
        "CREATE TABLE guarded (id int)",
        "INSERT INTO guarded VALUES (1)",
        "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "SELECT count(*) FROM guarded",
    )
    assert told == "afterturn f f f afterturn"
    assert seen == 0


async def test_sqlalchemy_takes_the_url(server: Postgres) -> None:
    engine = create_async_engine(server.url.replace("postgresql://", "postgresql+asyncpg://"))
    async with engine.connect() as connection:
        assert (await connection.exec_driver_sql("SHOW timezone")).scalar() == "UTC"
    await engine.dispose()


async def test_texts_are_unicode_and_sorted_alike_on_every_machine(server: Postgres) -> None:
    told = await ask(
        server.url,
        "SELECT concat_ws(' ', pg_encoding_to_char(encoding), datlocprovider::text, datlocale, lower('ÄÇ')) "
        "FROM pg_database WHERE datname = current_database()",
    )
    assert told == "UTF8 b C.UTF-8 äç"


@pytest.mark.parametrize("who", ["postgres:", "postgres:guess@", "afterturn:guess@", "afterturn:"])
async def test_nobody_enters_without_the_password(server: Postgres, who: str) -> None:
    place = server.url.partition("@")[2]
    with pytest.raises(asyncpg.PostgresError, match=r"password|authentication"):
        await asyncpg.connect(f"postgresql://{who.rstrip('@')}@{place}")


def test_it_listens_on_no_port_and_keeps_its_socket_and_password_to_itself(server: Postgres) -> None:
    folder = socket_folder(server)
    password = folder.parent / "password"
    tcp = Path("/proc/net/tcp").read_text()
    assert mode(folder) == 0o700
    assert mode(password) == 0o600
    assert f":{5432:04X} " not in tcp
    assert server.url.partition(":")[2].partition("@")[0].rpartition(":")[2] == password.read_text()


async def test_what_a_statement_carries_stays_out_of_the_log(server: Postgres) -> None:
    await ask(server.url, "CREATE TABLE once (who text UNIQUE)", "INSERT INTO once VALUES ('ana-canary') RETURNING 1")
    with pytest.raises(asyncpg.UniqueViolationError):
        await ask(server.url, "INSERT INTO once VALUES ('ana-canary') RETURNING 1")
    log = (socket_folder(server).parent / "log").read_text()
    assert "duplicate key" in log
    assert "canary" not in log


async def test_committed_rows_outlive_a_crash(tmp_path: Path) -> None:
    server = embedded_postgres.start(tmp_path / "pg")
    url = server.url
    await ask(url, "CREATE TABLE kept (id int)", "INSERT INTO kept VALUES (7) RETURNING 1")
    server.kill()
    server.restart()
    assert await ask(server.url, "SELECT id FROM kept") == 7
    assert server.url == url
    server.stop()
    server.stop()  # harmless


async def test_a_second_program_is_refused_and_a_later_one_finds_the_data(tmp_path: Path) -> None:
    first = embedded_postgres.start(tmp_path)
    await ask(first.url, "CREATE TABLE kept (id int)", "INSERT INTO kept VALUES (8) RETURNING 1")
    with pytest.raises(EmbeddedServerBusy, match="in use"):
        embedded_postgres.start(tmp_path)
    assert await ask(first.url, "SELECT id FROM kept") == 8
    first.stop()
    second = embedded_postgres.start(tmp_path)
    assert await ask(second.url, "SELECT id FROM kept") == 8
    second.stop()


async def test_a_server_left_by_a_killed_program_is_ended_and_its_data_kept(tmp_path: Path) -> None:
    died = in_program(
        """
        import os, signal, sys
        from pathlib import Path
        from gateways import embedded_postgres
        server = embedded_postgres.start(Path(sys.argv[1]))
        print(server.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        str(tmp_path),
    )
    left = int(died.stdout)
    assert died.returncode == -signal.SIGKILL
    assert is_alive(left)
    server = embedded_postgres.start(tmp_path)
    assert not is_alive(left)
    assert await ask(server.url, "SELECT 1") == 1
    server.stop()


def test_a_program_that_forgets_to_stop_it_takes_it_along(tmp_path: Path) -> None:
    done = in_program(
        """
        import sys
        from pathlib import Path
        from gateways import embedded_postgres
        print(embedded_postgres.start(Path(sys.argv[1])).pid)
        """,
        str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert not is_alive(int(done.stdout))


@pytest.mark.parametrize("left", ["another program", "a dead process", "rubbish"])
async def test_a_stale_lock_file_does_not_keep_it_from_starting(tmp_path: Path, left: str) -> None:
    embedded_postgres.start(tmp_path).stop()
    number = {"another program": str(os.getppid()), "a dead process": "4194000", "rubbish": "x"}[left]
    (tmp_path / "cluster" / "postmaster.pid").write_text(f"{number}\n{tmp_path}\n1\n5432\n\n\n\nready\n")
    server = embedded_postgres.start(tmp_path)
    assert await ask(server.url, "SELECT 1") == 1
    server.stop()


async def test_a_first_start_that_was_cut_short_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "cluster.new" / "base").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("the folder may hold other files")
    server = embedded_postgres.start(tmp_path)
    assert await ask(server.url, "SELECT 1") == 1
    server.stop()
    assert (tmp_path / "notes.txt").exists()


async def test_a_folder_with_a_long_or_odd_name_gets_a_short_private_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("deep " * 30) / "ü"
    server = embedded_postgres.start(folder)
    sockets = socket_folder(server)
    assert await ask(server.url, "SELECT 1") == 1
    assert mode(sockets) == 0o700
    url = server.url
    server.restart()
    assert server.url == url
    server.stop()
    assert mode(sockets) is None


async def test_an_operators_tool_may_be_given_a_port(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = embedded_postgres.start(tmp_path, port=port, database="own db", role="o'neil")
    signed = server.url.partition("@")[0]
    assert await ask(f"{signed}@127.0.0.1:{port}/own%20db", "SELECT current_database()") == "own db"
    assert await ask(server.url, "SELECT current_user") == "o'neil"
    with pytest.raises(asyncpg.PostgresError):
        await asyncpg.connect(f"postgresql://postgres@127.0.0.1:{port}/own%20db")
    server.stop()


def test_a_wrong_setting_is_told_and_leaves_the_folder_free(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="shared_buffers"):
        embedded_postgres.start(tmp_path, settings={"shared_buffers": "plenty"})
    embedded_postgres.start(tmp_path, settings={"shared_buffers": "16MB"}).stop()


def test_data_of_another_version_is_told_apart(tmp_path: Path) -> None:
    embedded_postgres.start(tmp_path).stop()
    (tmp_path / "cluster" / "PG_VERSION").write_text("15\n")
    with pytest.raises(EmbeddedServerError, match="PostgreSQL 15"):
        embedded_postgres.start(tmp_path)


@as_root
async def test_below_a_folder_closed_to_others_it_runs_and_no_permission_changes(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    before = {place: mode(place) for place in [closed, *closed.parents]}
    server = embedded_postgres.start(closed / "data" / "pg")
    assert await ask(server.url, "SELECT 1") == 1
    assert {place: mode(place) for place in before} == before
    assert status(server.pid, "Uid") != "0"
    assert int(status(server.pid, "CapEff"), 16) in (1 << 1, 1 << 2)
    server.stop()


@as_root
async def test_where_root_may_not_look_into_the_server_its_command_line_tells_it_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = embedded_postgres.start(tmp_path)
    real = Path.samefile

    def denied(self: Path, other: Path) -> bool:
        if self.name == "cwd":
            raise PermissionError
        return real(self, other)

    monkeypatch.setattr(Path, "samefile", denied)
    lock_file = tmp_path / "cluster" / "postmaster.pid"
    assert embedded_folder.running(lock_file, tmp_path / "cluster") == server.pid
    assert embedded_folder.running(lock_file, tmp_path) is None
    server.stop()


@as_root
def test_on_an_open_way_the_server_keeps_no_privilege_at_all() -> None:
    folder = Path(f"/var/tmp/afterturn-open-{os.getpid()}")  # noqa: S108 - a place that everybody may pass, unlike pytest's
    server = embedded_postgres.start(folder)
    try:
        assert int(status(server.pid, "CapEff"), 16) == 0
        assert int(status(server.pid, "CapPrm"), 16) == 0
    finally:
        server.stop()
        subprocess.run(["rm", "-r", str(folder)], check=True)


@as_root
@pytest.mark.skipif(shutil.which("capsh") is None, reason="capsh takes capabilities away")
def test_where_root_may_not_become_another_user_it_says_what_to_do(tmp_path: Path) -> None:
    source = """
    import sys
    from pathlib import Path
    from gateways import embedded_postgres
    embedded_postgres.start(Path(sys.argv[1]))
    """
    bound = ("capsh", "--drop=cap_setuid", "--shell=/usr/bin/env", "--")
    done = in_program(source, str(tmp_path), prefix=bound)
    assert done.returncode == 1
    assert "start as an ordinary user instead" in done.stderr.splitlines()[-1]


@as_root
@pytest.mark.skipif(shutil.which("capsh") is None, reason="capsh takes capabilities away")
def test_with_the_few_capabilities_of_a_container_it_runs_and_ends_what_was_left(tmp_path: Path) -> None:
    source = """
    import os, signal, sys
    from pathlib import Path
    from gateways import embedded_postgres
    server = embedded_postgres.start(Path(sys.argv[1]))
    print(server.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    missing = "cap_dac_read_search,cap_sys_ptrace,cap_sys_admin,cap_sys_resource,cap_net_admin"
    bound = ("capsh", f"--drop={missing}", "--shell=/usr/bin/env", "--")
    first, second = (int(in_program(source, str(tmp_path), prefix=bound).stdout) for _ in range(2))
    assert not is_alive(first)
    assert int(status(second, "CapEff"), 16) == 1 << 1
    embedded_postgres.start(tmp_path).stop()
    assert not is_alive(second)


def test_a_lost_password_is_told(tmp_path: Path) -> None:
    embedded_postgres.start(tmp_path).stop()
    (tmp_path / "password").unlink()
    with pytest.raises(EmbeddedServerError, match="password is missing"):
        embedded_postgres.start(tmp_path)


@as_root
def test_a_user_who_is_not_root_starts_it_as_himself(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    os.chown(home, 65534, 65534)
    # The interpreter may lie in a folder of root's, so the user is let through as the server would be.
    as_nobody = (sys.executable, drop_root.__file__, "65534", "65534", "pass")
    done = in_program(
        """
        import asyncio, os, sys
        from pathlib import Path
        import asyncpg
        from gateways import embedded_postgres
        server = embedded_postgres.start(Path(sys.argv[1]) / "pg")
        async def ask():
            connection = await asyncpg.connect(server.url)
            print(os.geteuid(), await connection.fetchval("SELECT 1"))
            await connection.close()
        asyncio.run(ask())
        server.stop()
        """,
        str(home),
        prefix=as_nobody,
    )
    assert done.stdout == "65534 1\n", done.stderr


async def test_it_is_ready_before_start_returns_even_for_many_at_once(server: Postgres) -> None:
    answers = await asyncio.gather(*(ask(server.url, f"SELECT {number}") for number in range(50)))
    assert answers == list(range(50))
