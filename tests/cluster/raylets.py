"""A real Ray cluster on this machine: one head, and raylets that each see a tree of their own at the same path.

Each node is a mount namespace, with a tmpfs over the tree or the head's own tree in it; a far one has a network
namespace besides. Everything that runs in the cluster is known by a variable in its environment, and ended by it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import networks
from tests.cluster.particular import HELD, Node
from tests.cluster.processes import MARK, NODE, end, marked, wait_for
from tests.remote import namespaces

STORE = 80_000_000
"""Bytes of an object store, about the least that Ray takes."""
_AGENTS = "metrics_agent_port metrics_export_port runtime_env_agent_port dashboard_agent_listen_port"
_QUICK = {
    "LC_ALL": "C.UTF-8",
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_initial_delay_ms": "300",
    "RAY_health_check_period_ms": "300",
    "RAY_health_check_failure_threshold": "3",
    "RAY_num_prestart_python_workers": "0",
    "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "120",  # Of a machine that is busy with other lanes.
}
_CENSUS = """
import json, sys
from ray._raylet import GcsClient
client = GcsClient(address=sys.argv[1])
for _ in sys.stdin:
    print(json.dumps([node.node_name for node in client.get_all_node_info().values() if node.state == 0]), flush=True)
"""


@dataclass
class Raylet:
    """A node that runs, or has been killed."""

    name: str
    cluster: RealCluster
    keeper: subprocess.Popen[bytes]
    """What holds its namespaces, also when the raylet is gone."""
    address: str

    def sees(self, path: Path) -> Path:
        """The way from here to an absolute path there."""
        return Path(f"/proc/{self.keeper.pid}/root") / path.relative_to("/")

    @property
    def tree(self) -> Path:
        return self.sees(self.cluster.tree)

    def do(self, *command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command among its mounts."""
        inside = ["nsenter", f"--target={self.keeper.pid}", "--mount", "--", *map(str, command)]
        return subprocess.run(inside, check=check, capture_output=True, text=True, cwd="/")

    def kill(self) -> None:
        """Kill its raylet, its workers and what they have begun, at one blow. Its tree stays."""
        end(**{MARK: self.cluster.token, NODE: self.name})


@dataclass
class RealCluster:
    folder: Path
    python: Path
    """Of the environment that has Ray."""
    token: str
    net: str
    address: str = ""
    client: str = ""
    _raylets: int = 0
    _left: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def tree(self) -> Path:
        """Where every node has its tree; the head's is on this machine's disk."""
        return self.folder / "fork"

    @property
    def signs(self) -> Path:
        """A folder that all nodes share, for signs between them and the test."""
        return self.folder / "signs"

    def hold(self, name: str) -> None:
        """Let what runs on that node, a held one, wait at its first step; until `release`, or for good."""
        (self.signs / f"{name}.hold").touch()

    def release(self, name: str) -> None:
        (self.signs / f"{name}.hold").unlink()

    def reached(self, name: str) -> bool:
        """Whether something of ours has begun on that node, a held one."""
        return (self.signs / f"{name}.seen").exists()

    @property
    def _common(self) -> dict[str, str]:
        return {**_QUICK, "PYTHONPATH": "", "TMPDIR": str(self.folder / "tmp")}

    def alive(self) -> list[str]:
        """Names of the nodes that Ray takes for alive."""
        stdin, stdout = self._census.stdin, self._census.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("\n")
        stdin.flush()
        assert select.select([stdout], [], [], 60)[0], "the head does not answer"
        found: list[str] = json.loads(stdout.readline())
        return found

    def ours(self) -> list[Path]:
        """What the tool has on its nodes: processes there, and whatever it may have left on their disks."""
        running = [Path(f"/proc/{pid}") for pid in marked(**{MARK: self.token}) if _is_ours(pid)]
        return running + list((self.folder / "tmp").glob("uky-patch-*"))

    def _start_head(self) -> None:
        environment = {**os.environ, **self._common, MARK: self.token, NODE: "head"}
        ports = [str(24000 + os.getpid() % 2900 * 2 + number) for number in (0, 1)]
        done = subprocess.run(
            [
                *(self.python.with_name("ray"), "start", "--head", f"--node-ip-address={self.net}.1"),
                *("--port", ports[0], "--ray-client-server-port", ports[1], "--num-cpus=1", "--node-name=head"),
                *(f"--object-store-memory={STORE}", "--include-dashboard=false", "--disable-usage-stats"),
                *("--temp-dir", self.folder / "ray"),
            ],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            cwd="/",
            timeout=120,
        )
        assert done.returncode == 0, done.stdout
        self.address = f"{self.net}.1:{ports[0]}"
        self.client = f"ray://{self.net}.1:{ports[1]}"
        self._command = self._of_the_head()
        self._census = subprocess.Popen(
            [self.python, "-c", _CENSUS, self.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._left.callback(self._close)

    def _close(self) -> None:
        assert self._census.stdin is not None
        assert self._census.stdout is not None
        self._census.kill()
        self._census.wait()
        self._census.stdin.close()
        self._census.stdout.close()

    def _of_the_head(self) -> dict[str, str]:
        """The command line of the head's raylet, from which the others' are made."""
        for pid in marked(**{MARK: self.token}):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
            if words and words[0].endswith("/raylet"):
                return {"": words[0], **dict(word.split("=", 1) for word in words[1:] if "=" in word)}
        raise AssertionError("the head has no raylet")

    @contextlib.contextmanager
    def nodes(self, *names: str, **options: Node) -> Iterator[list[Raylet]]:
        """Nodes by name, plain ones but for `options`, that leave the cluster in the end."""
        with contextlib.ExitStack() as stack:
            found = [stack.enter_context(self.node(name, options.get(name, Node()))) for name in names]
            wait_for(lambda: set(names) <= set(self.alive()), f"{names} in the cluster")
            yield found
            for raylet in found:
                self._dismiss(raylet.name)
            wait_for(lambda: not set(names) & set(self.alive()), f"{names} out of the cluster")

    @contextlib.contextmanager
    def node(self, name: str, node: Node) -> Iterator[Raylet]:
        """One node, begun and not yet waited for; nothing of it is left in the end."""
        self._raylets += 1
        own = {MARK: self.token, NODE: name}
        address = f"{self.net}.1"
        into: list[str] = []
        with contextlib.ExitStack() as stack:
            if node.far:
                address = f"{self.net}.{10 + self._raylets}"
                into = ["ip", "netns", "exec", stack.enter_context(networks.space(self._raylets, address))]
            script = f"{node.mounting(self.folder)} && echo ready && exec sleep infinity"
            keeper = subprocess.Popen(
                [*into, "unshare", "--mount", "--propagation=private", "--", "sh", "-c", script],
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            stack.callback(_reap, keeper)
            assert keeper.stdout is not None
            assert keeper.stdout.readline() == b"ready\n", name
            stack.callback(end, **own)
            raylet = Raylet(name, self, keeper, address)
            with (self.folder / f"{name}.log").open("w") as log:
                process = subprocess.Popen(
                    [
                        "nsenter",
                        f"--target={keeper.pid}",
                        "--mount",
                        "--net",
                        "--",
                        *node.apart,
                        *self._words(name, address),
                    ],
                    env={**os.environ, **self._common, **own, **node.variables(self.folder)},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd="/",
                )
            stack.callback(process.wait)
            stack.callback(end, **own)
            yield raylet

    def _words(self, name: str, address: str) -> list[str]:
        """The head's command line for a raylet of another name; agents, which nobody needs here, are stood in for."""
        words = dict(self._command)
        old, new = words["--node_id"], secrets.token_hex(28)
        for port in _AGENTS.split():
            (Path(words["--session_dir"]) / f"{port}_{new}").write_text("9")
        socket, store = words["--raylet_socket_name"], words["--store_socket_name"]
        gcs = words["--gcs-address"]
        for key, value in words.items():
            value = value.replace(old, new).replace(socket, socket + new[:6]).replace(store, store + new[:6])
            value = value.replace(gcs, "GCS").replace(f"{self.net}.1", address).replace("GCS", gcs)
            words[key] = value
        words |= dict.fromkeys(("--dashboard_agent_command", "--runtime_env_agent_command"), "sleep infinity")
        words |= dict.fromkeys(("--metrics-agent-port", "--metrics_export_port", "--runtime_env_agent_port"), "9")
        words["--static_resource_list"] = f"node:{address},1.0,CPU,1,memory,1000000000,object_store_memory,{STORE}"
        words |= {"--node_name": name, "--num_prestart_python_workers": "0"}
        words |= {key: f"{words[key]}.{name}" for key in ("--stdout_filepath", "--stderr_filepath")}
        return [words.pop(""), *(f"{key}={value}" for key, value in words.items())]

    def _dismiss(self, name: str) -> None:
        """Let its raylet say goodbye, so that nobody has to find out."""
        for pid in marked(**{MARK: self.token, NODE: name}):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(b"/raylet"):
                    os.kill(pid, signal.SIGTERM)


@contextlib.contextmanager
def cluster(python: Path) -> Iterator[RealCluster]:
    """A cluster with a head alone; whatever happens, nothing of it is left."""
    networks.sweep()
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    folder = Path(f"/tmp/uky-cluster-{os.getpid()}")
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("fork", "source", "fresh", "signs", "held", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "held" / "sitecustomize.py").write_text(HELD)
    net = namespaces.free_net()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.enter_context(networks.bridge(net))
        stack.callback(end, **{MARK: token})
        made = RealCluster(folder, python, token, net)
        stack.enter_context(made._left)
        made._start_head()
        yield made


def _is_ours(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"zlib.decompress" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
