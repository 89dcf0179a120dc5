"""`make mcp-servers`: reference MCP servers, none written here, called by `phoenix -p` against a scripted model.

Installs them with npm and pip in a folder that is removed afterwards; `--folder` names one that has them, with
`node_modules`, `venv` and `older`. Prints a row for each server, and what differs from the expected results.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls_all, results, says
from tests.support.loopback import serve
from tests.support.outside import folder_outside_temp

NODE_PACKAGES: Final = ("everything", "filesystem", "memory", "sequential-thinking")
PYTHON_PACKAGES: Final = ("mcp-server-fetch", "mcp-server-git", "mcp-server-time")
OLDER: Final = ("mcp-server-sqlite", "mcp<2")
"""A server that no version of the SDK from 2 on can run, in an environment of its own."""
PAGE: Final = "<html><body><h1>Loopback</h1><p>A page of the test.</p></body></html>"


class Case(Struct, frozen=True):
    """Calls of one server with words that their results must have, and words of the user's message."""

    command: tuple[str, ...]
    """`{node}`, `{python}`, `{older}` and `{cwd}` are filled in; the word behind the first is the package or module."""
    calls: tuple[tuple[str, dict[str, Any], str], ...]
    message: str = "Go"
    attached: str = ""
    """Words that the message must have beside the typed ones."""
    later: tuple[tuple[str, dict[str, Any], str], ...] = ()
    """Calls of a second run, whose server is another process."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of the definition; `{home}` is filled in."""


REMEMBERED: Final = (("search_nodes", {"query": "programs"}, "wrote programs"),)
REMEMBERS: Final = (
    (
        "create_entities",
        {"entities": [{"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}]},
        "Ada",
    ),
    *REMEMBERED,
)
CASES: Final[Mapping[str, Case]] = {
    "everything": Case(
        ("{node}", "everything", "stdio"),
        (
            ("echo", {"message": "hi there"}, "Echo: hi there"),
            ("get-sum", {"a": 2, "b": 40}, "42"),
            ("get-structured-content", {"location": "Chicago"}, "temperature"),
            ("get-annotated-message", {"messageType": "error"}, "Error"),
            ("trigger-long-running-operation", {"duration": 1, "steps": 3}, "completed"),
        ),
    ),
    "everything-prompt": Case(
        ("{node}", "everything", "stdio"), (), "/mcp__everything-prompt__args-prompt Basel", "weather in Basel"
    ),
    "everything-resource": Case(
        ("{node}", "everything", "stdio"),
        (),
        "See @everything-resource:demo://resource/static/document/architecture.md",
        "Everything Server",
    ),
    "filesystem": Case(
        ("{node}", "filesystem", "{cwd}"),
        (
            ("write_file", {"path": "{cwd}/made.txt", "content": "one line"}, "Successfully wrote"),
            ("read_text_file", {"path": "{cwd}/made.txt"}, "one line"),
            ("list_directory", {"path": "{cwd}"}, "made.txt"),
            ("read_text_file", {"path": "/etc/passwd"}, "Access denied"),
        ),
    ),
    "memory": Case(("{node}", "memory"), REMEMBERS, later=REMEMBERED),
    "memory-npx": Case(("npx", "-y", "@modelcontextprotocol/server-memory"), REMEMBERS, later=REMEMBERED),
    "memory-file": Case(
        ("{node}", "memory"), REMEMBERS, later=REMEMBERED, environment={"MEMORY_FILE_PATH": "{home}/mem/memory.jsonl"}
    ),
    "sequential-thinking": Case(
        ("{node}", "sequential-thinking"),
        (
            (
                "sequentialthinking",
                {"thought": "First.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
                "thoughtHistoryLength",
            ),
        ),
    ),
    "fetch": Case(
        ("{python}", "mcp_server_fetch", "--allow-private-ips"), (("fetch", {"url": "{page}"}, "A page of the test."),)
    ),
    "git": Case(
        ("{python}", "mcp_server_git", "--repository", "{cwd}"),
        (
            ("git_status", {"repo_path": "{cwd}"}, "Repository status"),
            ("git_log", {"repo_path": "{cwd}"}, "A first commit"),
        ),
    ),
    "time": Case(
        ("{python}", "mcp_server_time", "--local-timezone", "Europe/Zurich"),
        (
            ("get_current_time", {"timezone": "Europe/Zurich"}, "Europe/Zurich"),
            (
                "convert_time",
                {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
                "21:00",
            ),
        ),
    ),
    "sqlite": Case(
        ("{older}", "mcp-server-sqlite", "--db-path", "{cwd}/test.db"),
        (
            ("create_table", {"query": "CREATE TABLE t (x INTEGER)"}, "created"),
            ("write_query", {"query": "INSERT INTO t VALUES (7)"}, "affected_rows"),
            ("read_query", {"query": "SELECT x FROM t"}, "7"),
        ),
    ),
}


class Places(Struct, frozen=True):
    """Folder with the servers, and the address of a page."""

    folder: Path
    page: str

    def command(self, case: Case, cwd: Path) -> dict[str, Any]:
        """The definition of a server."""
        first, package, *rest = (word.replace("{cwd}", str(cwd)) for word in case.command)
        if first == "npx":
            return {"command": first, "args": [package, *rest]}
        if first == "{node}":
            script = self.folder / "node_modules/@modelcontextprotocol" / f"server-{package}/dist/index.js"
            return {"command": shutil.which("node"), "args": [str(script), *rest]}
        if first == "{older}":
            return {"command": str(self.folder / "older/bin" / package), "args": rest}
        return {"command": str(self.folder / "venv/bin/python"), "args": ["-m", package, *rest]}

    def version(self, case: Case) -> str:
        """Version of a server's package."""
        package = case.command[1]
        if case.command[0] == "npx":
            return "newest"
        if case.command[0] == "{node}":
            path = self.folder / "node_modules/@modelcontextprotocol" / f"server-{package}/package.json"
            return str(json.loads(path.read_text())["version"])
        place = self.folder / ("older" if case.command[0] == "{older}" else "venv")
        found = metadata.distributions(path=[str(one) for one in (place / "lib").glob("*/site-packages")])
        return next(one.version for one in found if one.metadata["Name"] == package.replace("_", "-"))


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """The value with `{cwd}` and `{page}` filled in."""
    if isinstance(value, str):
        for name, text in words.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, dict):
        return {key: filled(one, words) for key, one in value.items()}
    return value


def prepare(cwd: Path) -> None:
    """Make the folder a repository with one commit."""
    (cwd / "README.md").write_text("# Test\n")
    git = ["git", "-c", "user.name=Test", "-c", "user.email=t@example.com", "-C", str(cwd)]
    for words in (["init", "-q"], ["add", "README.md"], ["commit", "-q", "-m", "A first commit"]):
        subprocess.run([*git, *words], check=True)


async def differences(places: Places, name: str, case: Case) -> list[str]:
    """Differences of one server from what is expected, in a fresh home folder and in the usual sandbox."""
    with folder_outside_temp() as folder:
        (folder / "work").mkdir()
        (folder / "home" / "mem").mkdir(parents=True)
        prepare(folder / "work")
        wrong = await differences_of_run(places, folder, name, case)
        if case.later and not wrong:
            later = replace(case, calls=case.later)
            wrong = [f"in a second run: {one}" for one in await differences_of_run(places, folder, name, later)]
        return wrong


async def differences_of_run(places: Places, folder: Path, name: str, case: Case) -> list[str]:
    """Differences of one run of Phoenix, with a server of its own."""
    wanted = [(f"mcp__{name}__{tool}", f"toolu_{at}", args) for at, (tool, args, _) in enumerate(case.calls)]
    words = {"cwd": str((folder / "work").resolve()), "page": places.page, "home": str(folder / "home")}
    asked = [(tool, at, filled(args, words)) for tool, at, args in wanted]
    replies = (calls_all(*asked), says("Done.")) if asked else (says("Done."),)
    async with serve(*replies) as server:
        phoenix = with_claude(folder, server.url, PHOENIX_SANDBOX="", PHOENIX_HOME=str(folder / "phoenix"))
        definition = places.command(case, phoenix.cwd) | {
            "env": filled(dict(case.environment), words),
            "required": True,  # npx installs for longer than a run waits otherwise
        }
        ran = await run(phoenix, json.dumps({"mcpServers": {name: definition}}), case.message)
        if ran:
            return ran
        first = json.dumps(server.requests[0].json["messages"], ensure_ascii=False)
        found = results(server.requests[1]) if asked else []
    texts = [json.dumps(one["content"], ensure_ascii=False) for one in found]
    pairs = zip(case.calls, texts, strict=True)
    wrong = [f"{tool}: {text[:200]}" for (tool, _, expected), text in pairs if expected not in text]
    return wrong if case.attached in first else [*wrong, f"the message lacks {case.attached!r}: {first[-400:]}"]


async def run(phoenix: Phoenix, given: str, message: str) -> list[str]:
    """Run Phoenix once; what failed."""
    ran = await phoenix.run("-p", "--permission-mode", "auto", "--mcp-config", given, message)
    return [] if (ran.code, ran.out.strip()) == (0, "Done.") else [f"exit {ran.code}: {ran.out} {ran.err}"]


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and says nothing about it."""

    def log_message(self, *_: object) -> None:
        """Print nothing between the rows."""


@contextmanager
def page() -> Iterator[str]:
    """Address of a page on loopback."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "page.html").write_text(PAGE)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/page.html"
        finally:
            server.shutdown()


def install(folder: Path) -> None:
    """Install all servers with their usual clients."""
    names = [f"@modelcontextprotocol/server-{name}" for name in NODE_PACKAGES]
    npm = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([*npm, *names], check=True, stdout=subprocess.DEVNULL)
    for name, packages in (("venv", PYTHON_PACKAGES), ("older", OLDER)):
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        pip = [str(folder / name / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)


async def compare(places: Places, names: Sequence[str]) -> int:
    """1 where a server differs."""
    failed = 0
    for name in names or CASES:
        case = CASES[name]
        wrong = await differences(places, name, case)
        failed |= bool(wrong)
        what = ", ".join(tool for tool, *_ in case.calls) or case.message
        outcome = "; ".join(wrong) or "as expected"
        sys.stdout.write(f"{name} {places.version(case)}: {what}: {outcome}\n")
        sys.stdout.flush()
    return failed


def main() -> int:
    """Every server, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default="")
    parser.add_argument("names", nargs="*")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, page() as address:
        folder = Path(wanted.folder or made)
        if not wanted.folder and any(CASES[name].command[0] != "npx" for name in wanted.names or CASES):
            install(folder)
        return asyncio.run(compare(Places(folder, address), wanted.names))


if __name__ == "__main__":
    sys.exit(main())
