"""Commands that leave something behind in a folder, inside and outside of the sandbox, and looks without a process."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.sandboxes import CONFINED
from tools.bash import Caller
from tools.contract import Command, Finished
from tools.process.start import Processes
from tools.process.workspace_look import Workspace, respond
from tools.process.workspace_watch import WorkspaceWatch

IDENTITY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_TEMPLATE_DIR": "", **IDENTITY}
EXPORTS = "export " + " ".join(f"{name}={value}" for name, value in ALONE.items())


def run_outside(folder: Path, script: str, *, check: bool = False) -> str:
    """Run a script as the user would; returns what it wrote."""
    words, environment = ["bash", "-c", script], {**os.environ, **ALONE}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=check)
    return done.stdout + done.stderr


async def run_inside(processes: Processes, folder: Path, script: str) -> Finished:
    """Run a script in the sandbox."""
    command = Command(("/bin/bash", "-c", f"{EXPORTS}\n{script}"), folder, timeout=60, sandbox=CONFINED)
    ended = await processes.jobs.run(command, Caller("one", "call", "x"))
    assert isinstance(ended, Finished)
    return ended


class LocalHelper:
    """The helper of a `WorkspaceWatch` in this very process."""

    def __init__(self) -> None:
        self.pid = 1
        self._workspaces: dict[str, Workspace] = {}

    def ask(self, request: bytes, last: bytes) -> list[bytes]:
        """The answer to one request."""
        return [json.dumps(respond(json.loads(request), self._workspaces)).encode(), last]

    def forget(self) -> None:
        """End, and be another process."""
        self.pid += 1
        self._workspaces.clear()


def local_watch() -> tuple[WorkspaceWatch, LocalHelper]:
    """A watch without a process."""
    watch, helper = WorkspaceWatch(), LocalHelper()
    swapped: Any = watch
    swapped.helper = helper
    return watch, helper
