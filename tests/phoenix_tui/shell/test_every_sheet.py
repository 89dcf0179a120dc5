"""Every sheet and every panel takes every key twice in a row, and the app answers afterwards.

The scenes of the snapshots open most of them with something in them; the others have an opener here. A new class of a
sheet, or of a widget with keys, needs one of both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from textual import events
from textual.screen import Screen
from textual.widget import Widget

from engine.machine.states import Compacting
from engine.ports.mcp import SignInAddress
from engine.records import Attachment
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.find_sheet import HitSheet
from phoenix_tui.modals.image_sheet import ImageSheet
from phoenix_tui.modals.jobs_sheet import JobsSheet
from phoenix_tui.modals.sign_in_sheet import SignInSheet
from phoenix_tui.modals.text_sheet import LineSheet, SideQuestionSheet
from phoenix_tui.widgets.dock import ImageChips
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.phoenix_tui.shell.test_handlers import pumps
from tests.snapshots.booth import Booth
from tests.snapshots.scenes import SCENES
from tests.support.fake_engine import FakeEngine
from tests.support.fake_mcp import FakeServers, a_server
from tests.support.shell import Shell

SCENE_OF: Final = {
    "AgentPanel": "agents-plain", "AgentsSheet": "agents", "ApprovalsSheet": "approvals",
    "ArchiveSheet": "no-conversations",
    "AskingPanel": "approval-patch", "BranchesSheet": "rewind", "Composer": "new", "ConfirmSheet": "tasks",
    "ContextSheet": "context", "ConversationList": "colours", "DiffSheet": "rewind", "EditSheet": "pasting",
    "FindSheet": "find", "HelpSheet": "sheets", "HistorySheet": "writing", "ModelSheet": "sheets",
    "PageSheet": "memory",
    "PeekSheet": "peek", "PickerSheet": "tasks", "QueuePanel": "queue",
    "RewindConfirmSheet": "rewind", "RewindSheet": "rewind", "RoutePanel": "routing", "RowsSheet": "sheets",
    "SearchSheet": "search", "SettingsSheet": "sheets", "StatisticsSheet": "statistics", "TaskSheet": "tasks",
    "TasksSheet": "tasks", "TextSheet": "profiles", "ThemeSheet": "sheets", "TodoPanel": "todo-list",
    "TraceSheet": "trace",
    "TranscriptView": "agents-plain", "TurnsSheet": "blocks", "WelcomePanel": "new",
    "AnswerLine": "plan",
}  # fmt: skip
"""The scene in which each class is seen."""
PAGES: Final = ("trust", "profiles", "tabs-plan")
"""Scenes of further pages."""
WITHIN: Final = frozenset({"LineInput", "QuestionPanel", "Sheet", "AnsweringSheet", "TaskActionsSheet"})
"""Bases, and the line that many sheets have."""
LEAVES: Final = frozenset({"ctrl+z", "ctrl+g"})
"""Keys that stop the process or start an editor: those are for a real terminal (`tests/journeys`)."""
KEYS: Final = (
    *("enter", "tab", "shift+tab", "up", "down", "left", "right", "space", "pageup", "pagedown", "home", "end"),
    *("backspace", "delete", "shift+enter", "ctrl+home", "ctrl+end", "alt+enter", "f1", "question_mark", "escape"),
    *"01239aynrsqx",
)  # fmt: skip


TURNS: Final = 200
"""Turns of the loop that a pair of keys may take; one that opens something is not waited for."""
FEW: Final = 8


class Reached(Exception):
    """The scene got where it was wanted, and all keys were pressed."""


class PressingBooth(Booth):
    """Runs a scene up to the first screen on which a class is seen, and presses keys there."""

    wanted: str = ""
    paints = True

    async def take(self, shell: Shell, name: str, sizes: object = ()) -> None:
        """Press, instead of looking at it."""
        del name, sizes
        await shell.pilot.pause()
        if type(shell.top).__name__ == self.wanted:
            await press_on_sheet(shell, shell.top)
            raise Reached
        found = [one for one in shell.top.query(Widget) if type(one).__name__ == self.wanted and one.display]
        if found:
            await press_on_panel(shell, found[0])
            raise Reached


async def press_on_sheet(shell: Shell, sheet: Screen[Any]) -> None:
    """Press each key twice on a sheet; one that was closed is opened again with the same contents."""
    arguments, options = vars(sheet)["made_of"]
    for key in {**dict.fromkeys(KEYS), **dict.fromkeys(sheet.active_bindings)}:
        if shell.top is not sheet:
            close_all(shell)
            sheet = type(sheet)(*arguments, **options)
            shell.app.push_screen(sheet)
            await shell.pilot.pause()
        await press(shell, key)
    await answers(shell)


async def press_on_panel(shell: Shell, panel: Widget) -> None:
    """Press each key twice on a widget of the workspace that has the focus."""
    focus = next((one for one in (panel, *panel.query("*")) if isinstance(one, Widget) and one.focusable), None)
    keys = {**dict.fromkeys(KEYS), **{key: None for key, _ in panel._bindings}}
    for key in keys:
        close_all(shell)
        if focus is not None and focus.is_attached and focus.focusable:
            shell.screen.set_focus(focus)
        await press(shell, key)
    await answers(shell)


async def press(shell: Shell, key: str) -> None:
    """Press it twice, quickly."""
    if key in LEAVES:
        return
    character = {"enter": "\r", "space": " ", "tab": "\t"}.get(key, key if len(key) == 1 else None)
    for _ in range(2):
        shell.app.post_message(events.Key(key, character))
    app: Any = shell.app
    order = app.key_order
    for turn in range(TURNS):
        await asyncio.sleep(0)
        if turn > FEW and not (order._under_way or order.waiting or order._waits or app._message_queue.qsize()):
            break
        if order._waits is not None:
            await order.settle()
    assert (shell.app._exception, shell.app.shutdown.crash_note) == (None, ""), key


def close_all(shell: Shell) -> None:
    """Close every sheet."""
    for sheet in reversed(shell.app.screen_stack[1:]):
        sheet.dismiss()


async def answers(shell: Shell) -> None:
    """Look whether a letter arrives, whatever the keys have opened, queued or asked."""
    close_all(shell)
    shell.screen.set_focus(shell.composer)
    shell.composer.vim.begin()
    await shell.pilot.pause()
    before = shell.composer.text
    shell.composer.insert("alive")
    await shell.pilot.pause()
    assert shell.composer.text != before
    assert shell.app.is_running


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let every sheet remember what it was made of; nothing of this machine is used, and no key quits."""

    def made(kind: type[Any], *arguments: object, **options: object) -> Any:
        one = type.__call__(kind, *arguments, **options)
        if isinstance(one, Sheet):
            vars(one)["made_of"] = (arguments, options)
        return one

    # Not `Sheet.__new__`: once it was set, `object.__new__` refuses arguments for good.
    monkeypatch.setattr(type(Sheet), "__call__", made)
    monkeypatch.setattr("phoenix_tui.lifecycle.shutdown.ScreenShutdown.begin", lambda *_: None)
    for name, value in {"HOME": str(tmp_path), "VISUAL": "true", "BROWSER": "true"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("name", SCENE_OF)
async def test_it_takes_every_key_twice_in_its_scene(tmp_path: Path, name: str) -> None:
    await press_in_scene(tmp_path, name, SCENE_OF[name])


@pytest.mark.parametrize("scene", PAGES)
async def test_a_page_takes_every_key_twice(tmp_path: Path, scene: str) -> None:
    await press_in_scene(tmp_path, "PageSheet", scene)


async def press_in_scene(folder: Path, name: str, scene: str) -> None:
    """Press on the first screen of a scene with this class."""
    cwd = folder / "src" / "relay"
    cwd.mkdir(parents=True)
    booth = PressingBooth(Path(name), folder, FakeEngine(cwd))
    booth.wanted = name
    with pytest.raises(Reached):
        await SCENES[scene](booth)


async def open_changes(shell: Shell) -> None:
    shell.screen.action_command("diff")


async def open_rules(shell: Shell) -> None:
    shell.screen.action_command("rules")


async def open_summary(shell: Shell) -> None:
    conversation = shell.engine.seed("talk", messages=4)
    await shell.open(conversation)
    conversation.become(Compacting(2))
    shell.composer.text = "/compact the names"
    await shell.press("enter")


async def open_hit(shell: Shell) -> None:
    shell.app.push_screen(HitSheet(shell.transcript, 0, 2))


async def open_image(shell: Shell) -> None:
    chips = ImageChips()
    chips.images = (Attachment("i", Path("i"), "image/png", 640, 480, 20, 640, 480, 20),)
    shell.app.push_screen(ImageSheet(chips, None))


async def open_jobs(shell: Shell) -> None:
    shell.app.push_screen(JobsSheet((await shell.active.current()).jobs, ScreenFrontEnd(shell.ctx)))


async def open_line(shell: Shell) -> None:
    shell.app.push_screen(LineSheet("One line", "text"))


async def open_side_question(shell: Shell) -> None:
    shell.app.push_screen(SideQuestionSheet("why?", (await shell.active.current()).side))


async def open_sign_in(shell: Shell) -> None:
    address = SignInAddress("https://127.0.0.1/authorize?state=1", "127.0.0.1")
    shell.app.push_screen(SignInSheet(ScreenFrontEnd(shell.ctx), "files", address, shell.ctx.clipboard))


OPENERS: Final[dict[str, Callable[[Shell], Awaitable[None]]]] = {
    "ChangesSheet": open_changes, "RulesSheet": open_rules, "SummarySheet": open_summary,
    "HitSheet": open_hit, "ImageSheet": open_image, "JobsSheet": open_jobs, "LineSheet": open_line,
    "SideQuestionSheet": open_side_question, "SignInSheet": open_sign_in,
}  # fmt: skip


@pytest.mark.parametrize("name", OPENERS)
async def test_it_takes_every_key_twice(open_shell: OpenShell, name: str) -> None:
    async with open_shell(mcp=FakeServers(a_server()), paints=True) as shell:
        await shell.say("go on")
        await OPENERS[name](shell)
        await shell.until(lambda: type(shell.top).__name__ == name)
        await press_on_sheet(shell, shell.top)


async def test_the_page_of_servers_takes_every_key_twice(open_shell: OpenShell) -> None:
    async with open_shell(mcp=FakeServers(a_server())) as shell:
        await shell.say("go on")
        shell.screen.action_command("mcp")
        await shell.until(lambda: shell.is_page("MCP servers"))
        await press_on_sheet(shell, shell.top)


def test_every_class_with_keys_is_pressed_somewhere() -> None:
    with_keys = {
        one.__name__
        for one in pumps()
        if issubclass(one, Sheet)
        or (issubclass(one, Widget) and not issubclass(one, Screen) and "BINDINGS" in vars(one))
    }
    assert with_keys - WITHIN == {*SCENE_OF, *OPENERS} & with_keys
    assert {*SCENE_OF, *OPENERS} <= {one.__name__ for one in pumps()}
