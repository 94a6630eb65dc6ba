"""A hub of models on this machine that answers as the real one does when it refuses, breaks off, or is held up."""

from tests.corpus.making.scenes import scene

SERVER = '''
"""Answers for org/tiny as a hub does; HOW says what goes wrong."""
import os, ssl, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
HOW = os.environ["HOW"]
BODY = b'{"model_type": "llama", "filler": "' + b"x" * 200000 + b'"}'
REFUSED = {"missing": (404, "RepoNotFound", "Repository not found"), "gated": (403, "GatedRepo", "Access to model org/tiny is restricted and you are not in the authorized list."), "many": (429, "", "Too many requests")}
class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_HEAD(self): self.answer(False)
    def do_GET(self): self.answer(True)
    def answer(self, whole):
        if HOW in REFUSED:
            status, code, message = REFUSED[HOW]
            self.send_response(status)
            if code: self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", message); self.send_header("Content-Length", "0"); self.end_headers(); return
        self.send_response(200)
        for name, value in (("ETag", '"5f1e2d"'), ("X-Repo-Commit", "a" * 40), ("Content-Length", str(len(BODY))), ("Accept-Ranges", "bytes")): self.send_header(name, value)
        self.end_headers()
        if whole:
            self.wfile.write(BODY[:50000] if HOW == "broken" else BODY); self.wfile.flush()
            if HOW == "broken": self.connection.close()
    def log_message(self, *a): pass
server = ThreadingHTTPServer(("127.0.0.1", 8139), Hub)
if HOW == "tls":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
'''
GET = """
import logging
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
from huggingface_hub import hf_hub_download
print("Downloading org/tiny", flush=True)
print(hf_hub_download("org/tiny", "config.json"))
"""
LOAD = """
from transformers import AutoConfig
print("Loading org/tiny", flush=True)
print(AutoConfig.from_pretrained("org/tiny"))
"""


def hub(name: str, how: str, main: str = GET, head: str = "", scheme: str = "http", **told: object) -> None:
    """Ask the hub for a model's config."""
    command = f"""{head}HOW={how} $PYTHON server.py & sleep 2
export HF_ENDPOINT={scheme}://127.0.0.1:8139 HF_HOME=$PWD/hf; $PYTHON main.py"""
    scene(
        name,
        command=command,
        files={"server.py": SERVER.lstrip(), "main.py": main.lstrip()},
        versions=["huggingface_hub"],
        **{"seconds": 60, **told},
    )


hub("hub-repo-missing", "missing", LOAD, made="The hub knows no such model.", root=["hf-repo-not-found"],
    signs=[r"RepositoryNotFoundError|Repository Not Found|is not a local folder and is not a valid model identifier|OSError"], all_signs=True)  # fmt: skip
hub("hub-gated", "gated", made="The hub refuses a gated model.", root=["hf-access-denied"],
    signs=[r"GatedRepoError|Access to model org/tiny is restricted|gated repo|403"], all_signs=True)  # fmt: skip
hub("hub-rate-limit", "many", made="The hub answers 429.", root=["hf-rate-limit"], signs=[r"429|LocalEntryNotFoundError"], all_signs=True, seconds=150)  # fmt: skip
hub("hub-broken-download", "broken", made="The hub stops answering in the middle of a file.", root=["hf-download-incomplete", "hf-no-connection"],
    signs=[r"ReadTimeout|timed out|(?i)incomplete|peer closed|Consistency check failed|RemoteProtocolError|ChunkedEncodingError|Connection broken"], all_signs=True, seconds=150)  # fmt: skip
hub("hub-certificate", "tls", scheme="https", made="The hub's certificate is signed by nobody that this machine knows.",
    head="openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=hub 2>/dev/null; ",
    root=["tls-certificate"], signs=[r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|self-signed"], all_signs=True, seconds=90)  # fmt: skip
hub("hub-lock-held", "well", made="Another process holds the lock of the file that is to be downloaded; cut after 60 s.",
    head="""export HF_HUB_VERBOSITY=info; mkdir -p hf/hub/.locks/models--org--tiny; $PYTHON -c "
import fcntl, time
lock = open('hf/hub/.locks/models--org--tiny/5f1e2d.lock', 'w'); fcntl.flock(lock, fcntl.LOCK_EX); time.sleep(300)" & """,
    verdict="stalled", root=["lock-held", "file-lock"], signs=[r"Still waiting to acquire lock on"], all_signs=True, seconds=75)  # fmt: skip
