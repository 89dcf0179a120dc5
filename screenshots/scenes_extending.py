"""Scenes of what extends Phoenix: servers of the Model Context Protocol, skills, hooks and the trust in a folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from screenshots.dialogue import runs, says
from screenshots.studio import Studio, screen
from tests.support.cli import ROOT, Phoenix
from tests.support.extended_folder import extended
from tests.support.hooked import group, script, write_hooks
from tests.support.journeys import calls
from tests.support.loopback import serve
from tests.support.program import ENTER, ESC
from tests.support.skills import skill

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
NO_PUSH: Final = (
    "#!/bin/sh\ngrep -q 'git push' || exit 0\necho 'Pushing is for the release job; open a pull request.' >&2\nexit 2\n"
)
PUSHES: Final = "git push origin main"
SKILLS: Final = (
    ("changelog", "description: Writes the changelog entry for the commits since the last tag."),
    ("release", "description: Tags and publishes a release.\ndisable-model-invocation: true"),
)


async def with_server(place: Studio, url: str) -> Phoenix:
    """The tests' server, under a name without this folder's path; its tools are known before the first request."""
    phoenix = place.phoenix(url)
    program = f"#!/bin/sh\nPYTHONPATH='{ROOT}' exec '{sys.executable}' -P -m tests.support.mcp_kinds\n"
    command = script(phoenix.home / "kinds", program)
    added = await phoenix.run("mcp", "add-json", "kinds", json.dumps({"command": command}))
    tried = await phoenix.run("mcp", "test")
    assert (added.code, tried.code) == (0, 0), added.out + tried.out
    return phoenix


async def servers(place: Studio, name: str, columns: int, rows: int) -> None:
    """The list of servers with one that is connected, its details, and its form in the dock."""
    async with serve(calls("mcp__kinds__form"), says("Hello Ada.")) as server:
        phoenix = await with_server(place, server.url)
        async with screen(phoenix, "--permission-mode", "auto", columns=columns, rows=rows) as running:
            await running.send("Ask for my name")
            await running.shows("Your name?", "Esc puts")
            await place.take(f"mcp-{name}-form", running)
            running.type("o")
            await running.shows("Enter takes your words")
            running.type("Ada\r")
            await running.shows("Hello Ada.", "ready")
            await running.send("/mcp")
            await running.shows("MCP servers", "kinds")
            await place.take(f"mcp-{name}", running)
            running.type(ENTER)
            await running.shows("Tools (25)")
            await place.take(f"mcp-{name}-details", running)


async def skills(place: Studio, name: str, columns: int, rows: int) -> None:
    """Skills of the user, and one of a folder that is not trusted yet; then what /trust shows of it."""
    phoenix = place.phoenix()
    for each, front in SKILLS:
        skill(phoenix.home / "skills", each, front)
    skill(phoenix.home / "skills", "notes").write_text("---\nname\n---\n", "utf-8")
    extended(phoenix.cwd)
    async with screen(phoenix, "-m", "demo/guide", columns=columns, rows=rows) as running:
        await running.until(lambda: "/trust" in running.text, "the notice")
        await running.send("/skills")
        await running.shows("Skills", "changelog")
        await place.take(f"skills-{name}", running)
        running.type(ESC)
        await running.lacks("changelog")
        await running.send("/trust")
        await running.shows("Extensions of this folder")
        await place.take(f"trust-{name}", running)


async def hooks(place: Studio, name: str, columns: int, rows: int) -> None:
    """A hook blocks a command; the list of hooks with their runs."""
    async with serve(runs(PUSHES), says("The hook refuses a push. I leave the branch as it is.")) as server:
        phoenix = place.phoenix(server.url)
        script(phoenix.home / "bin" / "no-push", NO_PUSH)
        script(phoenix.home / "bin" / "count_turns.py", "")
        write_hooks(
            phoenix.home / "hooks.json",
            PreToolUse=[group("~/bin/no-push", "Bash")],
            Stop=[group("python3 ~/bin/count_turns.py")],
        )
        async with screen(phoenix, "--permission-mode", "auto", columns=columns, rows=rows) as running:
            await running.send("Push the branch")
            await running.shows("I leave the branch as it is.", "ready")
            await place.take(f"hooks-{name}-blocked", running)
            await running.send("/hooks")
            await running.shows("Hooks", "PreToolUse")
            await place.take(f"hooks-{name}", running)


def in_sizes(scene: Callable[..., Awaitable[None]], name: str) -> dict[str, Scene]:
    """The scene at 80x24 and at 120x40."""
    sizes = {"80x24": (80, 24), "120x40": (120, 40)}
    return {f"{name}-{size}": partial(scene, name=size, columns=c, rows=r) for size, (c, r) in sizes.items()}


SCENES: Final[dict[str, Scene]] = {
    **in_sizes(servers, "mcp"),
    **in_sizes(skills, "skills"),
    **in_sizes(hooks, "hooks"),
}
