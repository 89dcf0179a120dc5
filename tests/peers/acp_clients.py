"""`make acp-clients`: clients of others drive `phoenix acp`, against servers on loopback.

Installs npm's `@agentclientprotocol/sdk` and `acpx` in a folder that is removed afterwards; `--packages` names a folder
that has them already. Without Node a sentence says so. Prints what differs from the expected results.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.support.acp_client import replies
from tests.support.cli import ROOT, Phoenix, with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import Answer, serve
from tests.support.loopback_agents import never_ends

PACKAGES: Final = ("@agentclientprotocol/sdk", "acpx")
SCRIPT: Final = Path(__file__).with_name("acp_client_script.mjs")
NO_NODE: Final = "The clients were not run: node and npm are not on the PATH."
RUNS: Final = calls("bash", command="echo one > made.txt")
READS: Final = calls("read_file", path="here.txt")
PLAN: Final = calls("todo_write", items=[{"text": "one", "status": "in_progress"}])
DONE: Final = says("Done.")
Scenarios: TypeAlias = Mapping[str, tuple[tuple[Answer, ...], dict[str, Any]]]
SDK: Final[Scenarios] = {
    "prompt": ((DONE,), {"text": "Done.", "stopped": "end_turn", "version": 1}),
    "approve": ((RUNS, DONE), {"asked": 1, "made": "one\n", "stopped": "end_turn"}),
    "deny": ((RUNS, DONE), {"asked": 1, "made": None, "stopped": "end_turn"}),
    "unsaved": ((READS, DONE), {"read": 1, "asked": 0, "stopped": "end_turn"}),
    "cancel": ((never_ends,), {"stopped": "cancelled"}),
    "mode": ((DONE,), {"mode": "accept-edits", "listed": True}),
}
ACPX: Final[Scenarios] = {
    "exec": ((DONE,), {"code": 0, "made": None}),
    "--approve-all": ((RUNS, PLAN, DONE), {"code": 0, "made": "one\n"}),
    "--deny-all": ((RUNS, DONE), {"code": 5, "made": None}),
}


async def seen(argv: Sequence[str], phoenix: Phoenix) -> dict[str, Any]:
    """Findings of one client: its last line where that is JSON, its exit code, the file that the agent made."""
    own = {name: value for name, value in os.environ.items() if name not in phoenix.environment}
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=phoenix.cwd,
        env=own | phoenix.environment | {"PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    last = out.splitlines()[-1] if out.strip() else b""
    made = phoenix.cwd / "made.txt"
    found: dict[str, Any] = json.loads(last) if last.startswith(b"{") else {}
    return found | {"code": process.returncode, "made": made.read_text() if made.exists() else None}


async def differences(client: str, packages: str, name: str) -> list[str]:
    """Differences of one scenario from what is expected."""
    answers, expected = (SDK if client == "sdk" else ACPX)[name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with serve(replies(*answers)) as server:
            phoenix = with_claude(Path(folder), server.url)
            (phoenix.cwd / "here.txt").write_text("saved\n")
            program = Path(folder) / "phoenix-acp"
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m phoenix_tui acp\n')
            program.chmod(0o700)
            flags = [name] if name.startswith("--") else []
            acpx = [f"{packages}/node_modules/.bin/acpx", "--agent", str(program), "--cwd", str(phoenix.cwd), *flags]
            sdk = ["node", str(SCRIPT), packages, name, str(program), str(phoenix.cwd)]
            found = await seen(sdk if client == "sdk" else [*acpx, "exec", "Go"], phoenix)
    return [
        f"{client} {name}: {key} is {found.get(key)!r}" for key, value in expected.items() if found.get(key) != value
    ]


async def compare(packages: str) -> int:
    """1 where a scenario differs."""
    failed = 0
    for client, scenarios in (("sdk", SDK), ("acpx", ACPX)):
        for name in scenarios:
            wrong = await differences(client, packages, name)
            failed |= bool(wrong)
            sys.stdout.write("\n".join(wrong or [f"{client} {name}: as expected"]) + "\n")
    return failed


def main() -> int:
    """Every scenario of both clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", default="", help="folder whose node_modules has both")
    wanted = parser.parse_args()
    if shutil.which("node") is None or (not wanted.packages and shutil.which("npm") is None):
        sys.stdout.write(f"{NO_NODE}\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        if not wanted.packages:
            npm = ("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--silent", "--omit=optional")
            subprocess.run([*npm, *PACKAGES], check=True)
        return asyncio.run(compare(wanted.packages or folder))


if __name__ == "__main__":
    sys.exit(main())
