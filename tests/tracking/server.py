"""A stand-in for the W&B server: it keeps what it is sent, or misbehaves in a way of one's choice."""

import gzip
import json
import re
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.tracking.artifacts import Artifacts
from tests.tracking.views import Views

KEY = "0123456789" * 4

FOUND = {"id": "x", "name": "x", "entity": {"id": "e", "name": "me"}}


class Run:
    """A run as the server has it: the lines of its history by their number, its summary, and how it ended."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        self.lines: dict[int, dict[str, Any]] = {}
        self.summary: dict[str, Any] = {}
        self.exit_code: int | None = None
        self.files: dict[str, bytes] = {}

    @property
    def history(self) -> list[dict[str, Any]]:
        return [self.lines[number] for number in sorted(self.lines)]

    def points(self, key: str, axis: str = "step") -> list[tuple[float, Any]]:
        """The points of a curve, in the order of the rows."""
        return [(row[axis], row[key]) for row in self.history if key in row]

    def take(self, body: Mapping[str, Any]) -> None:
        for name, content in body.get("files", {}).items():
            for number, line in enumerate(content["content"], content["offset"]):
                if name == "wandb-history.jsonl":
                    self.lines[number] = json.loads(line)
                elif name == "wandb-summary.json":
                    self.summary = json.loads(line)
        if body.get("complete"):
            self.exit_code = body["exitcode"]


class Server:
    """Serves at `address`. `manner`: accepts, refuses (403), fails (500), hangs, slow; or dies after `rows` rows."""

    def __init__(self, manner: str = "accepts", rows: int | None = None) -> None:
        self.manner, self.most_rows = manner, rows
        self.runs: dict[str, Run] = {}
        self.asked = 0
        handler = type("Handler", (_Handler,), {"wandb": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a caller that was killed
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self.artifacts, self.views = Artifacts(self.address), Views()
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        return {"WANDB_BASE_URL": self.address, "WANDB_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, name: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a query of GraphQL, of those that wandb 0.31 asks."""
        run = self.runs.get(variables.get("name") or variables.get("run") or "")
        if name in ("Viewer", "GetDefaultEntity"):
            return {"viewer": {"id": "1", "entity": "me", "username": "me", "flags": "{}", "teams": {"edges": []}}}
        if name == "UpsertBucket":
            made = self.runs.setdefault(variables["name"], Run())
            made.about.update({key: value for key, value in variables.items() if value is not None})
            project = {"id": "p", "name": variables["project"], "entity": FOUND["entity"]}
            return {"upsertBucket": {"bucket": {**FOUND, "name": variables["name"], "project": project}}}
        if name == "RunResumeStatus":
            return {"model": {**FOUND, "bucket": None if run is None else _bucket(variables["name"], run)}}
        if name == "CreateRunFiles":
            there = [{"name": file, "uploadUrl": f"{self.address}/file/{file}"} for file in variables["files"]]
            return {"createRunFiles": {"runID": "x", "uploadHeaders": [], "files": there}}
        for part in (self.artifacts, self.views):
            if (answer := part.answer(name, variables)) is not None:
                return answer
        if run is not None:
            last = len(run.lines) - 1
            return {
                "project": {
                    **FOUND,
                    "run": {**_bucket(variables["name"], run), **RUN, "historyKeys": {"lastStep": last}},
                }
            }
        return {}


RUN = {
    **dict.fromkeys(("summaryMetrics", "config", "systemMetrics"), "{}"),
    **dict.fromkeys(("sweepName", "group", "jobType", "commit", "readOnly")),
    **{"user": {"name": "me", "username": "me"}},
    **{"tags": [], "createdAt": "2026-01-01T00:00:00Z", "heartbeatAt": "2026-01-01T00:00:00Z", "state": "finished"},
    **{"projectId": "1", "historyLineCount": 0, "description": "", "notes": "", "storageId": "x", "internalId": "1"},
}


def _bucket(name: str, run: Run) -> dict[str, Any]:
    tail = json.dumps([json.dumps(row) for row in run.history[-1:]])
    return {
        **{
            "id": "x",
            "name": name,
            "displayName": name,
            "summaryMetrics": json.dumps(run.summary),
            "tags": run.about.get("tags", []),
        },
        **{"logLineCount": 0, "historyLineCount": len(run.lines), "eventsLineCount": 0, "historyTail": tail},
        **{"eventsTail": "[]", "config": run.about.get("config", "{}"), "notes": None, "wandbConfig": '{"t": 1}'},
    }


class _Handler(BaseHTTPRequestHandler):
    wandb: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, content: object, code: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.wandb.manner == "hangs":
            time.sleep(3600)
        self._send({})

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/artifact/"):
            self.wandb.artifacts.take(self.path.removeprefix("/artifact/"), content)
            return self._send({})
        for run in self.wandb.runs.values():
            run.files[self.path.removeprefix("/file/")] = content
        return self._send({})

    def do_POST(self) -> None:
        server = self.wandb
        server.asked += 1
        if server.manner == "hangs":
            time.sleep(3600)
        if server.manner == "slow":
            time.sleep(0.3)
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        if server.manner in ("refuses", "fails"):
            return self._send({"errors": [{"message": "no"}]}, 403 if server.manner == "refuses" else 500)
        body = json.loads(raw) if raw else {}
        if self.path.endswith("/graphql"):
            asked = re.search(r"(?:query|mutation)\s+(\w+)", body["query"])
            assert asked is not None
            return self._send({"data": server.answer(asked[1], body.get("variables") or {})})
        found = re.search(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", self.path)
        if found is not None:
            run = server.runs[found[1]]
            run.take(body)
            if server.most_rows is not None and len(run.lines) >= server.most_rows:
                server.manner = "hangs"
        return self._send({})
