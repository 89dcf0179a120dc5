"""Bodies of skills and command files: variables, bounded shell lines, searches, and the prompt texts of extensions."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.executor.engine_settings import EngineSettings
from engine.extensions import skills
from engine.extensions.skills import (
    FROM,
    MOST_FOUND,
    MOST_SHELL_LINES,
    NONE,
    BodyShellLine,
    SkillTool,
    Values,
    body_of,
    find_skills,
    parts_of,
    read_asked_rules,
    render_body,
    with_outputs,
    wrap_body,
)
from engine.ports.extensions import ExtensionPrompt, Invocable, InvocableCatalogue, InvocableKind, InvocableOrigin
from engine.records import ConversationRecord
from tests.support.engine import StubTool, engine_harness, run_turn, until
from tests.support.program import alive, mark
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.contract import UNCONFINED, Tool, ToolContext, ToolInputError
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


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Fix $ARGUMENTS now", "12 high", "Fix 12 high now"),
        ("Fix $0 as $1, not $2", "12 high", "Fix 12 as high, not $2"),
        ("Fix $ARGUMENTS[1]", '12 "very high"', "Fix very high"),
        ("Fix it.", "12 high", "Fix it.\n\nARGUMENTS: 12 high"),
        ("Fix it.", "  ", "Fix it."),
        ("$0 $1", "$1 x", "$1 x"),
        ("$ARGUMENTSX costs $12000", "a", "$ARGUMENTSX costs $12000\n\nARGUMENTS: a"),
        ("Look in ${CLAUDE_SKILL_DIR}/a and ${PHOENIX_SKILL_DIR}/b, ${HOME}", "", "Look in /s/a and /s/b, ${HOME}"),
        ("It's $0", "it's", "It's it's"),
    ],
)
def test_variables_are_replaced_once(body: str, arguments: str, text: str) -> None:
    assert render_body(body, Values(arguments, {"SKILL_DIR": "/s"})) == (text,)


def test_shell_lines_are_told_from_text_and_from_other_code() -> None:
    body = "State: !`git status`\n```!\nls\npwd\n```\n```sh\n!`rm -rf /`\n```\nx!`no`\n~~~!\nls"
    assert parts_of(body) == (
        "State: ",
        BodyShellLine("git status"),
        "\n",
        BodyShellLine("ls\npwd"),
        "\n```sh\n!`rm -rf /`\n```\nx!`no`\n~~~!\nls",
    )


def test_an_argument_reaches_a_shell_line_as_one_word_only() -> None:
    hostile = "'; touch /tmp/x; $(id) `id`\" | cat"
    (_, line) = render_body("Run !`echo $ARGUMENTS`", Values(shlex.quote(hostile)))
    assert isinstance(line, BodyShellLine)
    shell = subprocess.run(["bash", "-c", line.command], capture_output=True, text=True, check=True)
    assert shell.stdout == f"{hostile}\n"


@given(words=st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=20)))
def test_any_words_come_through_a_shell_unchanged(words: list[str]) -> None:
    (line,) = render_body("```!\nprintf '%s\\0' $ARGUMENTS\n```", Values(shlex.join(words)))[:1]
    assert isinstance(line, BodyShellLine)
    assert shlex.split(line.command)[2:] == words


def test_a_shell_line_from_an_argument_is_text() -> None:
    assert render_body("Say $0", Values("'!`id`'")) == ("Say !`id`",)


def test_shell_lines_beyond_the_limit_stay_text() -> None:
    parts = parts_of(" !`a`" * (MOST_SHELL_LINES + 5))
    assert sum(isinstance(part, BodyShellLine) for part in parts) == MOST_SHELL_LINES
    assert parts[-1] == " !`a`" * 5


@given(body=st.text(st.sampled_from("!`$~\n ARGUMENTS[0]{}_x\\'\""), max_size=300), arguments=st.text(max_size=60))
def test_any_body_and_any_arguments_are_rendered(body: str, arguments: str) -> None:
    plain = "".join(part if isinstance(part, str) else part.command for part in parts_of(body))
    assert len(plain) <= len(body) + 3
    assert all(part for part in render_body(body, Values(arguments)))


def test_a_hostile_body_takes_no_time_that_grows_with_its_square() -> None:
    for piece in ("!`", "$ARGUMENTS[", "```!\n", "$", "~~~", "${A"):
        assert parts_of(piece * (64 * 1024 // len(piece)))


def test_named_arguments_are_those_that_the_file_names() -> None:
    values = Values("1.2 'next week'", argument_names=("version", "time"))
    assert render_body("Tag $version at $time, $other and $versions.\n!`tag $time`", values) == (
        "Tag 1.2 at next week, $other and $versions.\n",
        BodyShellLine("tag 'next week'"),
    )


def skill(name: str, description: str = "", *, for_models: bool = True) -> Invocable:
    path = Path("/skills") / name / "SKILL.md"
    return Invocable(
        name, description, "Body.", InvocableKind.SKILL, InvocableOrigin.USER, path, "d", for_models=for_models
    )


def tool_with(number: int) -> SkillTool:
    skills = tuple(skill(f"s{place:03}", f"Does thing {place}.") for place in range(number))
    unused: Any = None
    return SkillTool(InvocableCatalogue(skills), unused, "c")


def test_words_of_names_come_before_words_of_descriptions() -> None:
    skills = [
        skill("forms", "Fills PDF forms."),
        skill("pdf", "Reads documents."),
        skill("web", "Browses."),
        skill("secret", "PDF forms of the user.", for_models=False),
    ]
    assert find_skills(skills, "PDF").splitlines() == ["pdf: Reads documents.", "forms: Fills PDF forms."]
    assert find_skills(skills, "pdf forms").splitlines() == ["forms: Fills PDF forms.", "pdf: Reads documents."]
    assert find_skills(skills, "chess") == NONE


def test_a_search_is_bounded_whatever_is_asked() -> None:
    many = [skill(f"s{place:04}", "word " * 1_000) for place in range(2_000)]
    lines = find_skills(many, "word " * 100_000).splitlines()
    assert len(lines) == MOST_FOUND + 1
    assert max(map(len, lines)) <= 300
    assert lines[-1] == "and 1990 more; use more words"


@pytest.mark.parametrize(("number", "can"), [(FROM - 1, False), (FROM, True)])
def test_the_schema_has_a_search_from_a_number_of_skills(number: int, can: bool) -> None:
    schema: Any = tool_with(number).spec.input_schema
    assert ("search" in schema["properties"]) is can
    assert schema.get("required", []) == ([] if can else ["skill"])


async def test_a_search_loads_nothing_and_a_name_counts_before_it(tmp_path: Path) -> None:
    tool = tool_with(20)
    request = await tool.request({"search": "thing 7"}, tmp_path)
    assert (request.summary, request.loads, request.lines) == ("search: thing 7", "", ())
    context = ToolContext("c", "t", tmp_path, outside_allowed=False, report=lambda _: None)
    output = await tool.run({"search": "thing 7"}, context)
    assert output.text.startswith("s007: Does thing 7.")
    assert (await tool.request({"skill": "s001", "search": "x"}, tmp_path)).summary == "s001 (user)"
    with pytest.raises(ToolInputError):
        await tool.request({}, tmp_path)


DONE = Reply((Text("Done."),))


@dataclass
class Source:
    """Offers what the test sets."""

    offered: dict[str, Tool] = field(default_factory=dict[str, Tool])
    texts: list[ExtensionPrompt] = field(default_factory=list[ExtensionPrompt])
    later: dict[str, Tool] = field(default_factory=dict[str, Tool])
    """Offered from the first preparation on."""
    prepared: int = 0

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        return self.offered

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        return self.texts

    async def prepare(self, record: ConversationRecord) -> None:
        self.prepared += 1
        self.offered |= self.later

    def close_conversation(self, conversation_id: str) -> None:
        pass


SETTINGS = EngineSettings(auto_title=False)


async def test_a_tool_that_came_meanwhile_is_offered_with_the_next_request_and_can_be_called(tmp_path: Path) -> None:
    tool, later = StubTool("mcp__notes__add"), StubTool("mcp__notes__find")
    source = Source({"mcp__notes__add": tool})
    call = Reply((ScriptedCall("mcp__notes__add", '{"command": "x"}'),))
    async with engine_harness(tmp_path, call, DONE, DONE, settings=SETTINGS, extensions=(source,)) as harness:
        conversation = await harness.run("first")
        source.offered["mcp__notes__find"] = later
        await run_turn(conversation, "second")
        offered = [[spec.name for spec in request.tools] for request in harness.provider.requests]
    assert [names[-1] for names in offered] == ["mcp__notes__add", "mcp__notes__add", "mcp__notes__find"]
    assert tool.calls == [{"command": "x"}]
    assert source.prepared == 3


async def test_what_a_source_prepares_is_in_the_first_request(tmp_path: Path) -> None:
    source = Source(later={"mcp__notes__add": StubTool("mcp__notes__add")})
    async with engine_harness(tmp_path, DONE, settings=SETTINGS, extensions=(source,)) as harness:
        await harness.run("first")
        assert harness.provider.requests[0].tools[-1].name == "mcp__notes__add"


async def test_no_source_takes_the_name_of_a_tool_of_phoenix(tmp_path: Path) -> None:
    own, foreign = StubTool("bash"), StubTool("bash")
    call = Reply((ScriptedCall("bash", '{"command": "x"}'),))
    async with engine_harness(
        tmp_path, call, DONE, tool=own, settings=SETTINGS, extensions=(Source({"bash": foreign}),)
    ) as harness:
        await harness.run("go")
    assert (len(own.calls), len(foreign.calls)) == (1, 0)


async def test_the_texts_of_a_source_stand_behind_the_safety_section(tmp_path: Path) -> None:
    source = Source(texts=[ExtensionPrompt("Skills", "pdf: reads PDF files", "skills")])
    async with engine_harness(tmp_path, DONE, settings=SETTINGS, extensions=(source,)) as harness:
        await harness.run("go")
        said = harness.provider.requests[0].system[0]
    assert said.index("# Safety") < said.index("# Skills\npdf: reads PDF files") < said.index("# Workspace")
