"""SECURITY V2: Phoenix's own git asks no promisor remote for objects that a repository lacks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from phoenix_tui.features.changes import find_uncommitted
from tests.support.git_repositories import git, repository
from tests.support.plain_runner import PlainRunner
from tools.git import commands
from tools.git.commands import GitReader, GitWriter
from tools.git.repository import find_repository


class _Server(ThreadingHTTPServer):
    requests: list[str]


class _Counting(BaseHTTPRequestHandler):
    """Answers nothing but that it was asked."""

    server: _Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        self.send_error(404)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of tests clean."""


@pytest.fixture
def remote() -> Iterator[_Server]:
    server = _Server(("127.0.0.1", 0), _Counting)
    server.requests = []
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def partial(tmp_path: Path, remote: _Server) -> Path:
    """A partial clone whose remote is the counting server, without the object of one committed file."""
    folder = repository(tmp_path / "work")
    missing = git(folder, "rev-parse", "HEAD:README")
    (folder / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    git(folder, "remote", "add", "origin", f"http://127.0.0.1:{remote.server_port}/x.git")
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.partialCloneFilter": "blob:none",
    }.items():
        git(folder, "config", key, value)
    (folder / "README").write_text("another\n", "ascii")
    return folder


def test_an_ordinary_git_asks_the_remote_of_such_a_repository(partial: Path, remote: _Server) -> None:
    subprocess.run(("git", "diff"), cwd=partial, capture_output=True, check=False, env={"PATH": os.environ["PATH"]})
    assert remote.requests


@pytest.mark.parametrize("knows_the_variable", [True, False])
async def test_no_look_and_no_change_of_phoenix_asks_it(
    knows_the_variable: bool, partial: Path, remote: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older versions of git do not know the variable: then the git folder without settings holds alone."""
    if not knows_the_variable:
        for name in ("GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL"):
            monkeypatch.delitem(commands.ALONE, name)
    found = find_repository(partial)
    assert found is not None
    await find_uncommitted(PlainRunner(), partial)
    reader = GitReader(PlainRunner(), found, partial)
    await reader.prepare()
    for words in (("diff", "HEAD"), ("cat-file", "-p", "HEAD:README"), ("log", "-p"), ("status",), ("fsck",)):
        await reader.ask(*words, most=4096)
    writer = GitWriter(PlainRunner(), found)
    for changing in (("checkout", "HEAD", "--", "README"), ("read-tree", "-u", "--reset", "HEAD"), ("stash",)):
        await writer.attempt(*changing)
    assert remote.requests == []
