"""A simulated Hugging Face hub: serves a folder of repositories in the public hub's HTTP layout."""

import hashlib
import json
import re
import threading
from functools import cache, cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote

KINDS = ("models", "datasets")
Form = dict[str, list[str]]
MESSAGES = {
    "RepoNotFound": (401, "Repository not found"),  # the public hub's answer to an anonymous client
    "RevisionNotFound": (404, "Invalid rev id"),
    "EntryNotFound": (404, "Entry not found"),
}


class NotFoundError(Exception):
    """Nothing of that name; the argument is the hub's error code, a key of `MESSAGES`."""


class Repository:
    """A folder `models/OWNER/NAME` or `datasets/OWNER/NAME`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.id = "/".join(folder.parts[-2:])
        present = [path for path in folder.rglob("*") if path.is_file()]
        self.names = sorted(path.relative_to(folder).as_posix() for path in present)
        parents = {parent.as_posix() for name in self.names for parent in Path(name).parents}
        self.folders = parents - {"."}

    @cached_property
    def commit(self) -> str:
        """Forty hex digits that change with the content."""
        content = "".join(name + oid(self.path(name)) for name in self.names)
        return hashlib.sha1(content.encode()).hexdigest()

    def path(self, name: str) -> Path:
        if name not in self.names:
            raise NotFoundError("EntryNotFound")
        return self.folder / name

    def resolved(self, revision: str) -> str:
        """The commit of a revision. Any full commit hash is accepted, with the same files."""
        if revision == "main":
            return self.commit
        if re.fullmatch("[0-9a-f]{40}", revision):
            return revision
        raise NotFoundError("RevisionNotFound")

    def info(self, revision: str) -> dict:
        flags = dict.fromkeys(("private", "gated", "disabled"), False)
        siblings = [{"rfilename": name} for name in self.names]
        own = {"id": self.id, "sha": self.resolved(revision), "siblings": siblings}
        return {**own, **flags, "tags": [], "likes": 0, "downloads": 0}

    def entry(self, name: str) -> dict:
        """The description of a file, or of a folder."""
        if name in self.names:
            path = self.path(name)
            return {"type": "file", "path": name, "oid": oid(path), "size": path.stat().st_size}
        digest = hashlib.sha1(name.encode()).hexdigest()
        return {"type": "directory", "path": name, "oid": digest, "size": 0}

    def tree(self, under: str, recursive: bool) -> list[dict]:
        """Entries below a folder; "" is the root."""
        if under and under not in self.folders:
            raise NotFoundError("EntryNotFound")
        start = under + "/" if under else ""
        below = sorted(name for name in {*self.names, *self.folders} if name.startswith(start))
        if not recursive:
            below = [name for name in below if "/" not in name.removeprefix(start)]
        return [self.entry(name) for name in below]


@cache
def oid(path: Path) -> str:
    """Git's hash of a file's content; it is the ETag too."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class HubServer(ThreadingHTTPServer):
    """Serves the repositories of `folder` on a free port, between `start` and `stop` in a thread.

    requests: method and path of every request so far, as "GET /api/models/OWNER/NAME".
    """

    daemon_threads = True

    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[str] = []
        paths = (path for kind in KINDS for path in (folder / kind).glob("*/*"))
        self.repositories = {p.relative_to(folder).as_posix(): Repository(p) for p in paths}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def repository(self, kind: str, segments: list[str]) -> Repository:
        found = self.repositories.get("/".join([kind, *segments[:2]]))
        if found is None:
            raise NotFoundError("RepoNotFound")
        return found


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"  # connections stay open, as the client expects

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        path, _, query = self.path.partition("?")
        segments = [unquote(segment) for segment in path.strip("/").split("/")]
        try:
            if segments[0] == "api":
                answer = self._api(segments[1:], parse_qs(query), parse_qs(form))
                self._send(200, {}, json.dumps(answer).encode())
            else:
                self._send_file(segments)
        except NotFoundError as error:
            status, message = MESSAGES[error.args[0]]
            headers = {"X-Error-Code": error.args[0], "X-Error-Message": message}
            self._send(status, headers, json.dumps({"error": message}).encode())

    do_HEAD = do_POST = do_GET

    def _api(self, segments: list[str], query: Form, form: Form) -> dict | list:
        """The answer to /api/KIND/OWNER/NAME[/VERB/REVISION[/PATH]]."""
        repository = self.server.repository(segments[0], segments[1:])
        verb = segments[3] if len(segments) > 3 else "revision"
        revision = segments[4] if len(segments) > 4 else "main"
        repository.resolved(revision)
        if verb == "revision":
            return repository.info(revision)
        if verb == "tree":
            recursive = query.get("recursive", ["false"])[0].lower() == "true"
            return repository.tree("/".join(segments[5:]), recursive)
        if verb == "paths-info":
            known = {*repository.names, *repository.folders}
            return [repository.entry(path) for path in form.get("paths", []) if path in known]
        raise NotFoundError("EntryNotFound")

    def _send_file(self, segments: list[str]) -> None:
        kind = "datasets" if segments[0] == "datasets" else "models"
        segments = segments[1:] if kind == "datasets" else segments
        repository = self.server.repository(kind, segments)
        if len(segments) < 5 or segments[2] != "resolve":
            raise NotFoundError("EntryNotFound")
        commit, name = repository.resolved(segments[3]), "/".join(segments[4:])
        path = repository.path(name)
        self._send(200, {"X-Repo-Commit": commit, "ETag": f'"{oid(path)}"'}, path.read_bytes())

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing on the terminal: requests are kept in `HubServer.requests`."""
