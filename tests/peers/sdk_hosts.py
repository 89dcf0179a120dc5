"""`make sdk-hosts`: the official agent SDK for Python drives Phoenix by its path, against servers on loopback.

Installs the SDK from its source archive (its wheel brings a program of hundreds of megabytes along) in a folder that is
removed afterwards; `--venv` names an environment that has it already. Prints what differs from the expected results.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.cli import ROOT, with_claude
from tests.support.loopback import Answer, serve
from tests.support.loopback_agents import calls, never_ends, says
from tests.support.loopback_anthropic import refuses

PACKAGE: Final = "claude-agent-sdk"
SCRIPT: Final = Path(__file__).with_name("sdk_host_script.py")
RUNS: Final = calls("bash", {"command": "echo one > made.txt"})
DONE: Final = says("Done.")
SUCCESS: Final = {"result": "Done.", "subtype": "success", "is_error": False}
SCENARIOS: Final[Mapping[str, tuple[tuple[Answer, ...], dict[str, Any]]]] = {
    "query": ((DONE,), SUCCESS),
    "partials": ((DONE,), SUCCESS | {"has_partials": True}),
    "permission": ((RUNS, DONE), SUCCESS | {"asked": [["Bash", "echo one > made.txt"]], "made": "changed\n"}),
    "refusal": ((RUNS, DONE), {"raised": "error_during_execution", "made": None}),
    "hooks": ((RUNS, DONE), SUCCESS | {"calls": ["PreToolUse Bash", "PostToolUse Bash"], "made": "one\n"}),
    "server": ((calls("mcp__calc__add", {"a": 2, "b": 3}), DONE), SUCCESS | {"args": {"a": 2, "b": 3}}),
    "structured": (
        (calls("submit_structured", {"city": "Basel"}), DONE),
        {"structured": {"city": "Basel"}, "subtype": "success"},
    ),
    "agents": ((DONE,), SUCCESS),
    "failure": ((refuses(401, "authentication_error", "invalid x-api-key"),), {"raised": "success"}),
    "client": ((says("One."), DONE), SUCCESS | {"first": "One.", "model": "claude-haiku-5-5"}),
    "interruption": ((never_ends, DONE), SUCCESS | {"stopped": "aborted_streaming"}),
}


async def differences(python: str, name: str) -> list[str]:
    """Differences of one scenario from what is expected."""
    answers, expected = SCENARIOS[name]
    with tempfile.TemporaryDirectory() as folder:
        async with serve(*answers) as server:
            phoenix = with_claude(Path(folder), server.url)
            program = Path(folder) / "phoenix"
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m phoenix_tui "$@"\n')
            program.chmod(0o700)
            own = {name: value for name, value in os.environ.items() if name not in phoenix.environment}
            process = await asyncio.create_subprocess_exec(
                *(python, str(SCRIPT), name, str(program), str(phoenix.cwd)),
                env=own | phoenix.environment | {"PYTHONPATH": str(ROOT)},
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


async def compare(python: str, names: list[str]) -> int:
    """1 where a scenario differs."""
    failed = 0
    for name in names or SCENARIOS:
        wrong = await differences(python, name)
        failed |= bool(wrong)
        sys.stdout.write("\n".join(wrong or [f"{name}: as expected"]) + "\n")
    return failed


def main() -> int:
    """Every scenario, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", default="")
    parser.add_argument("names", nargs="*")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(wanted.venv or folder)
        if not wanted.venv:
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
            pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-binary", PACKAGE, PACKAGE], check=True)
        return asyncio.run(compare(str(venv / "bin" / "python"), wanted.names))


if __name__ == "__main__":
    sys.exit(main())
