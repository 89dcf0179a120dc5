"""The keys of the sheets are in the one table: the help lists them and the user's keymap changes them."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

import phoenix_tui
from engine.open_conversations import summary_of
from phoenix_tui.keys.keymap import KEYS, Scope, bindings, help_rows
from phoenix_tui.keys.keymap_file import KeymapError, read_keymap
from phoenix_tui.modals.context_sheet import ContextSheet
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.modals.rows_sheet import PickerSheet
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeEngine, question

FIXED = {
    "Sheet": {"escape"},
    "ArchiveSheet": {"escape"},
    "TraceSheet": {"escape"},
    "LineInput": {"enter", "ctrl+j", "alt+backspace", "alt+d"},
    "AnswerLine": {"tab"},
    "ConfirmSheet": {"ctrl+q"},
    "HelpSheet": {"question_mark"},
    "TranscriptView": {"pageup", "pagedown", "ctrl+home", "ctrl+end"},
}
"""Fixed keys: Esc and Enter as the way out and on, the answers of a yes or no, arrows where they scroll."""


SHOWN_IN = tuple(f"phoenix_tui.{room}." for room in ("workspace", "modals", "widgets", "panes"))


def test_every_key_of_a_screen_is_in_the_table_but_for_the_ways_out() -> None:
    found: dict[str, set[str]] = {}
    for module in pkgutil.walk_packages(phoenix_tui.__path__, "phoenix_tui."):
        if not module.name.startswith(SHOWN_IN):
            continue
        for name, one in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(one, DOMNode) and one.__module__ == module.name:
                own = [key for key in vars(one).get("BINDINGS", ()) if isinstance(key, Binding) and not key.id]
                if own:
                    found[name] = {key.key for key in own}
    assert found == {name: keys for name, keys in FIXED.items() if name in found}


def test_the_help_lists_the_keys_of_every_sheet() -> None:
    shown = {scope for scope, _, _ in help_rows({})}
    assert shown == {key.scope for key in KEYS} == set(Scope)
    assert (Scope.PEEK, "F5", "open the conversation") in help_rows({"peek_open": "f5"})


def test_a_sheet_gives_its_own_names_to_actions_and_takes_only_the_keys_it_wants() -> None:
    made = bindings(Scope.ROWS, "sheet_take", "sheet_close", sheet_take="go")
    assert [(one.key, one.action, one.id) for one in made if isinstance(one, Binding)] == [
        ("enter", "go", "rows.sheet_take"),
        ("q", "close", "rows.sheet_close"),
    ]


@pytest.mark.parametrize(
    ("line", "both"),
    [
        ('context_undo = "k"', '"sheet_up" and "context_undo"'),
        ('answer_once = "D"', '"answer_once" and "deny_all"'),
        ('sheet_close = "u"', "is used for both"),
        ('search_here = "ctrl+p"', '"typed_up" and "search_here"'),
    ],
)
def test_two_actions_of_one_sheet_cannot_have_one_key(tmp_path: Path, line: str, both: str) -> None:
    path = tmp_path / "keymap.toml"
    path.write_text(line)
    with pytest.raises(KeymapError, match=r"keymap\.toml:1") as refused:
        read_keymap(path)
    assert both in str(refused.value)


def test_keys_of_sheets_that_never_meet_may_be_the_same(tmp_path: Path) -> None:
    path = tmp_path / "keymap.toml"
    path.write_text('context_undo = "w"\nrewind_undo = "w"\npeek_open = "w"\nhit_next = "down,w"\n')
    assert read_keymap(path)["peek_open"] == "w"


async def test_the_user_s_keys_count_in_the_sheets(open_shell: OpenShell, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "keymap.toml").write_text('peek_close = "w"\nanswer_once = "z"\ntyped_down = "f5"\nsheet_close = "w"')
    asking = engine.seed("one", messages=2)
    other = engine.seed("two")
    async with open_shell() as shell:
        asking.ask(question())
        await shell.open(other)

        shell.app.push_screen(PeekSheet(shell.active.services.engine, summary_of(asking.record, asking.state), shell))
        await shell.until(lambda: isinstance(shell.top, PeekSheet) and shell.top._question)
        sheet = shell.top
        assert isinstance(sheet, PeekSheet)
        sheet.gate.since = float("-inf")
        await shell.pilot.press("y")
        await shell.pilot.press("z")
        await shell.until(lambda: asking.answers)
        assert len(asking.answers) == 1

        await shell.until(lambda: not isinstance(shell.top, PeekSheet))
        shell.app.push_screen(ContextSheet(await shell.active.current()))
        await shell.until(lambda: isinstance(shell.top, ContextSheet))
        await shell.pilot.press("q")
        assert isinstance(shell.top, ContextSheet)
        await shell.pilot.press("w")
        await shell.until(lambda: not isinstance(shell.top, ContextSheet))

        await shell.type("/permissions")
        await shell.pilot.press("escape", "enter")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))
        await shell.pilot.press("f5")
        await shell.until(lambda: "› accept-edits" in shell.text)
