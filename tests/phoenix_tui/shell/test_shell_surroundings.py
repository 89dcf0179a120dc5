"""The title, focus and theme of the terminal around, and hints."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content

import phoenix_tui
from engine.machine.states import Idle
from engine.open_conversations import summary_of
from engine.records import Attachment, QueuedMessage
from phoenix_tui.keys import active_keys
from phoenix_tui.keys.active_keys import BACK, CLOSES
from phoenix_tui.keys.keymap import KEYS, key_names
from phoenix_tui.keys.keymap_file import read_keymap
from phoenix_tui.modals.agents_sheet import AgentsSheet
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.find_sheet import HistorySheet, HitSheet
from phoenix_tui.modals.help_sheet import HelpSheet
from phoenix_tui.modals.image_sheet import ImageSheet
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.modals.rows_sheet import PickerSheet, RowsSheet, SettingsSheet
from phoenix_tui.modals.text_sheet import EditSheet
from phoenix_tui.widgets.dock import ImageChips
from tests.phoenix_tui.shell.test_shell_rewind import HERS, prepare, two_turns
from tests.phoenix_tui.shell.test_sub_agents import rows
from tests.snapshots.scenes_rest import settings
from tests.support.clocks import SteppedClock
from tests.support.fake_agents import waits_for
from tests.support.fake_engine import FakeEngine, question
from tests.support.shell import Shell

DAWN = 'base = "phoenix-light"\nyou = "#123456"\n'


async def test_a_saved_theme_changes_the_screen_and_a_broken_one_leaves_it(open_shell: Any, tmp_path: Path) -> None:
    theme = tmp_path / "dawn.toml"
    theme.write_text(DAWN)
    async with open_shell((120, 40), themes_folder=tmp_path, theme="dawn") as shell:
        app = shell.app
        assert (app.theme, app.current_theme.accent) == ("dawn", "#123456")
        theme.write_text(DAWN.replace("#123456", "#654321"))
        await shell.until(lambda: app.current_theme.accent == "#654321")
        theme.write_text(DAWN.replace("#123456", "red"))
        await shell.until(lambda: any("dawn.toml:2" in toast for toast in shell.toasts))
        assert app.current_theme.accent == "#654321"
        assert "dawn" in shell.ctx.environment.colours.names()


async def test_a_well_known_theme_is_there_from_the_first_frame_and_is_previewed(open_shell: Any) -> None:
    async with open_shell((120, 40), theme="nord") as shell:
        assert (shell.app.theme, shell.app.current_theme.background) == ("nord", "#2e3440")
        await shell.enter("/theme", until=lambda: isinstance(shell.top, PickerSheet))
        await shell.type("dracula", until=lambda: shell.app.current_theme.background == "#282a36")
        await shell.press("escape", until=lambda: shell.app.theme == "nord")


async def test_a_file_replaces_the_well_known_theme_of_its_name(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "nord.toml").write_text('base = "dracula"\nyou = "#123456"\n')
    async with open_shell((120, 40), themes_folder=tmp_path, theme="nord") as shell:
        assert (shell.app.current_theme.accent, shell.app.current_theme.background) == ("#123456", "#282a36")
        names = shell.ctx.environment.colours.names()
        assert (names[0], names.count("nord")) == ("nord", 1)
        assert (shell.app.current_theme.accent, shell.app.theme) == ("#123456", "nord")


async def test_a_saved_keymap_counts_at_once_and_a_broken_one_leaves_the_keys(open_shell: Any, tmp_path: Path) -> None:
    keymap = tmp_path / "keymap.toml"
    async with open_shell((120, 40)) as shell:
        keymap.write_text('help = "f9"\n')
        await shell.until(lambda: shell.ctx.keymap)
        await shell.press("f9", until=lambda: isinstance(shell.top, HelpSheet))
        await shell.press("escape")
        keymap.write_text('help = "ctrl+q"\n')
        await shell.until(lambda: any("keymap.toml:1" in toast for toast in shell.toasts))
        await shell.press("f9", until=lambda: isinstance(shell.top, HelpSheet))


async def test_a_theme_that_does_not_exist_is_said_with_those_that_do(open_shell: Any) -> None:
    async with open_shell(theme="solarized") as shell:
        await shell.until(lambda: any("There is no theme solarized. The themes are" in toast for toast in shell.toasts))


async def test_a_setting_is_changed_in_place_and_kept(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.enter("/config", until=lambda: isinstance(shell.top, SettingsSheet))
        assert "config.toml:1" in shell.text
        await shell.type("mouse", shows="the mouse: true or false")
        await shell.press("enter", until=lambda: ("mouse", "false") in shell.settings)
        await shell.until(lambda: isinstance(shell.top, SettingsSheet) and "mouse          false" in shell.text)
        assert shell.ctx.environment.mouse is False
        await shell.press("delete", until=lambda: ("mouse", "") in shell.settings)


async def test_a_setting_that_is_changed_by_its_name_is_told(shell: Shell) -> None:
    await shell.enter("/config mouse", until=lambda: shell.toasts == ["mouse: false, applies at once."])
    await shell.enter("/config mouse true", until=lambda: shell.settings[-1] == ("mouse", "true"))
    await shell.until(lambda: shell.toasts[-1] == "mouse: true, applies at once.")


async def test_a_setting_with_choices_offers_them_and_esc_keeps_it(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        shell.screen.action_command("config")
        await shell.until(lambda: isinstance(shell.top, SettingsSheet))
        await shell.enter("notif", until=lambda: isinstance(shell.top, PickerSheet))
        await shell.press("escape", until=lambda: isinstance(shell.top, SettingsSheet))
        assert shell.settings == []


async def test_a_theme_is_seen_while_it_is_chosen_and_esc_brings_the_old_one_back(open_shell: Any) -> None:
    async with open_shell((120, 40), theme="phoenix-dark") as shell:
        shell.screen.action_command("theme")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))
        await shell.press("down", until=lambda: shell.app.theme != "phoenix-dark")
        await shell.press("escape", until=lambda: shell.app.theme == "phoenix-dark")
        assert shell.settings == []


async def test_the_palette_finds_conversations_settings_and_keys_and_remembers(
    open_shell: Any, engine: FakeEngine
) -> None:
    engine.seed("retry loop", messages=2)
    async with open_shell((120, 40)) as shell:
        await shell.press("ctrl+p", until=lambda: isinstance(shell.top, RowsSheet))
        await shell.enter("retrloop", until=lambda: shell.in_view is not None)
        assert shell.conversation.record.title == "retry loop"
        await shell.press("ctrl+p", shows="Recent")
        await shell.enter("next perm", until=lambda: shell.conversation.record.permission_mode.value == "accept-edits")
        assert isinstance(shell.conversation.state, Idle)


async def test_the_palette_lists_each_thing_once_and_typing_finds_hidden_names_and_all_settings(
    open_shell: Any, engine: FakeEngine
) -> None:
    async with open_shell((120, 40)) as shell:
        shell.ctx.active.services.settings.rows = settings().rows
        await shell.enter("/doctor", shows="everything works")
        await shell.press("escape", "ctrl+p", shows="Commands and settings")
        assert "Recent" in shell.text
        assert sum(row.strip(" ›│").startswith("/doctor") for row in shell.text.splitlines()) == 1
        [count] = re.findall(r"1 / (\d+)", shell.text)
        assert int(count) <= 50
        for typed, found in (("stopall", "/stopall"), ("retention_days", "days until archive")):
            await shell.type(typed, shows=found)
            await shell.press(*["backspace"] * len(typed))


async def test_nothing_found_says_so_and_help_fits_a_narrow_screen(open_shell: Any) -> None:
    async with open_shell((60, 20)) as shell:
        await shell.press("f1", until=lambda: isinstance(shell.top, HelpSheet))
        rows = shell.text.split("\n")
        assert len(rows) == 20
        wrapped = next(place for place, row in enumerate(rows) if "copy the selection" in row)
        assert rows[wrapped + 1].startswith(" " * 17), "a meaning that goes on is not under itself"
        await shell.type("/rewind", shows="› /rewind")
        await shell.press(*["backspace"] * 7)
        await shell.type("zzzz", shows="No matches")
        await shell.press("question_mark", "f1", until=lambda: shell.top is shell.screen)


async def test_text_that_goes_on_does_so_below_itself_on_a_narrow_screen(open_shell: Any) -> None:
    async with open_shell((40, 20)) as shell:
        shell.ctx.sheets.read("Doctor", Content(f"ok   disk    {'word ' * 12}"), 13)
        await shell.until(lambda: "Doctor" in shell.text)
        rows = shell.text.split("\n")
        first = next(place for place, row in enumerate(rows) if "disk" in row)
        assert rows[first + 1].startswith(" " * 14 + "word")


HELD = (
    *("", "ctrl+", "alt+", "shift+", "super+", "ctrl+alt+", "ctrl+shift+", "alt+shift+", "ctrl+super+"),
    *("alt+super+", "shift+super+", "ctrl+alt+shift+"),
)
NEW = {
    key.id: f"{held}f{number}"
    for key, (held, number) in zip(
        KEYS, product((*HELD, *(f"hyper+{one}" for one in HELD)), range(13, 25)), strict=False
    )
}
"""Another key for every action, each with one that no hint named before."""
IMAGE = Attachment("i", Path("i"), "image/png", 640, 480, 20, 640, 480, 20)
WIDE = (200, 60)
SAYS_A_KEY = re.compile(
    r"(?:Ctrl|Alt|Shift)\+|\bF\d+\b|\b(?:Tab|Space|Del|PgUp|PgDn|Home)\b [a-z]|(?:^| · )[a-zA-Z|+] [a-z]+s?(?: ·|$)"
)
ABOUT_KEYS = ("keymap.py", "keymap_file.py", "active_keys.py", "features/catalogue.py")
"""Modules whose texts are about keys, and none of them a hint."""
FIXED = "Tab in this conversation"
"""A key that no keymap changes, as `test_sheet_keys.FIXED` says."""


@pytest.fixture(autouse=True)
def _own_keys_again() -> Iterator[None]:
    yield
    active_keys.take({})


def named(name: str) -> str:
    """The new key as hints write it."""
    return key_names(NEW[name])


def test_a_hint_names_the_first_key_and_drops_what_has_none() -> None:
    assert active_keys.hint(("queue_earlier queue_later", "moves"), "Enter sends", ("agent_stop", "stops")) == (
        "Shift+↑↓ moves · Enter sends · x stops"
    )
    assert active_keys.take({"agent_stop": "none", "queue_later": "f5", "hit_previous": "f6,f7"})
    assert active_keys.hint(("agent_stop", "stops"), ("queue_earlier queue_later", "moves")) == "Shift+↑ F5 moves"
    assert active_keys.key("hit_previous") == "F6"
    assert not active_keys.take({"agent_stop": "none", "queue_later": "f5", "hit_previous": "f6,f7"})


def test_no_text_of_the_screens_names_a_key_by_itself() -> None:
    root = Path(phoenix_tui.__file__).parent
    found = [
        f"{path.relative_to(root)}: {text}"
        for folder in ("workspace", "modals", "widgets", "commands", "panes")
        for path in sorted((root / folder).rglob("*.py"))
        if str(path.relative_to(root)) not in ABOUT_KEYS
        for text in _texts(path)
        if SAYS_A_KEY.search(text.replace(FIXED, ""))
    ]
    assert found == []


def _texts(path: Path) -> Iterator[str]:
    """Texts that a module may show: strings that are neither docstrings nor `HELP`."""
    tree = ast.parse(path.read_text())
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    silent |= {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"HELP", "DEFAULT_CSS", "__doc__"}
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


async def test_every_sheet_names_the_user_s_keys(open_shell: Any, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "keymap.toml").write_text("".join(f'{name} = "{key}"\n' for name, key in NEW.items()))
    assert read_keymap(tmp_path / "keymap.toml") == NEW
    async with open_shell(WIDE) as shell:
        await prepare(shell, two_turns(files=(HERS,)))
        for command, hints in (
            ("find", [("typed_down", "newer"), ("find", "everywhere")]),
            ("search", [("search_here", "this folder")]),
            ("config", [("setting_reset", "resets")]),
            ("context", [("context_compact", "summarizes"), ("context_earlier", ""), ("sheet_take", "jumps")]),
            ("rules", [("rule_new", "adds one"), ("rule_undo", "undoes")]),
            ("profile", [("sheet_take", "uses"), ("profile_read", "reads"), ("profile_edit", "edits")]),
            ("rewind", [("sheet_take", "selects")]),
            ("tasks", [("task_track", "tracking on/off"), ("task_loose", "no task")]),
        ):
            await says(shell, partial(shell.screen.action_command, command), hints)
        parent = shell.conversation
        views = rows()
        parent.become(waits_for(*views))
        for view in views:
            engine.sub_agents.put(parent, view)
        sub_agents = AgentsSheet(shell.active.services.engine, parent.id, shell)
        dock, prompts = shell.dock, shell.composer.draft.prompts
        assert prompts is not None
        prompts.add("one")
        chips = ImageChips()
        chips.images = (IMAGE,)
        pasted = EditSheet("A paste", "text", may_be_file=True)
        for made, hints in (
            (sub_agents, [("agent_stop", "stops"), ("agent_hint", "hints")]),
            (pasted, [("paste_keep", "saves"), ("paste_file", "replaces it")]),
            (HistorySheet(prompts, dock), [("history_older", "older"), ("history_wide", "all folders")]),
            (HitSheet(shell.transcript, 0, 2), [("hit_stay", "stays here")]),
            (ImageSheet(chips, None), [("image_remove", "removes it")]),
        ):
            await says(shell, partial(shell.app.push_screen, made), hints)
        assert f"{named('agents')} shows all" in shell.text
        assert shell.status.endswith(f"{named('stop')} stops 3 sub-agents")


async def says(shell: Shell, act: Callable[[], object], hints: list[tuple[str, str]]) -> None:
    """A sheet comes, names these keys and what they do, and goes with Esc, of which the status line alone speaks."""
    act()
    await shell.until(lambda: isinstance(shell.top, Sheet))
    await shell.until(lambda: all(f"{named(name)} {does}".rstrip() in shell.text for name, does in hints))
    sheet = shell.top
    assert isinstance(sheet, Sheet)
    await shell.until(lambda: shell.status.endswith(sheet.esc_hint))
    assert len(re.findall(r"\bEsc\b", shell.text)) == 1
    await shell.press("escape", until=lambda: shell.top is shell.screen)


async def test_a_question_names_and_takes_the_user_s_keys(open_shell: Any, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "keymap.toml").write_text('answer_once = "z"\nanswer_reason = "w"\nsend_now = "f9"\nstop = "f8"\n')
    asking = engine.seed("one", messages=2)
    async with open_shell() as shell:
        await shell.open(asking)
        shell.answering.clock = SteppedClock(0.0)
        asking.ask(question())
        await shell.until(lambda: "once" in shell.text)
        assert shell.status.endswith("z s a n w or 1-5 answer · F8 stops")
        shell.answering.clock = SteppedClock(float("inf"))
        await shell.press("w", shows="No, because")
        await shell.until(lambda: shell.status.endswith(BACK))
        await shell.press("f8", until=lambda: shell.status.endswith("F8 stops"))
        await shell.press("y")
        assert asking.answers == []
        assert shell.composer.text == "y"


async def test_the_keys_of_a_look_inside_and_of_the_queue_are_the_user_s(
    open_shell: Any, engine: FakeEngine, tmp_path: Path
) -> None:
    (tmp_path / "keymap.toml").write_text('peek_open = "f9"\nqueue_edit = "f5"\nqueue_send = "f6"\nsend = "f7"\n')
    asking, other = engine.seed("one", messages=2), engine.seed("two", messages=2)
    async with open_shell() as shell:
        asking.ask(question())
        await shell.open(other)
        shell.app.push_screen(PeekSheet(shell.active.services.engine, summary_of(asking.record, asking.state), shell))
        await shell.until(lambda: "F9 open" in shell.text)
        assert shell.status.endswith(CLOSES)
        await shell.press("escape")
        other.queue.become(QueuedMessage("q", "next"), held=True)
        await shell.until(lambda: "paused · F7 resumes" in shell.text)
        shell.screen.set_focus(shell.dock.queue)
        await shell.until(lambda: "F5 edits · Shift+↑↓ moves · Del removes · F6 sends now" in shell.text)
        await shell.until(lambda: shell.status.endswith(BACK))


async def test_marks_and_a_filter_of_the_list_say_once_what_esc_does(open_shell: Any, engine: FakeEngine) -> None:
    for title in ("one", "two"):
        engine.seed(title, messages=2)
    async with open_shell((120, 40)) as shell:
        await shell.press("ctrl+l", "space", until=lambda: shell.status.endswith("Esc unmarks"))
        assert shell.text.count("Esc") == 1
        await shell.press("escape", "slash", "t", until=lambda: shell.status.endswith("Esc shows all"))
        await shell.press("escape", until=lambda: shell.status.endswith("Esc returns"))
        assert shell.rows.has_focus
        await shell.press("escape", until=lambda: shell.composer.has_focus and shell.status.endswith("? help"))
