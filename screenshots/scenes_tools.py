"""Scenes of tools: shell lines, errors after an edit, a web search; models; a git worktree in the list."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from phoenix_tui.models.offers import FILE_NAME
from phoenix_tui.wiring.edit_services import FILE, AllowedFolders
from screenshots.dialogue import READS, does, offers, says
from screenshots.scenes_extending import Scene, in_sizes
from screenshots.studio import Studio, screen
from tests.support.git_repositories import commit
from tests.support.journeys import calls
from tests.support.loopback import serve
from tests.support.program import ESC
from tests.support.web_searching import search_reply
from tools.git.repository import FOLDER

MODELS: Final = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-sonnet-4-5")
PREFERRED: Final = {
    "favourites": ["anthropic/claude-opus-5-5", "anthropic/claude-haiku-5-5"],
    "recent": ["anthropic/claude-sonnet-5-5", "openai/gpt-5-mini"],
}
CTRL_L, TYPES = b"\x0c", b"\x1d"
CHECK: Final = r"""printf '\033[32m✓\033[m %s\n' 'doubles the pause' 'keeps the order' 'reads a header once'
printf '\033[31m✗\033[m %s\n' 'never waits longer than the limit'
printf '\033[1;41;97m 1 failed \033[m \033[32m3 passed\033[m in 0.4 s\n'
exit 1
"""
DEPLOY: Final = r"""printf '\033[36mrelay 1.4.0\033[m is built and signed.\n'
printf 'Deploy it to \033[1mproduction\033[m? [y/N] '
read -r answer
"""
JITTER: Final = [
    {
        "op": "replace",
        "old": "return base * 2**attempt",
        "new": "return min(LIMIT, base * 2**attempt) + random.uniform(0, base)",
    }
]
PAGES: Final = (
    ("https://docs.python.org/3/library/sqlite3.html", "sqlite3: DB-API 2.0 interface for SQLite databases"),
    ("https://www.sqlite.org/wal.html", "Write-Ahead Logging"),
    ("https://example.org/blog/2026/why-our-queue-moved-to-sqlite-and-stayed-there", "Why our queue moved to SQLite"),
)


async def shell_lines(place: Studio, name: str, columns: int, rows: int) -> None:
    """A line in colours that failed, one in the folder where it ended, one that asks and is typed into."""
    phoenix = place.phoenix()
    (phoenix.cwd / "check.sh").write_text(CHECK, "utf-8")
    (phoenix.cwd / "deploy.sh").write_text(DEPLOY, "utf-8")
    async with screen(phoenix, "-m", "demo/guide", columns=columns, rows=rows) as running:
        await running.send("!!cd tests && sh ../check.sh")
        await running.shows("3 passed", "ready")
        await running.send("!!git status --short")
        await running.shows("deploy.sh", "ready")
        await place.take(f"shell-{name}", running)
        await running.send("!!sh ../deploy.sh")
        await running.shows("[y/N]")
        running.type(TYPES)
        await running.shows("keys go to the program")
        running.type("ye")
        await running.shows("[y/N] ye")
        await place.take(f"shell-{name}-typing", running)


async def checks(place: Studio, name: str, columns: int, rows: int) -> None:
    """An edit with an error that ruff found, and the list of servers; its search path is short: few are found."""
    edit = does("I add a jitter.", ("patch", "toolu_d", {"path": "relay/backoff.py", "edits": JITTER}))
    async with serve(READS, edit, says("The import is missing; I add it next.")) as server:
        phoenix = place.phoenix(server.url)
        program = Path(sys.executable).parent / "ruff"
        (phoenix.home / "config.toml").write_text(f'[lsp.ruff]\ncommand = ["{program}", "server"]\n', "utf-8")
        phoenix = replace(phoenix, extra={**phoenix.extra, "PATH": "/usr/bin:/bin"})
        AllowedFolders(phoenix.home / FILE).answer(phoenix.cwd, allowed=True)
        async with screen(phoenix, "--permission-mode", "auto", columns=columns, rows=rows) as running:
            await running.send("Add a jitter")
            await running.shows("Undefined name", "I add it next.", "ready")
            await asyncio.sleep(1)  # its colours come behind the diff
            await place.take(f"checks-{name}", running)
            await running.send("/lsp")
            await running.shows("Language servers", "ruff")
            await place.take(f"checks-{name}-servers", running)


async def web(place: Studio, name: str, columns: int, rows: int) -> None:
    """A search by the model's own server, and its row opened."""
    asks = calls("web_search", query="SQLite as a queue for webhooks, write-ahead logging, several writers")
    found = search_reply(*PAGES, said="SQLite takes one writer at a time; with a write-ahead log, readers go on.")
    answer = says("One writer at a time is enough for the relay; readers go on meanwhile.")
    async with (
        serve(asks, found, answer) as server,
        screen(place.phoenix(server.url), "--permission-mode", "auto", columns=columns, rows=rows) as running,
    ):
        await running.send("Is SQLite good enough for our queue?")
        await running.shows("is enough for the relay", "ready")
        await place.take(f"web-{name}", running)
        running.type(b"\x0f")
        await running.shows("sqlite.org")
        await place.take(f"web-{name}-open", running)


async def models(place: Studio, name: str, columns: int, rows: int) -> None:
    """The list of models: favourites, recent ones, each provider."""
    async with serve(offers(*MODELS)) as server:
        phoenix = place.phoenix(server.url)
        (phoenix.home / FILE_NAME).write_text(json.dumps(PREFERRED), "utf-8")
        async with screen(phoenix, columns=columns, rows=rows) as running:
            await running.send("/model")
            await running.shows("Favourites", "Recent", "claude-sonnet-4-5")
            await place.take(f"models-{name}", running)


async def worktrees(place: Studio, name: str, columns: int, rows: int) -> None:
    """Two conversations in the list: one in the repository, one in a worktree with a commit of its own."""
    async with serve(says("It doubles the wait after each try."), says("The back-off now stops at LIMIT.")) as server:
        phoenix = place.phoenix(server.url)
        tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "limit"
        async with screen(phoenix, columns=columns, rows=rows) as running:
            await running.send("Explain the back-off")
            await running.shows("after each try.", "ready")
            await running.send("/worktree limit")
            await running.until(lambda: (tree / "README.md").exists(), "the worktree")
            await running.shows("New conversation · ", "(phoenix/limit)")
            await running.send("Stop at the limit")
            await running.shows("stops at LIMIT.", "ready")
            commit(tree, "limit.txt", "30\n")
            await running.send("/worktree list")
            await running.shows("1 ahead of main")
            await place.take(f"worktree-{name}-list", running)
            running.type(ESC)
            await running.lacks("1 ahead of main")
            running.type(CTRL_L)
            await running.shows("? keys")
            running.type("z")
            await running.shows("/limit +1)")
            await place.take(f"worktree-{name}", running)


SCENES: Final[dict[str, Scene]] = {
    **in_sizes(shell_lines, "shell"),
    **in_sizes(checks, "checks"),
    **in_sizes(web, "web"),
    **in_sizes(models, "models"),
    **in_sizes(worktrees, "worktree"),
}
