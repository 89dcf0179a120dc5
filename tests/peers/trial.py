"""`make trial DIR=FOLDER`: skills and hook scripts that others wrote, unchanged, in the real program.

FOLDER has `skills/NAME/SKILL.md` and `hooks/NAME`, either or both. The model is scripted and on loopback. A skill is
loaded by the model and called by the user, and its scripts are started with `--help`; with `--screen` it is called in a
terminal too. A hook is asked at every event of a run with a command, a written, a read and a changed file. For a hook
with needs of its own, `hooks/NAME` is a folder with a `trial.json`:

    {"hooks": {EVENT: [...]}, "files": {PATH: TEXT}, "prompt": TEXT, "calls": [[TOOL, {...}], ...],
     "answers": [TEXT, ...], "shows": [TEXT, ...], "fails": true}

`$TRIAL` in its commands is that folder, `calls` and `answers` are what the model does, `shows` are texts that the model
must read, or the run must print; with `fails` one of its runs ends as a failure. Prints a table; 1 where a row fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

from engine.ports.extensions import HookEvent
from tests.peers.rows import Row, heading, judged, told
from tests.support.cli import Phoenix, Ran, with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import Answer, Loopback, serve
from tests.support.program import ENTER, program

AUTO: Final = ("--trust", "--permission-mode", "auto")
STREAM: Final = ("--output-format", "stream-json", "--include-hook-events")
DONE: Final = "Everything is done."
INTERPRETERS: Final = {".py": "python3", ".sh": "bash", ".js": "node", ".cjs": "node", ".mjs": "node"}
MOST_SCRIPTS: Final = 6
CALLS: Final[list[list[Any]]] = [
    ["bash", {"command": "ls"}],
    ["write_file", {"path": "note.txt", "content": "one\n"}],
    ["read_file", {"path": "note.txt"}],
    ["patch", {"path": "note.txt", "edits": [{"op": "replace", "old": "one", "new": "two"}]}],
]


@asynccontextmanager
async def work(answers: Sequence[Answer]) -> AsyncGenerator[tuple[Phoenix, Loopback]]:
    """A fresh installation in the sandbox that is usual, and the server of its model."""
    with tempfile.TemporaryDirectory() as folder:
        async with serve(*answers) as server:
            yield with_claude(Path(folder), server.url, PHOENIX_SANDBOX=""), server


def bodies(server: Loopback) -> list[dict[str, Any]]:
    """Requests for an answer, in their order."""
    return [cast("dict[str, Any]", one.json) for one in server.requests if one.method == "POST"]


def texts(value: Any) -> Iterator[str]:
    """Every text in a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def has(value: Any, text: str) -> bool:
    """True where a text is in one of those of a request."""
    return any(text in one for one in texts(value))


def last_line(skill: Path) -> str:
    """The last line of a skill that nothing replaces; empty where there is none."""
    lines = [line.strip() for line in (skill / "SKILL.md").read_text("utf-8-sig", "replace").splitlines()]
    return next((line for line in reversed(lines) if len(line) > 8 and not set(line) & set("$!`")), "")


def scripts_of(skill: Path) -> list[Path]:
    """The first scripts of a skill."""
    return sorted(path for path in skill.rglob("*") if path.suffix in INTERPRETERS)[:MOST_SCRIPTS]


async def skill_rows(skill: Path, *, on_screen: bool) -> AsyncGenerator[Row]:
    """Rows of one skill."""
    name, tail = skill.name, last_line(skill)
    scripts = scripts_of(skill)
    answers = [calls("skill", skill=name), *(_help(name, skill, path) for path in scripts), says(DONE)]
    async with work(answers) as (phoenix, server):
        _install(skill, phoenix)
        ran = await phoenix.run("-p", *AUTO, "--output-format", "json", "Begin.")
        asked = bodies(server)
        yield judged("in the list of the model", f"{name}:", bool(asked) and has(asked[0]["system"], f"{name}:"))
        loaded = len(asked) > 1 and has(asked[1]["messages"][-1], tail)
        yield judged("loaded by the model", _said(ran), loaded and ran.code == 0)
        for place, path in enumerate(scripts, 2):
            result = "\n".join(texts(asked[place]["messages"][-1]["content"])) if len(asked) > place else "no answer"
            yield _script_row(path.relative_to(skill), result)
    async with work([says(DONE)]) as (phoenix, server):
        _install(skill, phoenix)
        ran = await phoenix.run("-p", *AUTO, "--output-format", "json", f"/{name} first second")
        asked = bodies(server)
        called = bool(asked) and has(asked[0]["messages"], tail) and has(asked[0]["messages"], "first second")
        yield judged("called by the user", _said(ran), called and ran.code == 0)
    if on_screen:
        yield await _screen_row(skill, tail)


def _install(skill: Path, phoenix: Phoenix) -> None:
    shutil.copytree(skill, phoenix.cwd / ".claude" / "skills" / skill.name, symlinks=True)


def _help(name: str, skill: Path, path: Path) -> Answer:
    place = Path(".claude") / "skills" / name / path.relative_to(skill)
    return calls("bash", command=f"{INTERPRETERS[path.suffix]} '{place}' --help 2>&1 </dev/null | tail -3")


def _script_row(path: Path, result: str) -> Row:
    missing = "No module named" in result or "Cannot find" in result or "command not found" in result
    started = not any(text in result for text in ("Permission denied", "can't open file", "no answer"))
    return Row(f"starts {path}", result, "" if started else "not started", "its library is missing" if missing else "")


async def _screen_row(skill: Path, tail: str) -> Row:
    async with work([says(DONE)]) as (phoenix, server):
        _install(skill, phoenix)
        async with program(phoenix, *AUTO, columns=120, rows=40) as running:
            await running.ready()
            running.type(f"/{skill.name} first second")
            await running.shows("first second")
            running.type(ENTER)
            await running.until(lambda: DONE in running.words or "y yes" in running.words.lower(), "an answer")
            if DONE not in running.words:
                running.type("y")
                await running.shows(DONE)
            sent = has(bodies(server)[-1]["messages"], tail)
            return judged("called on the screen", running.row("first second"), sent)


async def hook_rows(hook: Path, *, on_screen: bool) -> AsyncGenerator[Row]:
    """Rows of one hook."""
    plan = _plan(hook)
    answers = [calls(name, f"toolu_{place}", **given) for place, (name, given) in enumerate(plan["calls"])]
    answers += [says(text) for text in plan["answers"]]
    async with work(answers) as (phoenix, server):
        _equip(hook, plan, phoenix)
        ran = await phoenix.run("-p", *AUTO, *STREAM, plan["prompt"])
        found = _outcomes(ran)
        failed = any(one.endswith(("error", "timeout")) for one in found)
        yield judged("runs", ", ".join(found) or _said(ran), bool(found) and failed is plan["fails"])
        read = [ran.out, ran.err, *texts([body["messages"] for body in bodies(server)])]
        for text in plan["shows"]:
            yield judged(f"shows {text!r}", "", any(text in one for one in read))
    if on_screen:
        async with work(answers) as (phoenix, server):
            _equip(hook, plan, phoenix)
            async with program(phoenix, *AUTO, columns=120, rows=40) as running:
                await running.ready()
                running.type(plan["prompt"])
                await running.shows(plan["prompt"])
                running.type(ENTER)
                last = plan["answers"][-1] if plan["answers"] else plan["shows"][0]
                await running.shows(last)
            read = [running.text, *texts([body["messages"] for body in bodies(server)])]
            wanted = [text for text in plan["shows"] if any(text in one for one in read)]
            yield judged("on the screen", ", ".join(wanted) or last, bool(wanted) or not plan["shows"])


def _is_hook(path: Path) -> bool:
    """True for a script, and for a folder that says how it is run; scripts leave records beside themselves."""
    return (path / "trial.json").exists() or (path.is_file() and path.suffix in INTERPRETERS)


def _plan(hook: Path) -> dict[str, Any]:
    usual: dict[str, Any] = {"files": {}, "prompt": "Begin.", "calls": CALLS, "answers": [DONE]}
    usual |= {"shows": [], "fails": False}
    if hook.is_dir():
        return usual | cast("dict[str, Any]", json.loads((hook / "trial.json").read_text()))
    command = f"{INTERPRETERS.get(hook.suffix, '')} '{hook}'".strip()
    group = [{"hooks": [{"type": "command", "command": command}]}]
    return usual | {"hooks": {event.value: group for event in HookEvent}}


def _equip(hook: Path, plan: dict[str, Any], phoenix: Phoenix) -> None:
    """Write the user's hook file, and the files of the project."""
    text = json.dumps({"hooks": plan["hooks"]})
    (phoenix.home / "hooks.json").write_text(text.replace("$TRIAL", str(hook)))
    for name, content in plan["files"].items():
        path = phoenix.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def _outcomes(ran: Ran) -> list[str]:
    """Event and outcome of each run of a hook, each once."""
    lines = [json.loads(line) for line in ran.out.splitlines() if line.startswith("{")]
    ended = [line for line in lines if line.get("subtype") == "hook_response" and "hook_event" in line]
    return list(dict.fromkeys(f"{line['hook_event']} {line['outcome']}" for line in ended))


def _said(ran: Ran) -> str:
    return ran.err.strip() or ran.out.strip()[:200]


async def try_folder(folder: Path, *, on_screen: bool) -> int:
    """1 where a row is not as it must be."""
    failed = 0
    heading("what", "row", "showed")
    for skill in sorted(path.parent for path in (folder / "skills").glob("*/SKILL.md")):
        async for row in skill_rows(skill, on_screen=on_screen):
            failed |= told(row, skill.name)
    for hook in sorted(path for path in (folder / "hooks").glob("*") if _is_hook(path)):
        async for row in hook_rows(hook.resolve(), on_screen=on_screen):
            failed |= told(row, hook.name)
    return failed


def main() -> int:
    """Try all that one folder has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--screen", action="store_true", help="in a terminal too")
    wanted = parser.parse_args()
    return asyncio.run(try_folder(wanted.folder, on_screen=wanted.screen))


if __name__ == "__main__":
    sys.exit(main())
