"""A PostgreSQL server of the tests' own: in a folder of its own, reached through a socket there, removed at the end.

PostgreSQL refuses to run as root, so that it runs as another user there (Debian's `postgres`, or `nobody`).
"""

import atexit
import contextlib
import functools
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

INSTALL = "apt-get install -y --no-install-recommends postgresql"


def binaries():
    """Returns the folder of PostgreSQL's programs, the newest where there are several."""
    found = [Path(which).parent] if (which := shutil.which("initdb")) else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    for folder in found:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise RuntimeError(f"the tests of the PostgreSQL store need its server: {INSTALL}")


def somebody():
    """Returns the user and group that the server runs as."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL does not run as root: expected a user 'postgres' or 'nobody'")


class Cluster:
    """One server."""

    def __init__(self, source=None):
        self.programs, self.owner = binaries(), somebody()
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
        self.process = None
        self._names = (f"ledger{i}" for i in itertools.count())
        if self.owner:
            os.chown(self.folder, self.owner["user"], self.owner["group"])
        data = self.folder / "data"
        if source is None:
            self.run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
        else:  # a standby, which follows it
            self.run("pg_basebackup", "-D", data, "-R", "-h", source.folder, "-U", "postgres", "-X", "stream", "-c",
                     "fast", "--no-sync")  # fmt: skip
        self.address = self.folder
        atexit.register(self.remove)
        self.start()

    def run(self, program, *arguments):
        command = [str((self.programs / "initdb").resolve().parent / program), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, env=_plain(), **self.owner
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")

    def save(self, url, file):
        """Writes a database as statements that replace its tables."""
        self._use("pg_dump", "--clean", "--if-exists", "-f", file, _name(url))

    def load(self, url, file):
        """Runs statements in a database."""
        self._use("psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", file, _name(url))

    def _use(self, program, *arguments):
        """Runs a program as whoever runs the tests."""
        command = [
            str((self.programs / "initdb").resolve().parent / program),
            "-h",
            str(self.address),
            "-U",
            "postgres",
        ]
        done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")

    def start(self, wait=60):
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.address,
            "max_connections": 200,
            "shared_buffers": "16MB",
            "dynamic_shared_memory_type": "mmap",
            "recovery_init_sync_method": "syncfs",  # one call in place of one a file: databases have hundreds
        }
        options = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.folder / "data"), *options],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_plain(), **self.owner,
            )  # fmt: skip
        until = time.monotonic() + wait
        while True:
            with contextlib.suppress(Exception):
                self.ask("SELECT 1")
                return
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    @contextlib.contextmanager
    def standby(self):
        """Yields a server that follows this one."""
        follower = Cluster(self)
        try:
            yield follower
        finally:
            follower.remove()

    def wait_for(self, source, wait=30):
        """Waits until all that is on another server is here."""
        (position,) = source.ask("SELECT pg_current_wal_lsn()::text")[0]
        until = time.monotonic() + wait
        while not self.ask("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", position)[0][0]:
            if time.monotonic() > until:
                raise RuntimeError("the standby does not follow")
            time.sleep(0.02)

    def start_in(self, folder):
        """Starts it in the place of another server, which was stopped."""
        self.address = folder
        for left in ("postmaster.pid",):
            (self.folder / "data" / left).unlink(missing_ok=True)
        self.start()

    def url(self, name):
        return f"postgresql:///{name}?host={self.address}&user=postgres"

    def ask(self, statement, *parameters, name="postgres"):
        import psycopg

        with psycopg.connect(self.url(name), autocommit=True, connect_timeout=10) as connection:
            answer = connection.execute(statement, parameters or None)
            return answer.fetchall() if answer.description else None

    def new(self):
        """Returns the URL of a new, empty database."""
        name = next(self._names)
        self.ask(f"CREATE DATABASE {name}")
        return self.url(name)

    def disconnect(self, url):
        """Ends all connections to a database."""
        name = _name(url)
        self.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", name)

    def kill(self):
        """Kills the server and all its processes at once, as when the machine loses its power but for the disk."""
        children = _children(self.process.pid)
        self.process.kill()  # first, so that it starts no others
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.process.wait()
        for child in children:
            while _runs(child):
                time.sleep(0.005)

    def remove(self):
        atexit.unregister(self.remove)
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@functools.cache
def shared():
    """Returns the one server of this process, started when it is first asked for and removed when the process ends."""
    return Cluster()


def _name(url):
    return url.split("/")[3].split("?")[0]


def _children(parent):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(folder.name))
    return found


def _runs(process):
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _plain():
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
