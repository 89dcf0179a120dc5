"""Test of the enforcement that this system offers; `phoenix doctor` shows the sentences."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from msgspec import Struct

from tools.contract import Command, Enforcement, Sandbox, SandboxMode
from tools.process.bubblewrap import bubblewrap
from tools.process.execution import NotSupervisedError
from tools.process.plan import BUBBLEWRAP, Planner
from tools.process.supervision import Supervision
from tools.process.zygote import wire

SUPERVISION_SENTENCES = {
    wire.SUBREAPER: "Each command runs under a supervisor that adopts every process it leaves, so none survives a "
    "stop; it sees and may signal the same processes as your shell.",
    wire.SCAN: "This system cannot keep a command's processes together, so they are found by looking every 0.2 s: "
    "best effort, a program that forks and detaches in between may survive.",
}
SANDBOX_SENTENCES = {
    wire.NAMESPACE: "Sandboxed commands run in namespaces of their own, which enforce files, keys, sockets, processes "
    "and the network. They write in the working directory, a private /tmp and copies of caches.",
    BUBBLEWRAP: "Sandboxed commands run under bubblewrap, which enforces files, keys, sockets, processes and the "
    "network. They write in the working directory and a private /tmp; caches are read-only.",
    wire.LANDLOCK: "Namespaces are blocked here, so Landlock enforces where sandboxed commands write, which keys they "
    "cannot read; sockets of other programs, .git/hooks and .git/config in the working directory are not protected. "
    "Commands ask in every mode.",
    "": "This system can enforce no sandbox: namespaces are blocked, bubblewrap does not work and Landlock is missing.",
}
ENFORCEMENT = {
    wire.NAMESPACE: Enforcement.FULL,
    BUBBLEWRAP: Enforcement.FULL,
    wire.LANDLOCK: Enforcement.FILES,
    "": Enforcement.NONE,
}
NOT_LINUX = "The sandbox needs Linux; here commands run as you."
TEST_SCRIPT = "echo x > inside; echo x > .git/hooks/denied; echo x > ../outside; exit 0"
TEST_LIMIT = 5.0


class ProcessSupport(Struct, frozen=True):
    """Protections in force and the reasons, one readable sentence each."""

    supervision: str
    supervision_sentence: str
    sandbox: str
    """Empty when none can be enforced."""
    sandbox_sentence: str
    guards_files: bool
    """True when the sandbox also keeps single files inside the working directory unchanged."""
    enforcement: Enforcement = Enforcement.NONE


async def find_sandbox(supervision: Supervision, planner: Planner) -> None:
    """Try the mechanisms, best first, until one refuses what it must; the planner remembers it."""
    if sys.platform != "linux":
        planner.sandbox, planner.sandbox_reason = "", NOT_LINUX
        return
    candidates = [wire.NAMESPACE, *([BUBBLEWRAP] if bubblewrap() else []), wire.LANDLOCK]
    for mechanism in candidates:
        if await _enforces(supervision, planner, mechanism):
            planner.sandbox = mechanism
            break
    else:
        planner.sandbox = ""
    planner.sandbox_reason = SANDBOX_SENTENCES[planner.sandbox]


def describe(planner: Planner) -> ProcessSupport:
    """The outcome of `find_sandbox` in words."""
    sandbox = planner.sandbox or ""
    return ProcessSupport(
        planner.mechanism,
        SUPERVISION_SENTENCES[planner.mechanism],
        sandbox,
        planner.sandbox_reason,
        sandbox in {wire.NAMESPACE, BUBBLEWRAP},
        ENFORCEMENT[sandbox],
    )


async def _enforces(supervision: Supervision, planner: Planner, mechanism: str) -> bool:
    """True when a command in the sandbox can write where it may and nowhere else."""
    with tempfile.TemporaryDirectory(prefix="phoenix-probe-") as folder:
        outside = Path(folder)
        workspace = outside / "workspace"
        hooks = workspace / ".git" / "hooks"
        for name in ("hooks", "objects", "refs"):
            (workspace / ".git" / name).mkdir(parents=True)
        (workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
        command = Command(("/bin/sh", "-c", TEST_SCRIPT), workspace, timeout=TEST_LIMIT)
        plan = await planner.plan_confined(command, mechanism, Sandbox(SandboxMode.WORKSPACE), is_watched=False)
        try:
            running = await supervision.start_planned(command, plan)
        except (OSError, NotSupervisedError):
            return False
        try:
            await running.execution.over.wait()
        finally:
            await supervision.end(running)
        guarded = mechanism == wire.LANDLOCK or not (hooks / "denied").exists()
        return (workspace / "inside").exists() and not (outside / "outside").exists() and guarded
