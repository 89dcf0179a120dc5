"""Shell lines of a body run in order, within their limits; rules of a file never cover everything."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.extensions import skills
from engine.extensions.skills import body_of, read_asked_rules, with_outputs, wrap_body
from engine.ports.extensions import Invocable, InvocableKind, InvocableOrigin
from tests.support.engine import until
from tests.support.program import alive, mark
from tools.contract import UNCONFINED, ToolInputError
from tools.process.start import Processes, ProcessSettings, start_processes


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    started = await start_processes(ProcessSettings())
    yield started
    await started.close()


def one(body: str = "", rules: tuple[str, ...] = (), origin: InvocableOrigin = InvocableOrigin.PROJECT) -> Invocable:
    path = Path("/p/.claude/skills/a/SKILL.md")
    return Invocable("a", "", body, InvocableKind.SKILL, origin, path, "0", allowed_tools=rules)


async def run(processes: Processes, folder: Path, text: str, arguments: str = "") -> str:
    body = body_of(one(text), arguments, "c")
    return await with_outputs(body, processes.runner, folder, [UNCONFINED] * len(body.lines))


async def test_each_line_is_replaced_by_its_output(processes: Processes, tmp_path: Path) -> None:
    text = "Now:\n!`echo a; pwd`\n\n```!\nprintf 'b\\n'\n```\nend"
    assert await run(processes, tmp_path, text) == f"Now:\na\n{tmp_path}\n\nb\nend"


async def test_an_argument_is_one_word_of_a_line(processes: Processes, tmp_path: Path) -> None:
    found = await run(processes, tmp_path, "!`printf '%s|' $ARGUMENTS $0`", "'$(touch x)' `touch y`;touch z")
    assert found == "$(touch x)|`touch|y`;touch|z|$(touch x)|"
    assert not {*await asyncio.to_thread(os.listdir, tmp_path)}


async def test_a_failing_line_says_its_exit_code(processes: Processes, tmp_path: Path) -> None:
    assert await run(processes, tmp_path, "!`echo no; exit 3`") == "no\n[exit code 3]"


async def test_a_line_is_ended_at_its_limit_and_its_output_is_cut(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "LINE_SECONDS", 0.5)
    assert (await run(processes, tmp_path, "!`echo a; sleep 60`")).startswith("a\n[timed out after 0.5 s]")
    long = await run(processes, tmp_path, "!`head -c 1000000 /dev/zero | tr '\\0' x`")
    assert len(long) < 20_000
    assert "left out" in long


async def test_cancelling_ends_the_tree_of_a_line(processes: Processes, tmp_path: Path) -> None:
    marked = mark()
    task = asyncio.create_task(run(processes, tmp_path, f"!`setsid sleep {marked} & sleep {marked}`"))
    await until(lambda: len(alive(marked)) >= 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(marked) == []


def test_rules_are_native_and_those_for_everything_are_refused() -> None:
    found = read_asked_rules(one(rules=("Bash(git log:*)", "Read", "Bash", "bash(sh *)", "mcp__db__*", "Edit(src/*)")))
    assert [str(rule) for rule in found.rules] == [
        "bash(git log *)",
        "read_file(*)",
        "patch(src/*)",
        "write_file(src/*)",
    ]
    assert [line.partition(":")[0] for line in found.refused] == ["Bash", "bash(sh *)", "mcp__db__*"]
    users = read_asked_rules(one(rules=("mcp__db__*",), origin=InvocableOrigin.USER))
    assert [str(rule) for rule in users.rules] == ["mcp__db__*(*)"]


def test_a_text_names_fifty_of_the_files_of_a_skill() -> None:
    many = Invocable(
        "a", "", "Go.", InvocableKind.SKILL, InvocableOrigin.USER, Path("/s/a/SKILL.md"), "0",
        files=tuple(f"f{number:02}" for number in range(60)),
    )  # fmt: skip
    text = wrap_body(body_of(many, "", "c"), "Go.")
    assert text.splitlines()[2].endswith("f48, f49, and 10 more files")


def test_a_body_that_would_become_too_long_is_refused() -> None:
    text = one("$ARGUMENTS " * 1_000)
    assert len(str(body_of(text, "x" * 900, "c").parts[0])) > 900_000
    with pytest.raises(ToolInputError, match="repeats its arguments too often"):
        body_of(text, "x" * 100_000, "c")
