"""/profile: the list, using one, reading, editing and making one."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from engine.executor.requests import RunCaps
from engine.records import PermissionMode
from phoenix_tui.app import PhoenixApp
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.profiles import use_profile
from phoenix_tui.modals.page_sheet import PageSheet
from phoenix_tui.modals.text_sheet import TextSheet
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeEngine
from tests.support.shell import Shell

MINE = "---\ndescription: looks at migrations\nmodel: openai/big\npermission_mode: plan\n---\nBe careful.\n"
BROKEN = "---\ncolour: red\n---\n"


def put(folder: Path, name: str, text: str) -> Path:
    (folder / "profiles").mkdir(exist_ok=True)
    path = folder / "profiles" / f"{name}.md"
    path.write_text(text, "utf-8")
    return path


async def show(shell: Shell, argument: str = "") -> None:
    await shell.type(f"/profile {argument}".rstrip(), "escape", "enter")


def told(shell: Shell, words: str) -> bool:
    return any(words in toast for toast in shell.toasts)


async def listed(shell: Shell) -> PageSheet:
    await show(shell)
    await shell.until(lambda: shell.is_page("Profiles"))
    sheet = shell.top
    assert isinstance(sheet, PageSheet)
    return sheet


def stay(_: PhoenixApp) -> nullcontext[None]:
    """A pilot's terminal cannot be given away."""
    return nullcontext()


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor that notes what it was given and puts `after` in the file, where that is there."""
    script = tmp_path / "editor.sh"
    script.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/line\nif [ -f {tmp_path}/after ]; then cp {tmp_path}/after "$2"; fi\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(script))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(PhoenixApp, "suspend", stay)
    return tmp_path


async def test_the_list_names_every_profile_with_what_is_special_about_it(
    open_shell: OpenShell, tmp_path: Path
) -> None:
    put(tmp_path, "migrations", MINE)
    async with open_shell(size=(100, 30)) as shell:
        await listed(shell)
        await shell.until(lambda: "Built in" in shell.text and "Yours" in shell.text)
        for name in ("general", "explore", "code", "review", "research", "migrations"):
            assert name in shell.text
        assert "in use" in shell.text.split("general")[1].splitlines()[0]
        await shell.press(*["down"] * 5, shows="openai/big · all tools · mode plan")


async def test_using_a_profile_makes_the_next_conversation_with_it(open_shell: OpenShell, tmp_path: Path) -> None:
    put(tmp_path, "migrations", MINE.replace("plan", "plan\nmax_turns: 3\ntimeout: 60"))
    async with open_shell() as shell:
        await listed(shell)
        await shell.press(*["down"] * 5, "enter")
        await shell.until(lambda: any("starts as migrations" in toast for toast in shell.toasts))
        assert (shell.active.model, shell.active.mode) == ("openai/big", PermissionMode.PLAN)
        await shell.until(lambda: shell.status.startswith("plan · sandbox · migrations · big"))
        conversation = await shell.say("hello")
        assert conversation.caps == [RunCaps(max_turns=3, timeout=60.0)], "as with --profile"
        record = conversation.record
        assert (record.profile, record.append_system_prompt) == ("migrations", "Be careful.")
        await shell.until(lambda: shell.status.startswith("plan · sandbox · migrations · big"))
        assert (record.model, record.permission_mode) == ("openai/big", PermissionMode.PLAN)


async def test_the_mode_of_a_profile_holds_for_every_conversation_begun_with_it(
    open_shell: OpenShell, tmp_path: Path
) -> None:
    put(tmp_path, "migrations", MINE)
    async with open_shell() as shell:
        await use_profile(ScreenFrontEnd(shell.ctx), "migrations")
        modes = []
        for text in ("one", "two"):
            conversation = await shell.say(text)
            modes.append(conversation.record.permission_mode.value)
            await shell.command("/permissions auto")
            await shell.active.begin()
        await use_profile(ScreenFrontEnd(shell.ctx), "general")
        modes.append((await shell.say("three")).record.permission_mode.value)
        assert modes == ["plan", "plan", "ask"]


async def test_going_back_to_general_takes_back_model_mode_and_prompt(open_shell: OpenShell, tmp_path: Path) -> None:
    put(tmp_path, "migrations", MINE)
    async with open_shell() as shell:
        before = shell.active.model
        await show(shell, "migrations")
        await shell.until(lambda: shell.active.model == "openai/big")
        await show(shell, "general")
        await shell.until(lambda: shell.active.model == before)
        assert shell.active.mode is PermissionMode.ASK
        await shell.until(lambda: "migrations" not in shell.status)
        record = (await shell.say("hello")).record
        assert (record.profile, record.append_system_prompt, record.model) == ("", "", before)


async def test_a_conversation_that_began_stays_as_it_is(shell: Shell, engine: FakeEngine) -> None:
    first = await shell.say("hello")
    first.answer_with("hi")
    await show(shell, "explore")
    await shell.until(lambda: any("This one is unchanged" in toast for toast in shell.toasts))
    assert shell.conversation is first
    assert first.record.permission_mode is PermissionMode.ASK
    await show_new(shell)
    second = await shell.say("where is it")
    assert (second.record.profile, second.record.permission_mode) == ("explore", PermissionMode.PLAN)


async def show_new(shell: Shell) -> None:
    await shell.type("/new", "escape", "enter", until=lambda: shell.in_view is None)


async def test_what_is_written_stays_though_its_conversation_is_made_anew(shell: Shell) -> None:
    await shell.type("where is it", until=lambda: shell.in_view)
    drafted = shell.conversation
    await shell.active.drafts.keep()
    shell.screen.startup.then(lambda ctx: use_profile(ScreenFrontEnd(ctx), "explore"))
    await shell.until(lambda: shell.composer.content == "where is it" and shell.status.startswith("plan"))
    await shell.press("enter", until=lambda: shell.in_view and shell.conversation.said)
    assert shell.conversation is not drafted
    assert shell.conversation.record.profile == "explore"
    await shell.until(lambda: drafted.id not in shell.engine.opened)


async def test_an_unknown_profile_is_refused_with_those_there_are(shell: Shell) -> None:
    await show(shell, "nobody")
    await shell.until(lambda: any("There is no profile 'nobody'" in toast for toast in shell.toasts))
    assert any("Known are general, explore" in toast for toast in shell.toasts)
    assert shell.active.launch.profile == ""


async def test_space_reads_all_of_a_profile(open_shell: OpenShell) -> None:
    async with open_shell(size=(100, 30)) as shell:
        await listed(shell)
        await shell.press("down", "space")
        await shell.until(lambda: isinstance(shell.top, TextSheet) and "You explore code" in shell.text)
        await shell.press("escape", until=lambda: shell.is_page("Profiles"))


async def test_a_built_in_profile_is_not_edited_but_copied(open_shell: OpenShell, editor: Path) -> None:
    async with open_shell(size=(100, 30)) as shell:
        sheet = await listed(shell)
        await shell.press("down", "e", until=lambda: any("n creates your own copy" in toast for toast in shell.toasts))
        await shell.press("n", shows="Name of the new profile")
        await shell.enter("scout", shows="› a copy of explore")
        await shell.press("enter", until=lambda: (editor / "line").exists())
        await shell.until(lambda: shell.top is sheet and sheet.chosen and sheet.chosen.key == "scout")
        assert "You explore code" in (editor / "profiles" / "scout.md").read_text()
        await shell.press("enter", until=lambda: shell.active.launch.profile == "scout")
        assert shell.active.mode is PermissionMode.PLAN


async def test_the_template_is_a_good_profile(open_shell: OpenShell, editor: Path) -> None:
    async with open_shell(size=(100, 30)) as shell:
        sheet = await listed(shell)
        await shell.press("n", shows="Name of the new profile")
        await shell.enter("mine", shows="a template with explanations")
        await shell.press("up", "enter")
        await shell.until(lambda: shell.top is sheet and sheet.chosen and sheet.chosen.key == "mine")
        assert "What it is for, in one sentence." in shell.text
        assert not shell.active.services.profiles.troubles()


async def test_a_name_that_cannot_be_is_refused(open_shell: OpenShell, editor: Path) -> None:
    put(editor, "mine", MINE)
    async with open_shell() as shell:
        for name, refusal in (("two words", "is not valid: a profile's name"), ("mine", "already exists")):
            await listed(shell)
            await shell.press("n", shows="Name of the new profile")
            await shell.enter(name, shows="a template with explanations")
            await shell.press("enter", until=partial(told, shell, refusal))
            await shell.until(lambda: shell.is_page("Profiles"))
            await shell.press("escape", until=lambda: not shell.is_page("Profiles"))


async def test_a_broken_file_is_listed_first_and_mended_at_its_line(open_shell: OpenShell, editor: Path) -> None:
    path = put(editor, "mine", BROKEN)
    (editor / "after").write_text(MINE)
    async with open_shell(size=(100, 30)) as shell:
        sheet = await listed(shell)
        await shell.until(lambda: "Trouble" in shell.text and "2: 'colour: red' is not a valid key" in shell.text)
        await shell.press(*["up"] * 6, "e", until=lambda: path.read_text() == MINE)
        await shell.until(lambda: "Trouble" not in shell.text and "looks at migrations" in shell.text)
        assert (editor / "line").read_text().strip() == "+2"
        assert shell.top is sheet


async def test_a_mistake_left_in_the_editor_is_told_with_its_line(open_shell: OpenShell, editor: Path) -> None:
    put(editor, "mine", MINE)
    (editor / "after").write_text(BROKEN)
    async with open_shell(size=(100, 30)) as shell:
        await listed(shell)
        await shell.press(*["down"] * 5, "e")
        await shell.until(lambda: any("mine.md:2: 'colour: red' is not a valid key" in toast for toast in shell.toasts))
        # The last good version stays in force.
        await shell.until(lambda: "Trouble" in shell.text and "looks at migrations" in shell.text)


async def test_no_editor_is_said_and_nothing_is_lost(
    open_shell: OpenShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    monkeypatch.delenv("VISUAL", raising=False)
    put(tmp_path, "mine", MINE)
    async with open_shell() as shell:
        await listed(shell)
        await shell.press(*["down"] * 5, "e")
        await shell.until(lambda: any("set VISUAL or EDITOR" in toast for toast in shell.toasts))


async def test_a_file_that_breaks_while_phoenix_runs_is_told_once(open_shell: OpenShell, tmp_path: Path) -> None:
    put(tmp_path, "mine", MINE)
    async with open_shell() as shell:
        put(tmp_path, "mine", BROKEN)
        shell.ctx.environment.look()
        await shell.until(lambda: any("mine.md:2: 'colour: red'" in toast for toast in shell.toasts))
        shell.ctx.environment.look()
        assert len([toast for toast in shell.toasts if "colour: red" in toast]) == 1


async def test_names_are_offered_behind_the_command(shell: Shell) -> None:
    await shell.type("/profile rev", shows="Looks for mistakes")
    await shell.press("enter", until=lambda: shell.active.launch.profile == "review")


async def test_a_long_list_scrolls_and_long_titles_are_cut(open_shell: OpenShell, tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path, f"p{number:02d}", f"---\ndescription: {'数据' * 60}\n---\n")
    async with open_shell(size=(60, 20)) as shell:
        await listed(shell)
        await shell.press(*["pagedown"] * 4, shows=("p29", "35 / 35"))
        assert all(len(line) <= 60 for line in shell.text.splitlines())
