"""Skills, command files and `/init`, from the file to the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.extended_folder import write
from tests.support.git_repositories import empty_repository
from tests.support.journeys import Claude, calls, result_text, rows, says
from tests.support.loopback import Seen, serve
from tests.support.program import ESC, alive, in_lines, mark, on_screen
from tests.support.skills import command, skill
from tests.support.waiting import typing_guard

ESC_KEY = "\x1b"
UP = "\x1b[A"


def sent(seen: Seen) -> list[str]:
    """The texts of the newest message, without the note of Phoenix behind them."""
    messages: Any = seen.json["messages"]
    return [block["text"] for block in messages[-1]["content"] if "<environment>" not in block.get("text", "")]


def installed(folder: Path, url: str) -> Phoenix:
    phoenix = with_claude(folder, url)
    command(
        phoenix.home / "commands", "fix", "description: Fix an issue.\nargument-hint: ISSUE PRIORITY", "Fix $0 ($1)."
    )
    command(phoenix.home / "commands", "git/commit", body="Commit as @notes.txt says.")
    skill(phoenix.home / "skills", "pdf", "description: Reads PDF files.", "Read $ARGUMENTS.")
    write(phoenix.cwd / "notes.txt", "short words\n")
    return phoenix


async def test_a_script_sends_the_rendered_body_behind_what_was_typed(tmp_path: Path) -> None:
    async with serve(*(says("Done.") for _ in range(3))) as server:
        phoenix = installed(tmp_path, server.url)
        assert (await phoenix.run("-p", "/fix 12 'very high'")).code == 0
        await phoenix.run("-p", "/git:commit")
        await phoenix.run("-p", "/pdf a.pdf")
    first, second, third = map(sent, server.requests)
    assert first[0] == "/fix 12 'very high'"
    assert first[1].splitlines()[1:] == ["Fix 12 (very high).", "</command>"]
    assert second[1].splitlines()[1] == "Commit as @notes.txt says."
    assert "short words" in second[2]
    assert third[1].splitlines()[1:] == [
        f"Base directory of this skill: {phoenix.home}/skills/pdf", "", "Read a.pdf.", "</skill>",
    ]  # fmt: skip
    titles = [title for (title,) in rows(phoenix, "SELECT title FROM conversations ORDER BY rowid")]
    assert titles == ["/fix 12 'very high'", "/git:commit", "/pdf a.pdf"]


async def test_a_script_sends_an_unknown_name_as_it_is_with_a_note(tmp_path: Path) -> None:
    async with serve(*(says("Done.") for _ in range(3))) as server:
        phoenix = installed(tmp_path, server.url)
        await phoenix.run("-p", "/commit now")
        await phoenix.run("-p", "/usr/bin is full")
        await phoenix.run("-p", " /fix 1")
    unknown, path, quoted = map(sent, server.requests)
    assert unknown == [
        "/commit now",
        "[Phoenix: there is no command /commit here, so the message above is plain text. "
        "There are: /fix, /git:commit, /pdf.]",
    ]
    assert (path, quoted) == (["/usr/bin is full"], [" /fix 1"])


async def test_a_refused_line_sends_nothing(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "state", body="State: !`echo fine`")
        refused = await phoenix.run("-p", "/state")
        asked = await phoenix.run("-p", "--permission-mode", "ask", "/state")
        assert (await phoenix.run("-p", "--permission-mode", "auto", "/state")).code == 0
    assert "the shell line `echo fine` of command state (user) was refused. Permission mode 'deny'" in refused.err
    assert "command state (user) needs your yes: in ask mode, commands need approval" in asked.err
    assert (refused.code, asked.code, len(server.requests)) == (1, 1, 1)
    assert "State: fine" in sent(server.requests[0])[1]


@pytest.mark.pty
async def test_the_screen_completes_shows_what_was_typed_and_recalls_it(tmp_path: Path) -> None:
    async with (
        serve(says("Fixed."), says("Read.")) as server,
        on_screen(installed(tmp_path, server.url), rows=40) as running,
    ):
        await running.press("/fix", "/fix ISSUE PRIORITY", "Fix an issue. · user")
        await running.press("\t", "Esc Esc clears")
        await running.press("12", "/fix 12")
        await running.press(" high\r", "Fixed.", "┃ /fix 12 high", "[command fix (user)]")
        assert "Fix 12 (high)." not in running.words
        await running.press("\x0f", "Fix 12 (high).")
        await running.send("/pdf b.pdf", "Read.")
        await running.press(UP + UP, "┃ /fix 12 high")
    assert [sent(seen)[0] for seen in server.requests] == ["/fix 12 high", "/pdf b.pdf"]


@pytest.mark.pty
async def test_a_question_shows_the_lines_and_rules_of_a_call_before_anything_runs(tmp_path: Path) -> None:
    touches = calls("bash", "toolu_1", command="touch by-rule")
    async with serve(touches, says("One."), says("Two.")) as server:
        phoenix = installed(tmp_path, server.url)
        front = "description: x\nallowed-tools: Bash(touch:*)"
        command(phoenix.home / "commands", "make", front, "!`touch $0`")
        async with on_screen(phoenix, rows=40) as running:
            await running.send("/make 'a b'", "touch 'a b'", "bash(touch *)", "send it")
            await typing_guard()
            await running.press("n", "command make (user) needs your yes")
            assert not (phoenix.cwd / "a b").exists()
            await running.press("\r", "send it")
            await typing_guard()
            await running.press("y", "One.", "○ ready")
            assert (phoenix.cwd / "a b").exists()
            assert (phoenix.cwd / "by-rule").exists()
            await running.send("/make 'a b'", "Two.")
    assert result_text(server.requests[1]).endswith("[exit code 0]")


@pytest.mark.pty
async def test_esc_ends_the_lines_of_a_call_and_the_text_returns(tmp_path: Path) -> None:
    marked = mark()
    async with serve() as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "slow", body=f"!`sleep {marked}`")
        async with on_screen(phoenix, "--permission-mode", "auto", rows=40) as running:
            await running.send("/slow")
            await running.until(lambda: bool(alive(marked)), "the line")
            await running.press(ESC_KEY, "Stopped before it was sent", "/slow")
            assert alive(marked) == []
    assert server.requests == []


@pytest.mark.pty
async def test_the_lines_front_end_asks_by_number_and_names_an_untrusted_file(tmp_path: Path) -> None:
    async with serve(says("Made.")) as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "make", body="!`touch made`")
        command(phoenix.cwd / ".claude/commands", "deploy", body="Deploy.")
        async with in_lines(phoenix, columns=200) as running:
            await running.press("/deploy\r", "/deploy is a file of this project that is not trusted as it is now")
            await running.press("/make\r", "touch made", "2. send it")
            await running.press("2\r", "Made.")
    assert (phoenix.cwd / "made").exists()


async def test_model_and_effort_of_a_command_hold_for_its_run_alone(tmp_path: Path) -> None:
    async with serve(*(says("Done.") for _ in range(3))) as server:
        phoenix = installed(tmp_path, server.url)
        front = "description: x\nmodel: claude-opus-4-6\neffort: low"
        command(phoenix.home / "commands", "deep", front, "Think.")
        command(phoenix.home / "commands", "odd", "description: x\nmodel: no-such-line", "Think.")
        for text in ("/deep", "and now", "/odd"):
            assert (await phoenix.run("-p", *(() if text == "/deep" else ("-c",)), text)).code == 0
    asked = [(seen.json["model"], seen.json.get("output_config", {})) for seen in server.requests]
    assert asked[0] == ("claude-opus-4-6", {"effort": "low"})
    assert asked[1] == asked[2]
    assert asked[1][0] not in {"claude-opus-4-6", "no-such-line"}


async def test_a_skill_in_a_fork_is_worked_on_by_a_sub_agent(tmp_path: Path) -> None:
    load = calls("skill", skill="audit", args="src")
    found = says("Found two.")
    async with serve(says("Yes."), load, found, found, says("Told.")) as server:
        phoenix = installed(tmp_path, server.url)
        front = "description: x\ncontext: fork\nagent: Explore"
        skill(phoenix.home / "skills", "audit", front, "Audit $0.")
        refused = await phoenix.run("-p", "--permission-mode", "deny", "/audit src")
        ran = await phoenix.run("-p", "--permission-mode", "auto", "Go")
    assert refused.code == 0
    assert sent(server.requests[0]) == [
        "/audit src",
        "[Phoenix: the user calls this skill; a sub-agent works on it. "
        'Call the tool skill with {"skill": "audit", "args": "src"}.]',
    ]
    task: Any = server.requests[2].json["messages"]
    assert "Audit src." in str(task)
    assert "Found two." in result_text(server.requests[-1])
    assert ran.out.strip() == "Told."


@pytest.mark.pty
async def test_a_call_while_the_agent_works_runs_nothing_and_can_be_queued(tmp_path: Path) -> None:
    waits = calls("bash", command="touch begun; until [ -e go ]; do sleep 0.05; done")
    async with serve(waits, says("Later."), says("All made.")) as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "make", body="!`touch made`")
        async with on_screen(phoenix, "--permission-mode", "auto", rows=40) as running:
            await running.send("work")
            await running.until((phoenix.cwd / "begun").exists, "the command")
            await running.send("/make", "Still working")
            running.type("\t")  # takes the completion
            await running.lacks("Does it. · user")
            running.type("\t")
            await running.until(lambda: rows(phoenix, "SELECT count(*) FROM queued_messages") == [(1,)], "the queue")
            assert not (phoenix.cwd / "made").exists()
            write(phoenix.cwd / "go", "")
            await running.shows("Later.", "[command make (user)]", "All made.")
    assert (phoenix.cwd / "made").exists()


@pytest.mark.pty
async def test_rules_of_one_call_do_not_count_for_the_lines_of_the_next(tmp_path: Path) -> None:
    async with serve(says("One.")) as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "first", "description: x\nallowed-tools: Bash(touch:*)", "Go.")
        command(phoenix.home / "commands", "second", body="!`touch made`")
        async with on_screen(phoenix, rows=40) as running:
            await running.send("/first", "bash(touch *)", "send it")
            await typing_guard()
            await running.press("y", "One.", "○ ready")
            await running.send("/second", "It runs:", "touch made", "send it")
    assert not (phoenix.cwd / "made").exists()


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


async def test_a_shell_line_passes_the_policy_of_bash_before_the_model_sees_the_text(claude: Claude) -> None:
    load = calls("skill", skill="notes")
    phoenix, server = await claude(load, says("No."), load, says("Yes."), load, says("By rule."))
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


async def test_nobody_can_be_asked_about_a_line_and_no_rule_of_a_skill_counts_then(claude: Claude) -> None:
    loads = calls("skill", skill="notes"), says("No."), calls("skill", skill="log")
    phoenix, server = await claude(*loads, calls("bash", "toolu_2", command="touch made"), says("Done."))
    skill(phoenix.home / "skills", "notes", body=LINE.replace("cat", "touch"))
    skill(phoenix.home / "skills", "log", "description: x\nallowed-tools: Bash(touch:*)", "Look.")
    await phoenix.run("-p", "--permission-mode", "ask", "Go")
    await phoenix.run("-p", "--permission-mode", "ask", "Go")
    assert "cannot ask" in result_text(server.requests[1])
    assert "Look." in result_text(server.requests[3])
    assert "cannot ask" in result_text(server.requests[4])
    assert not (phoenix.cwd / "made").exists()


@pytest.mark.pty
async def test_the_user_is_asked_about_lines_and_rules_and_the_rules_hold_until_the_run_ends(claude: Claude) -> None:
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
    phoenix, _ = await claude(*answers)
    skill(phoenix.home / "skills", "log", "description: x\nallowed-tools: Bash(touch:*)", "Look. !`echo ran`")
    async with on_screen(phoenix, rows=40) as running:
        await running.send("one", "echo ran", "then without a question: bash(touch *)", "until the run ends")
        await typing_guard()
        await running.press("y", "First.", "○ ready")
        await running.send("two", "touch made-2", "commands ask in this mode")
        await typing_guard()
        await running.press("n", "Second.", "○ ready")
        await running.send("three", "echo ran", "commands ask in this mode")
        await typing_guard()
        await running.press("y", "Third.")
    assert sorted(path.name for path in phoenix.cwd.glob("made-*")) == ["made-1", "made-3"]


@pytest.mark.pty
async def test_lines_list_skills_with_their_states_read_one_and_switch_it_off(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_skills(with_claude(tmp_path, server.url))
        skill(phoenix.home / "skills", "broken").write_text("---\nname: x\n")
        skill(phoenix.home / "skills", "deploy", "description: x\ndisable-model-invocation: true")
        skill(tmp_path / "home/.claude/skills", "mine", "description: hidden")
        async with in_lines(phoenix, columns=300) as running:
            running.type("/skills\r")
            await running.shows(
                "1. deploy, on, user, ~1 token, only you call it",
                "2. mine, on, user, ~1 token",
                "3. pdf, untrusted, project",
                "4. mine, hidden: ~/skills/mine/SKILL.md has the same name and comes first, user",
                "5. broken, broken, SKILL.md:1: Front matter",
            )
            await running.press("3\r", "once you accept the files of this folder as they are now; /trust shows them.")
            await running.press("2\r", "1. read it", "2. switch it off")
            await running.press("2\r", "mine, off, user, ~1 token")
            running.type("\r")
            await running.press("Hi\r", "Hello.")
    assert "\nmine: hidden" in prompt(server.requests[0])
    assert json.loads((phoenix.home / "skills.json").read_text())["off"] == [f"{phoenix.home}/skills/mine/SKILL.md"]


@pytest.mark.pty
async def test_the_screen_lists_command_files_and_shows_one_with_what_it_asks(claude: Claude) -> None:
    phoenix, _ = await claude()
    front = "description: Writes it.\nallowed-tools: Bash(git commit:*), Bash(*)"
    command(phoenix.home / "commands", "git/commit", front, "Commit it.")
    async with on_screen(phoenix, rows=40, columns=140) as running:
        await running.send("/commands", "Command files", "git:commit", "on · user")
        await running.press("\r", "command git:commit (user)", "Asks to run without a question: bash(git commit *)")
        await running.shows("Never without a question: Bash(*): no rule covers every command", "Commit it.")


async def test_a_skill_of_a_subfolder_joins_once_a_file_there_was_read(claude: Claude) -> None:
    reads = calls("read_file", path="sub/x.txt")
    phoenix, server = await claude(says("Yes."), reads, calls("skill", skill="sub:deploy"), says("Done."))
    empty_repository(phoenix.cwd)
    skill(phoenix.cwd / "sub/.claude/skills", "deploy", "description: Of sub.", "Deploy sub.")
    write(phoenix.cwd / "sub/x.txt", "x\n")
    assert (await phoenix.run("-p", "--cwd", str(phoenix.cwd / "sub"), "--trust", "Hi")).code == 0
    await phoenix.run("-p", "Go")
    assert "deploy" not in prompt(server.requests[1])
    assert "\nsub:deploy: Of sub.\n" in prompt(server.requests[2])
    assert "Deploy sub." in result_text(server.requests[3])


async def test_the_guide_writes_the_facts_after_a_yes(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.cwd / "go.mod").write_text("module x\n")
    async with on_screen(phoenix) as running:
        (phoenix.cwd / "CLAUDE.md").write_text("Use tabs.\n")
        await running.send("/init", "New AGENTS.md", "go test ./...")
        await running.press(ESC, "Write AGENTS.md?")
        assert not (phoenix.cwd / "AGENTS.md").exists()
        await typing_guard()
        await running.press("y", "AGENTS.md is written.")
    written = "# work\n\n## Commands\n\n- `go build ./...`\n- `go test ./...`\n"
    assert (phoenix.cwd / "AGENTS.md").read_text() == f"@CLAUDE.md\n\n{written}"


async def test_a_model_writes_it_with_its_tools_and_asks(claude: Claude) -> None:
    answers = (calls("write_file", path="AGENTS.md", content="# Work\n"), says("Written."))
    phoenix, server = await claude(*answers)
    async with on_screen(phoenix) as running:
        (phoenix.cwd / "CLAUDE.md").write_text("Use tabs.\n")
        await running.send("/init", "Create AGENTS.md?", "y Yes, once")
        await typing_guard()
        await running.press("y", "Written.")
    assert (phoenix.cwd / "AGENTS.md").read_text() == "# Work\n"
    assert "line `@CLAUDE.md`, which adds that file to it" in str(server.requests[0].json["messages"])
