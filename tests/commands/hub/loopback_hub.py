"""The part of the Hub's HTTP interface that publishing and loading a model use, on the loopback device. Not a test.

It keeps commits in memory, asks for LFS for `*.safetensors` and `*.onnx`, refuses what the Hub refuses with its
statuses and headers, and notes each request. `break_next` makes requests fail.
"""

import base64
import hashlib
import json
import threading
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants


TOKENS = {"hf_user": "user", "hf_other": "other"}
LFS = (".safetensors", ".onnx")
INITIAL = {".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"}


@dataclass
class Repository:
    """Commits (files by path) by their id, and the branches' heads. Names of data sets begin with `datasets/`."""

    private: bool
    commits: dict = field(default_factory=dict)
    heads: dict = field(default_factory=dict)
    messages: list = field(default_factory=list)

    def commit(self, branch, files, message):
        sha = _blob_id(f"{len(self.commits)} {sorted(files.items())}".encode())
        self.commits[sha] = dict(files)
        self.heads[branch] = sha
        self.messages.append((branch, message))
        return sha

    def find(self, revision):
        sha = self.heads.get(revision, revision)
        return sha if sha in self.commits else None

    def files(self, revision="main"):
        return self.commits[self.find(revision)]


class LoopbackHub:
    """The server; a context manager. `url` is what `HF_ENDPOINT` is set to."""

    def __init__(self):
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, int]] = []
        self.unsafe: list[str] = []
        self._breaks: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        # Polled often, because `shutdown` waits for the next poll.
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exception):
        self._server.shutdown()
        self._server.server_close()

    def break_next(self, method, fragment, *statuses):
        """Answer the next requests of this method whose path contains `fragment` with these statuses; 0 hangs up."""
        self._breaks[method, fragment].extend(statuses)

    def breaks(self, method, path):
        with self._lock:
            for (broken_method, fragment), statuses in self._breaks.items():
                if broken_method == method and fragment in path and statuses:
                    return statuses.pop(0)
        return None

    def requested(self, method, fragment=""):
        """The paths of the requests so far of this method that contain `fragment`."""
        return [path for name, path, _ in self.requests if name == method and fragment in path]


@contextmanager
def client_of_loopback_hub(folder):
    """A [`LoopbackHub`], to which this process's client talks with the token of `user`; no other is in `folder`."""
    with LoopbackHub() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", server.url)
        template = f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub_cache"))
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr(constants, "HF_TOKEN_PATH", str(folder / "no_token"))
        patch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
        patch.setenv("HF_TOKEN", "hf_user")
        yield server


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self._answer()

    do_HEAD = do_POST = do_PUT = do_GET

    def _answer(self):
        self.path_ = unquote(urlsplit(self.path).path)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status = self.hub.breaks(self.command, self.path_)
        content = {"error": "broken on purpose"}
        headers = {}
        if status is None:
            status, content, headers = self._respond()
        self.hub.requests.append((self.command, self.path_, status))
        if status:
            self._send(status, content, **headers)
        else:
            self.close_connection = True
            self.connection.shutdown(2)

    def _send(self, status, content, **headers):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    @property
    def user(self):
        return TOKENS.get((self.headers.get("Authorization") or "").removeprefix("Bearer "))

    def _respond(self):
        path = self.path_.strip("/")
        command = self.command
        if command == "PUT":
            return self._put(path)
        if path == "api/repos/create":
            return self._create(json.loads(self.body))
        if path == "api/validate-yaml":
            return 200, {"errors": [], "warnings": []}, {}
        words = path.split("/")
        if words[:2] == ["api", "models"]:
            name = "/".join(words[2:4])
            rest = words[4:]
        elif "datasets" in words[:2]:
            begin = words.index("datasets")
            name = "/".join(words[begin : begin + 3])
            rest = words[begin + 3 :]
        else:
            name = "/".join(words[:2]).removesuffix(".git")
            rest = words[2:]
        repository = self.hub.repositories.get(name)
        is_own = self.user is not None and self.user == name.partition("/")[0]
        if repository is None or (repository.private and not is_own):
            # The client recognises the Hub itself by its address, which has to begin with https.
            status, content, headers = self._missing("RepoNotFound") if self.user else self._unauthorised()
            return status, content, headers | {"X_Error_Code": "RepoNotFound"}
        return self._of_repository(name, repository, rest)

    def _of_repository(self, name, repository, rest):
        match rest:
            case []:
                return self._info(name, repository, "main")
            case ["revision", revision]:
                return self._info(name, repository, revision)
            case ["tree", revision, *folder]:
                return self._tree(repository, revision, "/".join(folder))
            case ["branch", branch]:
                start = json.loads(self.body or b"{}").get("startingPoint") or "main"
                if branch in repository.heads:
                    return 409, {"error": "Reference already exists"}, {}
                repository.heads[branch] = repository.find(start)
                return 200, {}, {}
            case ["preupload", revision]:
                return self._preupload(repository, revision)
            case ["info", "lfs", "objects", "batch"]:
                return self._batch()
            case ["commit", revision]:
                return self._commit(name, repository, revision)
            case ["resolve", revision, *file]:
                return self._resolve(repository, revision, "/".join(file))
        return 404, {"error": f"not known here: {rest}"}, {}

    def _missing(self, code):
        return 404, {"error": code}, {"X_Error_Code": code}

    def _unauthorised(self):
        return 401, {"error": "Invalid username or password."}, {}

    def _create(self, request):
        if self.user is None:
            return self._unauthorised()
        owner = request.get("organization") or self.user
        name = f"{owner}/{request['name']}"
        if owner != self.user:
            return 403, {"error": f"You don't have the rights to create a model under the namespace {owner!r}"}, {}
        url = {"url": f"{self.hub.url}/{name}", "name": name}
        if name in self.hub.repositories:
            return 409, {"error": "You already created this model repo", **url}, {}
        private = request.get("visibility") == "private" or bool(request.get("private"))
        self.hub.repositories[name] = Repository(private)
        self.hub.repositories[name].commit("main", INITIAL, "initial commit")
        return 200, url, {}

    def _info(self, name, repository, revision):
        sha = repository.find(revision)
        if sha is None:
            return self._missing("RevisionNotFound")
        siblings = [{"rfilename": path} for path in repository.commits[sha]]
        info = {"_id": name, "id": name, "modelId": name, "sha": sha, "private": repository.private, "tags": []}
        return 200, info | {"siblings": siblings, "downloads": 0, "likes": 0}, {}

    def _tree(self, repository, revision, folder):
        sha = repository.find(revision)
        files = {path: content for path, content in repository.commits[sha].items() if path.startswith(folder)}
        if folder and not files:
            return self._missing("EntryNotFound")
        entries = []
        for path, content in files.items():
            entry = {"type": "file", "path": path, "size": len(content), "oid": _blob_id(content)}
            if path.endswith(LFS):
                digest = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 130}
            entries.append(entry)
        return 200, entries, {}

    def _preupload(self, repository, revision):
        there = repository.files(revision)
        files = []
        for file in json.loads(self.body)["files"]:
            path = file["path"]
            is_lfs = path.endswith(LFS)
            oid = None
            if path in there:
                oid = hashlib.sha256(there[path]).hexdigest() if is_lfs else _blob_id(there[path])
            mode = "lfs" if is_lfs else "regular"
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return 200, {"files": files}, {}

    def _batch(self):
        objects = []
        for requested in json.loads(self.body)["objects"]:
            digest = requested["oid"]
            entry = {"oid": digest, "size": requested["size"]}
            if digest not in self.hub.objects:
                entry["actions"] = {"upload": {"href": f"{self.hub.url}/lfs/{digest}"}}
            objects.append(entry)
        return 200, {"transfer": "basic", "objects": objects}, {}

    def _put(self, path):
        digest = path.removeprefix("lfs/")
        if self.headers.get("Authorization"):
            self.hub.unsafe.append(path)
        if hashlib.sha256(self.body).hexdigest() != digest:
            return 400, {"error": "the content has another digest"}, {}
        self.hub.objects[digest] = self.body
        return 200, {}, {}

    def _commit(self, name, repository, revision):
        files = dict(repository.files(revision))
        message = ""
        for line in self.body.splitlines():
            operation = json.loads(line)
            value = operation["value"]
            match operation["key"]:
                case "header":
                    message = value["summary"]
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    if value["oid"] not in self.hub.objects:
                        return 400, {"error": f"LFS object {value['oid']} was not uploaded"}, {}
                    files[value["path"]] = self.hub.objects[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
        sha = repository.commit(revision, files, message)
        url = f"{self.hub.url}/{name}/commit/{sha}"
        return 200, {"success": True, "commitOid": sha, "commitUrl": url}, {}

    def _resolve(self, repository, revision, path):
        sha = repository.find(revision)
        if path not in repository.commits[sha]:
            status, content, headers = self._missing("EntryNotFound")
            return status, content, headers | {"X_Repo_Commit": sha}
        content = repository.commits[sha][path]
        digest = hashlib.sha256(content).hexdigest() if path.endswith(LFS) else _blob_id(content)
        headers = {"X_Repo_Commit": sha, "ETag": f'"{digest}"', "Content_Type": "application/octet-stream"}
        return 200, content, headers


def _blob_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
