"""A real antiphon for a test run: its own port, its own data folder, ready when `/readyz` says so, gone afterwards."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from install import TESTS, cache

# Seconds. The first start makes a private Postgres, on a machine that may be compiling next door.
READY_WITHIN = 60
STOPPED_WITHIN = 20


def binary() -> pathlib.Path:
    """The antiphon to test: `ANTIPHON_BIN`, else the debug build in the usual target folders."""
    if named := os.environ.get("ANTIPHON_BIN"):
        return pathlib.Path(named)
    if named := os.environ.get("CARGO_TARGET_DIR"):
        targets = [pathlib.Path(named)]
    else:
        # `tests/run` builds in the cache, a plain `cargo build` in the clone: the newer one is meant.
        targets = [cache() / "target", TESTS.parent / "target"]
    built = [target / "debug" / "antiphon" for target in targets if (target / "debug" / "antiphon").exists()]
    if not built:
        sys.exit(f"no antiphon to test: run `cargo build`, or name one in ANTIPHON_BIN (looked in {', '.join(map(str, targets))})")
    return max(built, key=lambda file: file.stat().st_mtime)


def free_ports(count: int = 1) -> int:
    """The first of `count` neighbouring ports on the loopback address that nobody listens on now."""
    while True:
        with contextlib.ExitStack() as held:
            first = held.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                for offset in range(1, count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port + offset))
            except (OSError, OverflowError):
                continue
            return port


class Antiphon:
    """`with Antiphon(config) as server`: a running server. `config` is TOML without `listen` and `data_dir`; `tenants`
    get a key each in `server.keys`; with `script`, a scripted model answers instead of an upstream."""

    def __init__(self, config: str = "", tenants: tuple[str, ...] = (), script: pathlib.Path | None = None) -> None:
        self.binary = binary()
        self.port = free_ports()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self.keys: dict[str, str] = {}
        self.tenants = tenants
        self.script = script
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="antiphon-"))
        # The private Postgres runs under another user when this is root, and must be able to walk to its folder.
        self.folder.chmod(0o755)
        self.log = self.folder / "log"
        self.config = self.folder / "antiphon.toml"
        data = json.dumps(str(self.folder / "data"))
        self.config.write_text(f'listen = "127.0.0.1:{self.port}"\ndata_dir = {data}\n{config}')
        # What the user has set for an antiphon of their own must not reach this one.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTIPHON_", "OPENAI_")) and k != "DATABASE_URL"}
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Antiphon":
        try:
            self.keys = {tenant: self.new_key(tenant) for tenant in self.tenants}
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_key(self, tenant: str) -> str:
        """A key of `tenant`, made by the command line as a user would."""
        made = subprocess.run([self.binary, "keys", "new", "--config", self.config, "--tenant", tenant],
                              capture_output=True, text=True, env=self.env, timeout=READY_WITHIN)
        lines = made.stdout.split()
        if made.returncode or not lines or not lines[-1].startswith("ak_"):
            sys.exit(f"`antiphon keys new` ended with {made.returncode} and gave no key:\n{made.stdout}{made.stderr}")
        return lines[-1]

    def start(self) -> None:
        words = [self.binary, "serve", "--config", self.config] + (["--script", self.script] if self.script else [])
        with open(self.log, "wb") as log:
            # A session of its own: Ctrl-C in the terminal reaches the runner, which then stops the server in order.
            self.process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.env, start_new_session=True)
        until = time.monotonic() + READY_WITHIN
        while time.monotonic() < until:
            if (code := self.process.poll()) is not None:
                sys.exit(f"antiphon ended with {code} before it was ready; its log ends:\n{self.tail()}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.1)
        sys.exit(f"antiphon was not ready within {READY_WITHIN} s; its log ends:\n{self.tail()}")

    def tail(self, lines: int = 40) -> str:
        """The end of the server's log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def close(self) -> None:
        """Stops the server as a service manager would, and takes its folder away."""
        stuck = False
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOPPED_WITHIN)
            except subprocess.TimeoutExpired:
                stuck = True
                self.process.kill()
                self.process.wait()
        end = self.tail()
        shutil.rmtree(self.folder, ignore_errors=True)
        if stuck:
            sys.exit(f"antiphon did not stop within {STOPPED_WITHIN} s of SIGTERM; its log ends:\n{end}")
