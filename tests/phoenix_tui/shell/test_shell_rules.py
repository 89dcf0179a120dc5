"""Rules in one sheet: listed, removed, edited and written by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from engine.permissions.place import project_of
from engine.permissions.rules import KeptRule, Rule
from engine.rule_store import ActiveRule
from phoenix_tui.config.rules import RuleFile, RulesInMemory
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.rules_sheet import RulesSheet
from phoenix_tui.widgets.line_input import LineInput
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.clocks import SteppedClock
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
        await shell.pilot.press("enter", "d", "down")
        await shell.pilot.press("u")
        await shell.until(lambda: "There is nothing to undo." in shell.text)
        await shell.pilot.press("q")
        await shell.until(lambda: not isinstance(shell.top, RulesSheet))


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
        await shell.pilot.press("down", "d")
        await shell.until(lambda: texts(shell) == [TEST.text])
        await shell.until(lambda: "write_file(src/*) removed; u restores it." in shell.text)
        await shell.pilot.press("u")
        await shell.until(lambda: engine.rules.all() == (TEST, WRITE))


async def test_an_edited_rule_must_be_one_and_esc_keeps_the_old(open_shell: OpenShell, engine: FakeEngine) -> None:
    engine.rules.add(TEST)
    async with open_shell() as shell:
        sheet = await rules_sheet(shell)
        await shell.pilot.press("enter", "backspace", "backspace")
        await shell.until(lambda: "`bash(make test` is not a rule" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: writing(sheet))
        await shell.pilot.press("escape")
        await shell.until(lambda: not writing(sheet))
        assert texts(shell) == [TEST.text]
        await shell.pilot.press("enter", "backspace", "backspace")
        await shell.type(" -v)")
        await shell.until(lambda: "only this exact command" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: texts(shell) == ["bash(make test -v)"])
        await shell.until(lambda: "Saved; the rule now applies." in shell.text)
        await shell.pilot.press("u")
        await shell.until(lambda: engine.rules.all() == (TEST,))


async def test_a_rule_is_written_for_good_or_for_this_conversation(open_shell: OpenShell, engine: FakeEngine) -> None:
    engine.seed("Fix the parser")
    async with open_shell() as shell:
        await shell.open(next(iter(engine.opened.values())))
        sheet = await rules_sheet(shell)
        await shell.pilot.press("n")
        await shell.until(lambda: writing(sheet))
        await shell.type("bsh(ls*)")
        await shell.until(lambda: "There is no tool `bsh`: did you mean bash?" in shell.text)
        await shell.pilot.press("home", "right", "a", "enter")
        await shell.until(lambda: texts(shell) == ["bash(ls*)"])
        await shell.pilot.press("n")
        await shell.type("bash(git log*)")
        await shell.pilot.press("tab")
        await shell.until(lambda: list(shell.conversation.rules) == [Rule("bash", "git log*")])
        await shell.until(lambda: "Only in “Fix the parser”" in shell.text)
        await shell.pilot.press("n")
        await shell.type("bash(ls*)")
        await shell.pilot.press("enter")
        await shell.until(lambda: "This rule already exists." in shell.text)
        await shell.pilot.press("u", "u")
        await shell.until(lambda: texts(shell) == [])


async def test_a_broken_rules_file_is_named_and_left_alone(
    open_shell: OpenShell, engine: FakeEngine, tmp_path: Path
) -> None:
    file = RuleFile(tmp_path / "rules.toml")
    file.path.write_text("allow = 3")
    engine.rules = rule_desk(engine.opened, file)
    async with open_shell((120, 40)) as shell:
        sheet = await rules_sheet(shell)
        await shell.until(lambda: "its rules are ignored" in shell.text)
        await shell.pilot.press("n")
        await shell.type("bash(ls*)")
        await shell.pilot.press("enter")
        await shell.until(lambda: not writing(sheet) and "could not be saved" in shell.text)
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
        await shell.pilot.press("enter")
        await shell.until(lambda: "This rule stands in /p/.claude/settings.json; change it there." in shell.text)
        assert not writing(sheet)


async def test_permissions_leads_to_the_rules_and_a_mode_that_asks_nothing_is_said(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    engine.rules.add(TEST)
    async with open_shell() as shell:
        await shell.command("/permissions plan")
        shell.screen.run_worker(shell.command("/permissions"))
        await shell.until(lambda: isinstance(shell.top, PickerSheet) and "1 rule: list, edit" in shell.text)
        await shell.type("rules")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, RulesSheet))
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
        await shell.pilot.press("m")
        await shell.until(lambda: "The rule now applies to all projects." in shell.text)
        assert [(one.text, one.project) for one in engine.rules.all()] == [
            ("bash(make test*)", ""),
            ("write_file(src/*)", project),
        ]
        await shell.pilot.press("u")
        await shell.until(lambda: {one.project for one in engine.rules.all()} == {project})
        moved = engine.rules.move(ActiveRule("write_file(src/*)", since=NOW, project=project), "")
        assert moved.text == f"write_file({project}/src/*)", "still bound to the folder it started from"


async def test_a_new_rule_holds_in_the_project_and_everywhere_only_where_that_is_said(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell() as shell:
        await rules_sheet(shell)
        for text, last in (("bash(ls*)", "enter"), ("bash(cat*)", "alt+e")):
            await shell.pilot.press("n")
            await shell.type(text)
            await shell.pilot.press(last)
            await shell.until(partial(is_kept, shell, text))
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
        await shell.pilot.press("n")
        await shell.until(lambda: writing(sheet))
        await shell.type("deny bash(git push*)")
        await shell.until(lambda: "Denies commands that start with `git push`" in shell.text)
        await shell.pilot.press("tab")
        await shell.until(lambda: "A rule that denies holds in a project or everywhere" in shell.text)
        await shell.pilot.press("n")
        await shell.until(lambda: writing(sheet))
        await shell.type("deny bash(git push*)")
        await shell.pilot.press("enter")
        await shell.until(lambda: texts(shell) == ["deny bash(git push*)"])
        await shell.pilot.press("d")
        await shell.until(lambda: texts(shell) == [])
