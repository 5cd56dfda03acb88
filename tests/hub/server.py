"""A simulated Hugging Face hub: serves a folder of repositories in the public hub's HTTP layout.

    python tests/hub/server.py FOLDER

makes the stand-ins in FOLDER, prints the address for the variable HF_ENDPOINT and serves until it
is killed.
"""

import hashlib
import json
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote

KINDS = ("models", "datasets")
Form = dict[str, list[str]]
Late = dict[str, Callable[[Path], None]]
MESSAGES = {
    "RepoNotFound": (401, "Repository not found"),  # the public hub's answer to an anonymous client
    "RevisionNotFound": (404, "Invalid rev id"),
    "EntryNotFound": (404, "Entry not found"),
}


class NotFoundError(Exception):
    """Nothing of that name; the argument is the hub's error code, a key of `MESSAGES`."""


@dataclass(frozen=True)
class Repository:
    """A folder `models/OWNER/NAME` or `datasets/OWNER/NAME`.

    late: functions by file name; each writes its file, at a given path, when it is first needed.
    """

    folder: Path
    late: Late = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    oids: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return "/".join(self.folder.parts[-2:])

    @cached_property
    def names(self) -> list[str]:
        """Paths of all files, sorted."""
        present = [path for path in self.folder.rglob("*") if path.is_file()]
        return sorted({p.relative_to(self.folder).as_posix() for p in present} | self.late.keys())

    @cached_property
    def commit(self) -> str:
        """Forty hex digits that change with the content, except that of late files."""
        names = [name for name in self.names if name not in self.late]
        return hashlib.sha1("".join(name + self.oid(name) for name in names).encode()).hexdigest()

    def path(self, name: str) -> Path:
        """The file, which is written first if it is a late one. Raises NotFoundError."""
        if name not in self.names:
            raise NotFoundError("EntryNotFound")
        path = self.folder / name
        with self.lock:
            if not path.exists():
                part = path.with_name(f".{path.name}.part")
                self.late[name](part)
                part.rename(path)
        return path

    def oid(self, name: str) -> str:
        """Git's hash of the file's content; it is the ETag too."""
        path = self.path(name)
        if name not in self.oids:
            content = path.read_bytes()
            self.oids[name] = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        return self.oids[name]

    def resolved(self, revision: str) -> str:
        """The commit of a revision. Any full commit hash is accepted, with the same files."""
        if revision == "main":
            return self.commit
        if re.fullmatch("[0-9a-f]{40}", revision):
            return revision
        raise NotFoundError("RevisionNotFound")

    def info(self, revision: str) -> dict:
        common = {
            "id": self.id,
            "sha": self.resolved(revision),
            "private": False,
            "gated": False,
            "disabled": False,
        }
        siblings = [{"rfilename": name} for name in self.names]
        return {**common, "tags": [], "likes": 0, "downloads": 0, "siblings": siblings}

    def entry(self, name: str) -> dict:
        """The description of a file, or of a folder."""
        if name not in self.names:
            return {
                "type": "directory",
                "path": name,
                "oid": hashlib.sha1(name.encode()).hexdigest(),
                "size": 0,
            }
        return {
            "type": "file",
            "path": name,
            "oid": self.oid(name),
            "size": self.path(name).stat().st_size,
        }

    def folders(self) -> set[str]:
        return {parent.as_posix() for name in self.names for parent in Path(name).parents} - {"."}

    def tree(self, under: str, recursive: bool) -> list[dict]:
        """Entries below a folder; "" is the root."""
        if under and under not in self.folders():
            raise NotFoundError("EntryNotFound")
        start = under + "/" if under else ""
        below = sorted(name for name in {*self.names, *self.folders()} if name.startswith(start))
        if not recursive:
            below = [name for name in below if "/" not in name.removeprefix(start)]
        return [self.entry(name) for name in below]

    def paths_info(self, paths: list[str]) -> list[dict]:
        """Entries of those paths that exist."""
        return [self.entry(path) for path in paths if path in self.names or path in self.folders()]


class HubServer(ThreadingHTTPServer):
    """Serves the repositories of `folder` on a free port, between `start` and `stop` in a thread.

    late: for each repository, named as "datasets/OWNER/NAME"; see `Repository`.
    requests: method and path of every request so far, as "GET /api/models/OWNER/NAME".
    """

    daemon_threads = True

    def __init__(self, folder: Path, late: dict[str, Late] | None = None):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[str] = []
        self.repositories = {}
        for path in sorted(path for kind in KINDS for path in (folder / kind).glob("*/*")):
            key = path.relative_to(folder).as_posix()
            self.repositories[key] = Repository(path, (late or {}).get(key, {}))

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
                self._send(
                    200,
                    {},
                    json.dumps(self._api(segments[1:], parse_qs(query), parse_qs(form))).encode(),
                )
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
            return repository.paths_info(form.get("paths", []))
        raise NotFoundError("EntryNotFound")

    def _send_file(self, segments: list[str]) -> None:
        kind = "datasets" if segments[0] == "datasets" else "models"
        segments = segments[1:] if kind == "datasets" else segments
        repository = self.server.repository(kind, segments)
        if len(segments) < 5 or segments[2] != "resolve":
            raise NotFoundError("EntryNotFound")
        commit, name = repository.resolved(segments[3]), "/".join(segments[4:])
        headers = {
            "X-Repo-Commit": commit,
            "ETag": f'"{repository.oid(name)}"',
            "Accept-Ranges": "bytes",
        }
        content = repository.path(name).read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            return self._send(200, headers, content)
        first, last = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        self._send(206, headers, content[first : last + 1])

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing on the terminal: requests are kept in `HubServer.requests`."""


def main(folder: Path) -> None:
    from repositories import LATE, make_repositories

    make_repositories(folder)
    server = HubServer(folder, LATE)
    print(server.address, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
