"""Rules and trust: lists, answers, what each row would do."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from engine.machine.states import Idle
from engine.permissions.place import project_of
from engine.permissions.rules import KeptRule, Rule
from engine.rule_store import ActiveRule
from phoenix_tui.config.rules import RuleFile, RulesInMemory
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.rules_sheet import RulesSheet
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.widgets.line_input import LineInput
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.clocks import SteppedClock
from tests.support.extended_folder import KEY, LINT, board, extended, write
from tests.support.fake_engine import FakeEngine
from tests.support.fake_rules import NOW, rule_desk
from tests.support.shell import Shell

TEST, WRITE = ActiveRule("bash(make test*)", since=NOW - 3 * 86_400), ActiveRule("write_file(src/*)", since=NOW)


def texts(shell: Shell) -> list[str]:
    return [one.text for one in shell.engine.rules.all()]


def is_kept(shell: Shell, text: str) -> bool:
    return text in texts(shell)


async def rules_sheet(shell: Shell) -> RulesSheet:
    shell.screen.run_worker(shell.command("/rules"))
    await shell.until(lambda: isinstance(shell.top, RulesSheet) and shell.top.is_mounted)
    sheet = shell.top
    assert isinstance(sheet, RulesSheet)
    sheet.clock = SteppedClock(NOW)
    sheet._look()
    return sheet


def writing(sheet: RulesSheet) -> bool:
    return sheet.query_one(LineInput).display


async def test_without_a_rule_it_says_how_one_comes_to_be(open_shell: OpenShell) -> None:
    async with open_shell((60, 20)) as shell:
        await rules_sheet(shell)
        await shell.until(lambda: "No rules yet." in shell.text and "n adds one" in shell.text)
        await shell.press("enter", "d", "down")
        await shell.press("u", shows="There is nothing to undo.")
        await shell.press("q", until=lambda: not isinstance(shell.top, RulesSheet))


async def test_rules_are_listed_with_where_they_hold_and_since_when(open_shell: OpenShell, engine: FakeEngine) -> None:
    engine.rules.add(TEST)
    engine.seed("Fix the parser").rules[Rule("bash", "git status*")] = NOW - 240
    async with open_shell() as shell:
        await rules_sheet(shell)
        await shell.until(lambda: "2 rules" in shell.text)
        assert "Everywhere, in every project (rules.toml)" in shell.text
        assert "› bash(make test*)" in shell.text and "3d ago" in shell.text
        assert "Only in “Fix the parser”" in shell.text and "4m ago" in shell.text
        assert "Allows any command that starts with `make test`" in shell.text


async def test_a_rule_is_taken_back_and_brought_back_as_it_was(open_shell: OpenShell, engine: FakeEngine) -> None:
    engine.rules.add(TEST)
    engine.rules.add(WRITE)
    async with open_shell() as shell:
        await rules_sheet(shell)
        await shell.press("down", "d", until=lambda: texts(shell) == [TEST.text])
        await shell.until(lambda: "write_file(src/*) removed; u restores it." in shell.text)
        await shell.press("u", until=lambda: engine.rules.all() == (TEST, WRITE))


async def test_an_edited_rule_must_be_one_and_esc_keeps_the_old(open_shell: OpenShell, engine: FakeEngine) -> None:
    engine.rules.add(TEST)
    async with open_shell() as shell:
        sheet = await rules_sheet(shell)
        await shell.press("enter", "backspace", "backspace", shows="`bash(make test` is not a rule")
        await shell.press("enter", until=lambda: writing(sheet))
        await shell.press("escape", until=lambda: not writing(sheet))
        assert texts(shell) == [TEST.text]
        await shell.press("enter", "backspace", "backspace")
        await shell.type(" -v)", shows="only this exact command")
        await shell.press("enter", until=lambda: texts(shell) == ["bash(make test -v)"])
        await shell.until(lambda: "Saved; the rule now applies." in shell.text)
        await shell.press("u", until=lambda: engine.rules.all() == (TEST,))


async def test_a_rule_is_written_for_good_or_for_this_conversation(open_shell: OpenShell, engine: FakeEngine) -> None:
    engine.seed("Fix the parser")
    async with open_shell() as shell:
        await shell.open(next(iter(engine.opened.values())))
        sheet = await rules_sheet(shell)
        await shell.press("n", until=lambda: writing(sheet))
        await shell.type("bsh(ls*)", shows="There is no tool `bsh`: did you mean bash?")
        await shell.press("home", "right", "a", "enter", until=lambda: texts(shell) == ["bash(ls*)"])
        await shell.press("n")
        await shell.type("bash(git log*)")
        await shell.press("tab", until=lambda: list(shell.conversation.rules) == [Rule("bash", "git log*")])
        await shell.until(lambda: "Only in “Fix the parser”" in shell.text)
        await shell.press("n")
        await shell.enter("bash(ls*)", shows="This rule already exists.")
        await shell.press("u", "u", until=lambda: texts(shell) == [])


async def test_a_broken_rules_file_is_named_and_left_alone(
    open_shell: OpenShell, engine: FakeEngine, tmp_path: Path
) -> None:
    file = RuleFile(tmp_path / "rules.toml")
    file.path.write_text("allow = 3")
    engine.rules = rule_desk(engine.opened, file)
    async with open_shell((120, 40)) as shell:
        sheet = await rules_sheet(shell)
        await shell.until(lambda: "its rules are ignored" in shell.text)
        await shell.press("n")
        await shell.enter("bash(ls*)", until=lambda: not writing(sheet) and "could not be saved" in shell.text)
        assert file.path.read_text() == "allow = 3"


async def test_a_rule_of_a_settings_file_is_shown_below_its_name_and_changed_there(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    kept = KeptRule("deny bash(rm *)", source="f", file="/p/.claude/settings.json", entry="deny Bash(rm:*)")
    engine.rules = rule_desk(engine.opened, RulesInMemory((kept,)))
    async with open_shell((100, 30)) as shell:
        sheet = await rules_sheet(shell)
        await shell.until(lambda: "In /p/.claude/settings.json, to be changed there" in shell.text)
        assert "deny Bash(rm:*)" in shell.text
        assert "removes" not in shell.text
        await shell.press("enter", shows="This rule stands in /p/.claude/settings.json; change it there.")
        assert not writing(sheet)


async def test_permissions_leads_to_the_rules_and_a_mode_that_asks_nothing_is_said(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    engine.rules.add(TEST)
    async with open_shell() as shell:
        await shell.command("/permissions plan")
        shell.screen.run_worker(shell.command("/permissions"))
        await shell.until(lambda: isinstance(shell.top, PickerSheet) and "1 rule: list, edit" in shell.text)
        await shell.enter("rules", until=lambda: isinstance(shell.top, RulesSheet))
        note = "In mode plan only rules of web tools apply"
        await shell.until(lambda: note in shell.text)


async def test_a_rule_moves_between_its_project_and_everywhere_and_back(
    open_shell: OpenShell, engine: FakeEngine, tmp_path: Path
) -> None:
    project = str(project_of(Path.cwd()))
    engine.rules.add(ActiveRule("bash(make test*)", since=NOW, project=project))
    engine.rules.add(ActiveRule("write_file(src/*)", since=NOW, project=project))
    async with open_shell() as shell:
        await rules_sheet(shell)
        await shell.until(lambda: "In the project" in shell.text and "m for all projects" in shell.text)
        await shell.press("m", shows="The rule now applies to all projects.")
        assert [(one.text, one.project) for one in engine.rules.all()] == [
            ("bash(make test*)", ""),
            ("write_file(src/*)", project),
        ]
        await shell.press("u", until=lambda: {one.project for one in engine.rules.all()} == {project})
        moved = engine.rules.move(ActiveRule("write_file(src/*)", since=NOW, project=project), "")
        assert moved.text == f"write_file({project}/src/*)", "still bound to the folder it started from"


async def test_a_new_rule_holds_in_the_project_and_everywhere_only_where_that_is_said(
    shell: Shell, engine: FakeEngine
) -> None:
    await rules_sheet(shell)
    for text, last in (("bash(ls*)", "enter"), ("bash(cat*)", "alt+e")):
        await shell.press("n")
        await shell.type(text, last, until=partial(is_kept, shell, text))
    assert [(one.text, one.project) for one in engine.rules.all()] == [
        ("bash(cat*)", ""),
        ("bash(ls*)", str(project_of(shell.active.launch.cwd))),
    ]


async def test_no_rule_can_forge_a_row_of_another(open_shell: OpenShell, engine: FakeEngine) -> None:
    engine.rules.put_back(ActiveRule("bash(make)\nEverywhere\r\u202e)", since=NOW, project="/work/a\nb"))
    async with open_shell() as shell:
        await rules_sheet(shell)
        await shell.until(lambda: "bash(make)↵Everywhere␍⟨U+202E⟩)" in shell.text)
        assert "In the project /work/a↵b" in shell.text


async def test_a_rule_that_denies_is_written_in_its_project_and_taken_back(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    engine.seed("Fix the parser")
    async with open_shell() as shell:
        await shell.open(next(iter(engine.opened.values())))
        sheet = await rules_sheet(shell)
        await shell.press("n", until=lambda: writing(sheet))
        await shell.type("deny bash(git push*)", shows="Denies commands that start with `git push`")
        await shell.press("tab", shows="A rule that denies holds in a project or everywhere")
        await shell.press("n", until=lambda: writing(sheet))
        await shell.enter("deny bash(git push*)", until=lambda: texts(shell) == ["deny bash(git push*)"])
        await shell.press("d", until=lambda: texts(shell) == [])


WIDE = (100, 40)
NOTICE = "This folder brings 2 hooks, 1 server, 1 skill and 1 command that are not used yet; /trust shows them."


async def listed(shell: Shell) -> None:
    await shell.type("/trust", "escape", "enter", until=lambda: shell.is_page("Extensions of this folder"))


async def test_files_stand_by_power_with_their_commands_and_without_keys(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    engine.seed("one", messages=2)  # the list takes its column from the sheet
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=board(tmp_path)) as shell:
        await listed(shell)
        order = ("Runs programs", "settings.json", ".mcp.json", "scripts/lint.py", "Instructs the model", "SKILL.md")
        places = [shell.text.index(words) for words in (*order, "Adds commands", "commit.md")]
        assert places == sorted(places)
        assert f"PreToolUse Bash: {LINT}" in shell.text
        assert "Stop: echo done" in shell.text
        await shell.press("down", shows="files: KEY=[redacted] npx -y 'files server'")
        assert KEY not in shell.text


async def test_y_uses_all_and_n_none(open_shell: OpenShell, tmp_path: Path, engine: FakeEngine) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await listed(shell)
        await shell.press("y", shows="Used from now on: 2 hooks, 1 server, 1 skill and 1 command.")
        assert len(trust.sources.current(engine.cwd).files) == 5
        await shell.press("n", shows="None of these files is used.")
        assert trust.sources.current(engine.cwd).files == ()
        assert trust.sources.current(engine.cwd).refused


async def test_what_changed_under_the_open_sheet_is_not_accepted_with_it(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await listed(shell)
        write(engine.cwd / "scripts/lint.py", "import evil\n")
        await shell.press("y", shows="Accepted as shown; 3 files changed meanwhile and not used.")
        assert {file.path.name for file in trust.sources.current(engine.cwd).files} == {"SKILL.md", "commit.md"}


async def test_a_changed_script_is_chosen_and_shown_as_its_difference(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    trust.sources.answer(engine.cwd, trusted=True)
    write(engine.cwd / "scripts/lint.py", "import \x1b[2J evil\n")
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await listed(shell)
        await shell.press("enter", until=lambda: isinstance(shell.top, TextSheet))
        await shell.shows("-print('fine')")
        assert "+import ␛[2J evil" in shell.text


async def test_the_notice_comes_once_and_again_for_a_change_when_the_terminal_gets_the_focus(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await shell.open(shell.engine.seed("first", messages=2))
        await shell.until(lambda: shell.toasts == [NOTICE])
        trust.sources.answer(engine.cwd, trusted=True)
        write(engine.cwd / "scripts/lint.py", "import evil\n")
        shell.app.app_focus = False
        shell.app.app_focus = True
        changed = "Since you trusted this folder scripts/lint.py changed, so what runs programs is off; "
        await shell.until(lambda: shell.toasts == [NOTICE, f"{changed}/trust shows the difference."])


async def test_an_empty_conversation_shows_the_notice_in_its_panel_until_the_answer(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await shell.shows("This folder brings 2 hooks, 1 server")
        await listed(shell)
        await shell.press("y", shows="Used from now on: ")
        await shell.press("escape")
        await shell.lacks("This folder brings")
        await shell.shows("Try   What is this project?")
        assert shell.toasts == []


async def test_a_run_that_begins_looks_again(open_shell: OpenShell, tmp_path: Path, engine: FakeEngine) -> None:
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await shell.until(lambda: trust._kept)
        extended(engine.cwd)
        await shell.enter("hello", until=lambda: shell.toasts == [NOTICE])
        assert isinstance(shell.conversation.state, Idle) is False


async def test_a_folder_with_nothing_and_a_refused_one_say_nothing(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    trust.sources.answer(engine.cwd, trusted=False)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await shell.until(lambda: trust._kept)
        await listed(shell)
        await shell.shows("Not used, by your answer.")
        assert shell.toasts == []


async def test_500_files_scroll_to_the_last_and_a_hostile_name_is_one_harmless_row(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    for number in range(500):
        write(engine.cwd / f".claude/commands/{number:03}.md", "x")
    write(engine.cwd / ".claude/commands/999\n\x1b[2J\u202ename.md", "x")
    async with open_shell(size=(80, 24), cwd=engine.cwd, trust=board(tmp_path)) as shell:
        await listed(shell)
        await shell.press(*["pagedown"] * 60, shows="501 / 501")
        assert "999␊" in shell.text
        assert "\u202e" not in shell.text
        assert "y uses all" in shell.text


async def test_commands_without_end_leave_room_for_the_rows(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    hooks = [{"type": "command", "command": f"echo {'x' * 300} {number}"} for number in range(400)]
    write(engine.cwd / ".claude/settings.json", json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}}))
    async with open_shell(size=(80, 24), cwd=engine.cwd, trust=board(tmp_path)) as shell:
        await listed(shell)
        assert "lines more; Enter shows the file" in shell.text
        assert "› .claude/settings.json" in shell.text
        assert "Not used yet." in shell.text
