"""`make sdk-parsers`: the official parsers of Claude's agent SDKs read every line that `phoenix -p` prints.

Installs both packages in a folder that is removed afterwards (Python from its source archive: the wheel brings a
program of 200 MB along), records every run of `tests/support/sdk_runs.py`, and lets each SDK read the lines as those of
its own program. `--python` and `--npm` do one of them; `--types` also shows where lines differ from the types of npm.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.sdk_runs import RUNS

PYTHON_PACKAGE = "claude-agent-sdk"
NPM_PACKAGES = ("@anthropic-ai/claude-agent-sdk", "zod")
READ_PYTHON = """
import collections, json, sys
from claude_agent_sdk import __version__
from claude_agent_sdk._internal.message_parser import parse_message

failed = 0
for name, path in json.load(open(sys.argv[1])).items():
    kinds = collections.Counter()
    for number, line in enumerate(open(path, newline="\\n"), 1):
        try:
            kinds[type(parse_message(json.loads(line))).__name__] += 1
        except Exception as error:
            failed += 1
            print(f"{name}, line {number}: {error}")
    print(f"python {__version__}  {name}: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
sys.exit(bool(failed))
"""
REPLAYS = """
const fs = require("fs");
let asked = "";
process.stdin.on("data", (piece) => {
  asked += piece;
  for (let end; (end = asked.indexOf("\\n")) >= 0; asked = asked.slice(end + 1)) {
    const line = JSON.parse(asked.slice(0, end));
    if (line.type === "control_request") {
      const response = { subtype: "success", request_id: line.request_id, response: { commands: [], models: [] } };
      console.log(JSON.stringify({ type: "control_response", response }));
    }
    if (line.type === "user") {
      process.stdout.write(fs.readFileSync(process.env.LINES), () => process.exit(0));
    }
  }
});
"""
"""Replacement of the program that the npm package starts: answers its handshake, then prints a recorded run."""
READ_NPM = """
import { query } from "@anthropic-ai/claude-agent-sdk";
import fs from "fs";
const { version } = JSON.parse(fs.readFileSync("node_modules/@anthropic-ai/claude-agent-sdk/package.json"));
let failed = 0;
for (const [name, path] of Object.entries(JSON.parse(fs.readFileSync(process.argv[2])))) {
  const want = fs.readFileSync(path, "utf8").trimEnd().split("\\n").length;
  const kinds = {};
  let result, seen = 0;
  try {
    const env = { ...process.env, LINES: path };
    const options = { pathToClaudeCodeExecutable: process.argv[3], env, includePartialMessages: true };
    for await (const message of query({ prompt: "go", options })) {
      kinds[message.type] = (kinds[message.type] || 0) + 1;
      seen += 1;
      if (message.type === "result") result = message;
    }
  } catch (error) {
    if (!result?.is_error) { failed += 1; console.log(`${name}: ${error}`); }
  }
  if (seen !== want || !result) { failed += 1; console.log(`${name}: ${seen} of ${want} lines were read`); }
  const told = Object.entries(kinds).map(([kind, count]) => `${count} ${kind}`);
  console.log(`npm ${version}  ${name}: ${told.join(", ")}`);
}
process.exit(failed ? 1 : 0);
"""


async def record(folder: Path) -> Path:
    """The lines of every run in files below `folder`; the index of them by name is returned."""
    index: dict[str, str] = {}
    for number, (name, run) in enumerate(RUNS.items()):
        own = folder / f"run{number}"
        own.mkdir()
        lines = own / "lines.jsonl"
        lines.write_bytes((await run(own)).out.encode())
        index[name] = str(lines)
    (folder / "index.json").write_text(json.dumps(index))
    return folder / "index.json"


def read_with_python(folder: Path, index: Path) -> int:
    """Result of the Python package: 0 when it read every line."""
    venv = folder / "venv"
    _do([sys.executable, "-m", "venv", str(venv)])
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _do([*pip, "--no-binary", PYTHON_PACKAGE, PYTHON_PACKAGE])
    return subprocess.run([str(venv / "bin" / "python"), "-c", READ_PYTHON, str(index)], check=False).returncode


def read_with_npm(folder: Path, index: Path, *, types: bool) -> int:
    """Result of the npm package: 0 when it read every line."""
    npm = shutil.which("npm")
    if npm is None:
        sys.stdout.write("npm is not installed: its package was not tried.\n")
        return 0
    own = folder / "npm"
    own.mkdir()
    (own / "package.json").write_text('{"private": true}')
    more = ("typescript@5", "@types/node") if types else ()
    _do([npm, "install", "--silent", "--ignore-scripts", "--omit=optional", *NPM_PACKAGES, *more], own)
    (own / "replay.js").write_text(REPLAYS)
    (own / "read.mjs").write_text(READ_NPM)
    if types:
        _show_types(own, index)
    return subprocess.run(["node", "read.mjs", str(index), "./replay.js"], cwd=own, check=False).returncode


def _show_types(own: Path, index: Path) -> None:
    """Differences of lines from the declared types: cost null where it is unknown, and subtypes of Phoenix's own."""
    lines = [line for path in json.loads(index.read_text()).values() for line in Path(path).read_text().split("\n")]
    source = 'import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";\n'
    source += "".join(f"const line{number}: SDKMessage = {line};\n" for number, line in enumerate(lines) if line)
    (own / "lines.ts").write_text(source + "export {};\n")
    flags = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext"]
    subprocess.run(["npx", "tsc", *flags, "lines.ts"], cwd=own, check=False)


def _do(command: Sequence[str], cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True)


def main() -> int:
    """Both, unless one is named; 1 where a line was not read."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("python", "npm", "types"):
        parser.add_argument(f"--{name}", action="store_true")
    wanted = parser.parse_args()
    both = not (wanted.python or wanted.npm)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        index = asyncio.run(record(folder))
        codes = [read_with_python(folder, index)] if both or wanted.python else []
        codes += [read_with_npm(folder, index, types=wanted.types)] if both or wanted.npm else []
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
