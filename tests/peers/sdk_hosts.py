"""`make sdk-hosts`: the official agent SDKs drive Phoenix by its path, against servers on loopback.

Installs the SDK for Python from its source archive (its wheel brings a program of hundreds of megabytes along), and the
one for Node without its optional programs, in a folder that is removed afterwards; `--venv` and `--packages` name
places that have them already. Without Node a sentence says so. Prints what differs from the expected results.
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

from tests.support.cli import ROOT, with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import Answer, serve
from tests.support.loopback_agents import never_ends
from tests.support.loopback_anthropic import refuses
from tests.support.mcp_phoenix import UNFORKED

PACKAGE: Final = "claude-agent-sdk"
NODE_PACKAGE: Final = "@anthropic-ai/claude-agent-sdk"
SCRIPT: Final = Path(__file__).with_name("sdk_host_script.py")
NODE_SCRIPT: Final = Path(__file__).with_name("sdk_host_script.mjs")
NO_NODE: Final = "The SDK for Node was not run: node and npm are not on the PATH."
Scenarios: TypeAlias = Mapping[str, tuple[tuple[Answer, ...], dict[str, Any]]]
RUNS: Final = calls("bash", command="echo one > made.txt")
PLANS: Final = calls("exit_plan", plan="# Plan\n1. Write")
WRITES: Final = calls("write_file", "toolu_2", path="made.txt", content="one\n")
DONE: Final = says("Done.")
SUCCESS: Final = {"result": "Done.", "subtype": "success", "is_error": False}
SCENARIOS: Final[Scenarios] = {
    "query": ((DONE,), SUCCESS),
    "partials": ((DONE,), SUCCESS | {"has_partials": True}),
    "permission": ((RUNS, DONE), SUCCESS | {"asked": [["Bash", "echo one > made.txt"]], "made": "changed\n"}),
    "prompt_tool": ((RUNS, DONE), SUCCESS | {"made": "changed\n"}),
    "plan": ((PLANS, WRITES, DONE), SUCCESS | {"asked": ["ExitPlanMode"], "made": "one\n"}),
    "refusal": ((RUNS, DONE), {"raised": "error_during_execution", "made": None}),
    "hooks": ((RUNS, DONE), SUCCESS | {"calls": ["PreToolUse Bash", "PostToolUse Bash"], "made": "one\n"}),
    "server": ((calls("mcp__calc__add", a=2, b=3), DONE), SUCCESS | {"args": {"a": 2, "b": 3}}),
    "elicitation": ((calls("mcp__kinds__form"), DONE), SUCCESS | {"told": "cancel None"}),
    "structured": (
        (calls("submit_structured", city="Basel"), DONE),
        {"structured": {"city": "Basel"}, "subtype": "success"},
    ),
    "agents": ((DONE,), SUCCESS),
    "agent_files": ((DONE,), SUCCESS | {"agents": [True, False]}),
    "failure": ((refuses(401, "authentication_error", "invalid x-api-key"),), {"raised": "success"}),
    "client": ((says("One."), DONE), SUCCESS | {"first": "One.", "model": "claude-haiku-5-5"}),
    "interruption": ((never_ends, DONE), SUCCESS | {"stopped": "aborted_streaming"}),
}
STOPPED: Final = {"subtype": "error_during_execution", "stopped": "aborted_tools", "made": None}
PYTHON_ALONE: Final = frozenset({"failure", "agent_files", "prompt_tool", "plan"})
NODE_SCENARIOS: Final[Scenarios] = {name: SCENARIOS[name] for name in SCENARIOS if name not in PYTHON_ALONE} | {
    "streaming": ((says("One."), DONE), {"results": ["One.", "Done."]}),
    "refusal": ((RUNS, DONE), STOPPED),
    "prompt": ((DONE,), SUCCESS),
    "launch": ((DONE,), SUCCESS | {"writes": False, "servers": [["kinds", "connected"]], "applied": [True] * 3}),
    "elicitation": (SCENARIOS["elicitation"][0], SUCCESS | {"told": "accept {'name': 'Ada'}"}),
    "failure": (SCENARIOS["failure"][0], {"subtype": "success", "is_error": True}),
}


async def differences(host: Sequence[str], name: str, scenario: tuple[tuple[Answer, ...], dict[str, Any]]) -> list[str]:
    """Differences of one scenario from what is expected; `host` begins its command line."""
    answers, expected = scenario
    with tempfile.TemporaryDirectory() as folder:
        async with serve(*answers) as server:
            phoenix = with_claude(Path(folder), server.url)
            program = Path(folder) / "phoenix"
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m phoenix_tui "$@"\n')
            program.chmod(0o700)
            own = {name: value for name, value in os.environ.items() if name not in phoenix.environment}
            process = await asyncio.create_subprocess_exec(
                *(*host, name, str(program), str(phoenix.cwd)),
                env=own | phoenix.environment | {"PYTHONPATH": str(ROOT), "MCP_SERVER": json.dumps(UNFORKED)},
                stdout=asyncio.subprocess.PIPE,
            )
            out, _ = await process.communicate()
        if process.returncode:
            return [f"{name}: the host ended with {process.returncode}"]
        found = json.loads(out.splitlines()[-1])
        made = phoenix.cwd / "made.txt"
        found["made"] = made.read_text() if made.exists() else None
        wrong = [f"{name}: {key} is {found.get(key)!r}" for key, value in expected.items() if found.get(key) != value]
        return wrong if not wrong else [*wrong, f"{name}: stderr {found.get('errors')}"]


async def compare(host: Sequence[str], scenarios: Scenarios, names: list[str]) -> int:
    """1 where a scenario differs."""
    failed = 0
    for name in names or scenarios:
        if name in scenarios:
            wrong = await differences(host, name, scenarios[name])
            failed |= bool(wrong)
            sys.stdout.write("\n".join(wrong or [f"{host[0]} {name}: as expected"]) + "\n")
    return failed


def node_host(packages: str, folder: str) -> tuple[str, ...]:
    """The begin of the command line of the host in Node; empty where there is none."""
    if shutil.which("node") is None or (not packages and shutil.which("npm") is None):
        sys.stdout.write(f"{NO_NODE}\n")
        return ()
    if not packages:
        npm = ("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--silent", "--omit=optional")
        subprocess.run([*npm, NODE_PACKAGE], check=True)
    return "node", str(NODE_SCRIPT), packages or folder


def main() -> int:
    """Every scenario, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", default="", help="environment of Python with the SDK")
    parser.add_argument("--packages", default="", help="folder whose node_modules has the SDK")
    parser.add_argument("names", nargs="*")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(wanted.venv or folder)
        if not wanted.venv:
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
            pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-binary", PACKAGE, PACKAGE], check=True)
        python = str(venv / "bin" / "python"), str(SCRIPT)
        node = node_host(wanted.packages, folder)
        failed = asyncio.run(compare(python, SCENARIOS, wanted.names))
        return failed | (asyncio.run(compare(node, NODE_SCENARIOS, wanted.names)) if node else 0)


if __name__ == "__main__":
    sys.exit(main())
