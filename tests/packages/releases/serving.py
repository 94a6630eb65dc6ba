"""An index on this machine: wheels and source archives of a package, and a server with the faults asked for."""

from __future__ import annotations

import hashlib
import io
import random
import tarfile
import threading
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SOURCES = {"demo_pkg/__init__.py": "x = 1\n", "demo_pkg/deep/a.py": "y = 2\n", "demo_pkg/conf/b.yaml": "z: 3\n"}


def wheel_of(members: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text, zipfile.ZIP_DEFLATED if isinstance(text, str) else zipfile.ZIP_STORED)
    return buffer.getvalue()


def sdist_of(top: str, members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


@lru_cache(maxsize=1)
def release_files() -> dict[str, bytes]:
    """A wheel, with ballast where compiled code would be, and a source archive of each of three versions."""
    files = {}
    ballast = random.Random(1).randbytes(3 << 20)
    for version in ("1.0", "1.1", "2.0"):
        info = f"demo_pkg-{version}.dist-info"
        metadata = {f"{info}/METADATA": f"Name: demo-pkg\nVersion: {version}\n", f"{info}/RECORD": "demo_pkg/_C.so,,\n"}
        files[f"demo_pkg-{version}-cp38-abi3-manylinux1_x86_64.whl"] = wheel_of(
            {"demo_pkg/_A.so": ballast, **SOURCES, "demo_pkg/_C.so": ballast, **metadata}
        )
        files[f"demo_pkg-{version}.tar.gz"] = sdist_of(
            f"demo_pkg-{version}", {"PKG-INFO": "Name: demo-pkg\n", "tests/t.py": "", "demo_pkg/c.cpp": "", **SOURCES}
        )
    return files


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that stops reading is no news."""


class Server:
    """Serves files of one package under `/simple/<name>/`; counts the requests and the bytes sent per file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.files: dict[str, bytes] = {}
        self.wrong_hash: set[str] = set()
        self.yanked: dict[str, str] = {}
        self.gone: set[str] = set()
        self.ranges = True
        self.range_status = 200
        """What a request for a range is answered with where there are none."""
        self.lengths = True
        self.delay = 0.0
        """Seconds before each file is sent."""
        self.truncate = 0
        """How many of the next answers break off half way."""
        self.status = 200
        self.requests: list[str] = []
        self.sent = 0
        self._http = _Quiet(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}/simple/"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def page(self) -> str:
        rows = []
        for name, content in self.files.items():
            digest = hashlib.sha256(content + (b"!" if name in self.wrong_hash else b"")).hexdigest()
            why = f' data-yanked="{self.yanked[name]}"' if name in self.yanked else ""
            rows.append(f'<a href="/files/{name}#sha256={digest}"{why}>{name}</a>')
        return "<!DOCTYPE html><html><body>" + "\n".join(rows) + "</body></html>"

    def _handler(served: Server) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                return

            def do_GET(self) -> None:
                served.requests.append(self.path)
                if served.status != 200:
                    self.send_error(served.status)
                elif self.path == f"/simple/{served.name}/":
                    self._send(200, served.page().encode(), {"Content-Type": "text/html"})
                elif (name := self.path.removeprefix("/files/")) in served.files and name not in served.gone:
                    self._file(served.files[name])
                else:
                    self.send_error(404)

            def _file(self, content: bytes) -> None:
                threading.Event().wait(served.delay)
                asked = self.headers.get("Range")
                if served.ranges and asked:
                    first, last = (int(part) for part in asked.removeprefix("bytes=").split("-"))
                    span = f"bytes {first}-{min(last, len(content) - 1)}/{len(content)}"
                    self._send(206, content[first : last + 1], {"Content-Range": span})
                elif asked and served.range_status != 200:
                    self.send_error(served.range_status)
                else:
                    self._send(200, content, {})

            def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                told = {"Content-Length": str(len(body))} if served.lengths else {}
                for key, value in {**headers, **told}.items():
                    self.send_header(key, value)
                self.end_headers()
                if served.truncate and self.path.startswith("/files/"):
                    served.truncate -= 1
                    body = body[: len(body) // 2]
                    self.close_connection = True
                self.wfile.write(body)
                served.sent += len(body)

        return Handler
