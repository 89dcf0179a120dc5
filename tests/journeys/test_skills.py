"""Skills from the disk to the model's request, in the real program against a server on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.extended_folder import write
from tests.support.git_repositories import empty_repository
from tests.support.journeys import calls, result_text, says
from tests.support.loopback import Seen, serve
from tests.support.program import program
from tests.support.skills import command, skill
from tests.support.waiting import typing_guard


def prompt(seen: Seen) -> str:
    system: Any = seen.json["system"]
    return "\n".join(block["text"] for block in system)


def tool_names(seen: Seen) -> list[str]:
    tools: Any = seen.json.get("tools", [])
    return [tool["name"] for tool in tools]


def with_skills(phoenix: Phoenix) -> Phoenix:
    empty_repository(phoenix.cwd)
    folder = phoenix.cwd / ".claude/skills"
    skill(folder, "pdf", "description: Reads PDF files.", "Use ${CLAUDE_SKILL_DIR}/read.py on $0.")
    write(folder / "pdf/read.py", "print('x')")
    skill(phoenix.home / "skills", "mine", "description: Of the user.", "Mine.")
    write(phoenix.home / "skills/mine/notes.txt", "the bundled notes")
    return phoenix


async def test_a_model_is_told_of_skills_loads_one_and_reads_its_files(tmp_path: Path) -> None:
    notes = tmp_path / "home/skills/mine/notes.txt"
    answers = (
        calls("skill", "toolu_1", skill="pdf", args="a.pdf"),
        calls("skill", "toolu_2", skill="pdf", args="a.pdf"),
        calls("read_file", "toolu_3", path=str(notes)),
        says("Done."),
    )
    async with serve(*answers) as server:
        phoenix = with_skills(with_claude(tmp_path, server.url))
        assert phoenix.home / "skills/mine/notes.txt" == notes
        ran = await phoenix.run("-p", "--trust", "Read it.")
    assert (ran.code, ran.out.strip()) == (0, "Done.")
    first, second, third, fourth = server.requests
    assert "# Skills\n" in prompt(first)
    assert "\nmine: Of the user.\npdf: Reads PDF files.\n" in prompt(first)
    assert tool_names(first)[-1] == "skill"
    folder = phoenix.cwd / ".claude/skills/pdf"
    assert result_text(second).splitlines()[1:] == [
        f"Base directory of this skill: {folder}",
        "Its files, to read when the text names them: read.py",
        "",
        f"Use {folder}/read.py on a.pdf.",
        "</skill>",
    ]
    assert result_text(third) == "It is already loaded, with the same text; follow it as it stands above."
    assert "the bundled notes" in result_text(fourth)
    assert {prompt(seen) for seen in server.requests} == {prompt(first)}
    assert list(json.loads((phoenix.home / "skills.json").read_text())["used"]) == ["pdf"]


async def test_an_untrusted_skill_reaches_no_request(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_skills(with_claude(tmp_path, server.url))
        ran = await phoenix.run("-p", "Hi")
    assert "1 skill left out" in ran.err
    assert "\nmine: Of the user." in prompt(server.requests[0])
    assert "pdf" not in prompt(server.requests[0])


async def test_without_skills_there_is_neither_a_section_nor_a_tool(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        await with_claude(tmp_path, server.url).run("-p", "Hi")
    assert "# Skills" not in prompt(server.requests[0])
    assert "skill" not in tool_names(server.requests[0])


async def test_a_skill_for_users_alone_is_no_models(tmp_path: Path) -> None:
    async with serve(calls("skill", skill="deploy"), says("Done.")) as server:
        phoenix = with_skills(with_claude(tmp_path, server.url))
        skill(phoenix.home / "skills", "deploy", "description: x\ndisable-model-invocation: true")
        await phoenix.run("-p", "--trust", "Go")
    assert "deploy" not in prompt(server.requests[0])
    assert result_text(server.requests[1]) == "skill: only the user loads this skill: ask for /deploy in a message"


async def test_a_skill_written_while_the_run_goes_on_is_in_the_next_request(tmp_path: Path) -> None:
    async with serve(calls("bash", command="sh add.sh"), calls("skill", skill="new"), says("Done.")) as server:
        phoenix = with_skills(with_claude(tmp_path, server.url))
        added = phoenix.home / "skills/new"
        text = "---\\ndescription: It is new.\\n---\\nNew text.\\n"
        write(phoenix.cwd / "add.sh", f"mkdir -p '{added}' && printf -- '{text}' > '{added}/SKILL.md'")
        await phoenix.run("-p", "--trust", "--permission-mode", "auto", "Go")
    assert "new: It is new." not in prompt(server.requests[0])
    assert "\nnew: It is new.\n" in prompt(server.requests[1])
    assert "New text." in result_text(server.requests[2])


LINE = "!`cat notes.txt`"


async def test_a_shell_line_passes_the_policy_of_bash_before_the_model_sees_the_text(tmp_path: Path) -> None:
    load = calls("skill", skill="notes")
    async with serve(load, says("No."), load, says("Yes."), load, says("By rule.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        skill(phoenix.home / "skills", "notes", body=f"The notes: {LINE}.")
        write(phoenix.cwd / "notes.txt", "remember\n")
        await phoenix.run("-p", "--permission-mode", "plan", "Go")
        await phoenix.run("-p", "--permission-mode", "auto", "Go")
        await phoenix.run("-p", "--permission-mode", "ask", "--allowedTools", "bash(cat *)", "Go")
    refused, run, ruled = (result_text(server.requests[place]) for place in (1, 3, 5))
    assert refused == (
        "Not loaded: its shell line `cat notes.txt` was refused. Permission mode 'plan' does not allow bash."
    )
    assert "The notes: remember." in run
    assert "The notes: remember." in ruled


async def test_nobody_can_be_asked_about_a_line_and_no_rule_of_a_skill_counts_then(tmp_path: Path) -> None:
    loads = calls("skill", skill="notes"), says("No."), calls("skill", skill="log")
    async with serve(*loads, calls("bash", "toolu_2", command="touch made"), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        skill(phoenix.home / "skills", "notes", body=LINE.replace("cat", "touch"))
        skill(phoenix.home / "skills", "log", "description: x\nallowed-tools: Bash(touch:*)", "Look.")
        await phoenix.run("-p", "--permission-mode", "ask", "Go")
        await phoenix.run("-p", "--permission-mode", "ask", "Go")
    assert "cannot ask" in result_text(server.requests[1])
    assert "Look." in result_text(server.requests[3])
    assert "cannot ask" in result_text(server.requests[4])
    assert not (phoenix.cwd / "made").exists()


@pytest.mark.pty
async def test_the_user_is_asked_about_lines_and_rules_and_the_rules_hold_until_the_run_ends(tmp_path: Path) -> None:
    touch = "touch made-{}"
    answers = (
        calls("skill", "toolu_1", skill="log"),
        calls("bash", "toolu_2", command=touch.format(1)),
        says("First."),
        calls("bash", "toolu_3", command=touch.format(2)),
        says("Second."),
        calls("skill", "toolu_4", skill="log"),
        calls("bash", "toolu_5", command=touch.format(3)),
        says("Third."),
    )
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        skill(phoenix.home / "skills", "log", "description: x\nallowed-tools: Bash(touch:*)", "Look. !`echo ran`")
        async with program(phoenix, rows=40) as running:
            await running.ready()
            await running.send("one")
            await running.shows("echo ran", "then without a question: bash(touch *)", "until the run ends")
            await typing_guard()
            running.type("y")
            await running.shows("First.", "○ ready")
            await running.send("two")
            await running.shows("touch made-2", "approval")
            await typing_guard()
            running.type("n")
            await running.shows("Second.", "○ ready")
            await running.send("three")
            await running.shows("echo ran", "in ask mode, commands need approval")
            await typing_guard()
            running.type("y")
            await running.shows("Third.")
    assert sorted(path.name for path in phoenix.cwd.glob("made-*")) == ["made-1", "made-3"]


@pytest.mark.pty
async def test_lines_list_skills_with_their_states_read_one_and_switch_it_off(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_skills(with_claude(tmp_path, server.url))
        skill(phoenix.home / "skills", "broken").write_text("---\nname: x\n")
        skill(phoenix.home / "skills", "deploy", "description: x\ndisable-model-invocation: true")
        skill(tmp_path / "home/.claude/skills", "mine", "description: hidden")
        async with program(phoenix, "--screen-reader", rows=200, columns=300) as running:
            await running.shows("You:")
            running.type("/skills\r")
            await running.shows(
                "1. deploy, on, user, ~1 token, only you call it",
                "2. mine, on, user, ~1 token",
                "3. pdf, untrusted, project",
                "4. mine, hidden: ~/skills/mine/SKILL.md has the same name and comes first, user",
                "5. broken, broken, SKILL.md:1: Front matter",
            )
            running.type("3\r")
            await running.shows("once you accept the files of this folder as they are now; /trust shows them.")
            running.type("2\r")
            await running.shows("1. read it", "2. switch it off")
            running.type("2\r")
            await running.shows("mine, off, user, ~1 token")
            running.type("\r")
            running.type("Hi\r")
            await running.shows("Hello.")
    assert "\nmine: hidden" in prompt(server.requests[0])
    assert json.loads((phoenix.home / "skills.json").read_text())["off"] == [f"{phoenix.home}/skills/mine/SKILL.md"]


@pytest.mark.pty
async def test_the_screen_lists_command_files_and_shows_one_with_what_it_asks(tmp_path: Path) -> None:
    async with serve() as server:
        phoenix = with_claude(tmp_path, server.url)
        front = "description: Writes it.\nallowed-tools: Bash(git commit:*), Bash(*)"
        command(phoenix.home / "commands", "git/commit", front, "Commit it.")
        async with program(phoenix, rows=40, columns=140) as running:
            await running.ready()
            await running.send("/commands")
            await running.shows("Command files", "git:commit", "on · user")
            running.type("\r")
            await running.shows("command git:commit (user)", "Asks to run without a question: bash(git commit *)")
            await running.shows("Never without a question: Bash(*): no rule covers every command", "Commit it.")


async def test_a_skill_of_a_subfolder_joins_once_a_file_there_was_read(tmp_path: Path) -> None:
    reads = calls("read_file", path="sub/x.txt")
    async with serve(says("Yes."), reads, calls("skill", skill="sub:deploy"), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        empty_repository(phoenix.cwd)
        skill(phoenix.cwd / "sub/.claude/skills", "deploy", "description: Of sub.", "Deploy sub.")
        write(phoenix.cwd / "sub/x.txt", "x\n")
        assert (await phoenix.run("-p", "--cwd", str(phoenix.cwd / "sub"), "--trust", "Hi")).code == 0
        await phoenix.run("-p", "Go")
    assert "deploy" not in prompt(server.requests[1])
    assert "\nsub:deploy: Of sub.\n" in prompt(server.requests[2])
    assert "Deploy sub." in result_text(server.requests[3])
