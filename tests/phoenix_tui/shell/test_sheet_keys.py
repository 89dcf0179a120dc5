"""Keys and rows of sheets, and the least sizes of the terminal."""

from __future__ import annotations

import asyncio
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from textual import events
from textual.binding import Binding
from textual.dom import DOMNode
from textual.geometry import Size

import phoenix_tui
from engine.machine.states import AwaitingLlm, Requesting, Run
from engine.open_conversations import summary_of
from engine.records import SearchHit
from engine.search import Speaker
from engine.updates import TextArrived
from phoenix_tui.app import TOO_SMALL
from phoenix_tui.features.front_end import PageRow
from phoenix_tui.keys.keymap import KEYS, Scope, bindings, help_rows
from phoenix_tui.keys.keymap_file import KeymapError, read_keymap
from phoenix_tui.modals.base import MEASURE
from phoenix_tui.modals.context_sheet import ContextSheet
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet, RowsSheet
from phoenix_tui.modals.search_sheet import hit_rows
from phoenix_tui.terminal.size import LEAST
from phoenix_tui.widgets.line_input import LineInput
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeEngine, question
from tests.support.shell import Shell

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
        await shell.press("y")
        await shell.press("z", until=lambda: asking.answers)
        assert len(asking.answers) == 1

        await shell.until(lambda: not isinstance(shell.top, PeekSheet))
        shell.app.push_screen(ContextSheet(await shell.active.current()))
        await shell.until(lambda: isinstance(shell.top, ContextSheet))
        await shell.press("q")
        assert isinstance(shell.top, ContextSheet)
        await shell.press("w", until=lambda: not isinstance(shell.top, ContextSheet))

        await shell.type("/permissions", "escape", "enter", until=lambda: isinstance(shell.top, PickerSheet))
        await shell.press("f5", shows="› accept-edits")


COMMANDS = (("permissions", "MODE"), ("resume", "TITLE|ID"), ("new", ""))
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC).timestamp()


def hit(snippet: str, moment: float) -> SearchHit:
    return SearchHit("c", "title", Path("/src"), 1, Speaker.ASSISTANT, snippet, moment)


async def test_rows_without_remarks_are_not_cut_where_they_fit(shell: Shell) -> None:
    choices = [PickerRow("a", "x" * 70), PickerRow("b", "short"), PickerRow("c", "日本語" * 20)]
    shell.app.push_screen(PickerSheet("Turns", choices))
    await shell.until(lambda: "x" * 70 in shell.text and "short" in shell.text)
    rows = [row for row in shell.text.split("\n") if "x" * 70 in row or "short" in row]
    assert [row for row in rows if "…" in row] == []
    assert sum("…" in row for row in shell.text.split("\n") if "日本語" in row) == 1


async def test_words_take_the_room_that_short_remarks_leave(shell: Shell) -> None:
    choices = [PickerRow("a", "x" * 60, "run"), PickerRow("b", "short", "yours")]
    shell.app.push_screen(PickerSheet("Hooks", choices))
    await shell.until(lambda: "yours" in shell.text)
    (long,) = [row for row in shell.text.split("\n") if "xxx" in row]
    assert f"{'x' * 60}  run" in long


def test_the_speakers_of_hits_stand_below_one_another_whatever_their_dates() -> None:
    moments = [NOW - 60, NOW - 3 * 86_400 + 40_000, NOW - 20 * 86_400, NOW - 800 * 86_400]
    rows = [hit_rows(hit("said", moment), ["said"], 80, chosen=False, now=NOW).plain.split("\n") for moment in moments]
    assert len({heading.index("agent") for heading, _ in rows}) == 1
    assert {cell_len(row) for pair in rows for row in pair} == {80}


def test_a_hit_leaves_out_where_code_begins_and_ends_but_not_what_was_looked_for() -> None:
    snippet = "it is so: ```python with inner: flush() ``` Two tests"
    shown = hit_rows(hit(snippet, NOW), ["inner"], 80, chosen=False, now=NOW).plain.split("\n")[1]
    assert shown.strip() == "it is so: with inner: flush() Two tests"
    shown = hit_rows(hit(snippet, NOW), ["python"], 80, chosen=False, now=NOW).plain.split("\n")[1]
    assert shown.strip() == snippet


def test_a_long_folder_gives_way_to_who_spoke_and_when() -> None:
    far = replace(hit("said", NOW), cwd=Path("/srv") / ("a-long-folder-" * 12))
    first = hit_rows(far, ["said"], 150, chosen=False, now=NOW).plain.split("\n")[0]
    near = hit_rows(hit("said", NOW), ["said"], 150, chosen=False, now=NOW).plain.split("\n")[0]
    assert first[-18:] == near[-18:]
    assert "a-long-folder-" in first
    assert "…" in first


def test_what_is_shown_of_a_long_text_begins_with_a_whole_word() -> None:
    text = (
        "It is the order of the two locks in the outer of both, and of the many others, " * 2
        + "flush takes the inner one"
    )
    shown = hit_rows(hit(text, NOW), ["inner"], 80, chosen=False, now=NOW).plain.split("\n")[1].strip()
    assert shown.startswith("…")
    assert text[text.index(shown[1:20]) - 1] == " "
    assert "inner" in shown


async def test_what_may_follow_a_command_stands_in_a_column_of_its_own(shell: Shell) -> None:
    entries = [PageRow("", one, f"/{one}", "does it", argument=what) for one, what in COMMANDS]
    shell.app.push_screen(RowsSheet("Help", entries, ""))
    await shell.until(lambda: "/resume" in shell.text)
    rows = [row for row in shell.text.split("\n") if "does it" in row]
    assert {row.index(what) for row, (_, what) in zip(rows, COMMANDS, strict=True) if what} == {3 + 14}
    assert len({row.index("does it") for row in rows}) == 1


async def test_a_sheet_stands_beside_the_list_and_has_one_measure(open_shell: OpenShell) -> None:
    for size in ((80, 24), (120, 40), (160, 50), (203, 60), (240, 70)):
        async with open_shell(size) as shell:
            shell.engine.seed("one", messages=2)
            column = shell.screen.query_one("#conversation").region
            shell.app.push_screen(RowsSheet("Help", [PageRow("", "k", "/key", "does it", "at the end")], ""))
            await shell.until(lambda: "does it" in shell.text)
            sheet, line = shell.top.query_one(".sheet").region, shell.top.query_one(LineInput).region
            assert (sheet.x, sheet.right) == (column.x, column.right)
            row = next(row for row in shell.text.split("\n") if "at the end" in row)
            end = cell_len(row[: row.index("at the end") + len("at the end")])
            assert end == line.right == min(sheet.x + 1 + MEASURE, sheet.right - 1)


async def test_a_remark_has_the_room_that_the_meaning_leaves(open_shell: OpenShell) -> None:
    async with open_shell((80, 24)) as shell:
        remark = "light or dark, like the terminal"
        shell.app.push_screen(RowsSheet("Everything", [PageRow("", "k", "theme", "colours", remark)], ""))
        await shell.until(lambda: "theme" in shell.text and remark in shell.text)


EVERY: Final = [(columns, rows) for columns in range(1, 22) for rows in range(1, 11)]
EDGE: Final = [*((columns, 7) for columns in (1, 2, 3, 9, 19, 20, 21)), *((24, rows) for rows in (1, 4, 5, 9)), (1, 1)]
"""Sizes below the least and across it, in one direction and the other."""
WORDS: Final = "- one **two** three\n\n| a | b |\n|---|---|\n| `c` | d |\n\n```py\nwide = 'code'\n```\n"


async def through(
    shell: Shell, sizes: Sequence[tuple[int, int]], then: Callable[[int], object] = lambda _: None
) -> None:
    """Give the terminal each size; `then` gets the number of each. Ten come before the loop is at rest."""
    for number, (columns, rows) in enumerate(sizes):
        driver = shell.app._driver
        assert driver is not None
        driver._size = columns, rows
        shell.app.post_message(events.Resize(Size(columns, rows), Size(columns, rows)))
        then(number)
        if len(sizes) <= len(EDGE) or number % 10 == 0:
            await shell.pilot.pause()
        else:
            await asyncio.sleep(0)
            continue
        assert shell.app.size == (max(columns, LEAST[0]), max(rows, LEAST[1]))
        assert shell.app.is_too_small is (columns < LEAST[0] or rows < LEAST[1])
        assert not shell.app.shutdown.crash_note


async def works(shell: Shell) -> None:
    """Type into the composer of a screen that can be read again."""
    await through(shell, [(80, 24)])
    before = shell.composer.text
    await shell.type("still here")
    assert shell.composer.text == f"{before}still here"
    assert len(shell.text.split("\n")) == 24


async def test_a_terminal_at_rest_takes_every_size(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        await through(shell, EVERY)
        await works(shell)


async def test_a_screen_in_mid_stream_takes_every_width(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        conversation = await shell.say("go on")
        conversation.become(AwaitingLlm(1, Run("r", 5), Requesting()))
        await through(shell, EDGE, lambda number: conversation.play(TextArrived(f"{number} {WORDS}")))
        await works(shell)


async def test_a_sheet_takes_every_width(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        await shell.say("a message")
        await shell.press("f1", until=lambda: shell.top is not shell.screen)
        await through(shell, EDGE)
        await shell.press("escape", until=lambda: shell.top is shell.screen)
        await works(shell)


async def test_a_question_takes_every_width_and_no_yes_where_it_cannot_be_read(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        conversation = await shell.say("go on")
        await through(shell, [(3, 3)])
        conversation.ask(question())
        shell.question.gate.since = 0.0
        shell.question.press("y")
        shell.question.press("y")
        await shell.pilot.pause()
        assert conversation.answers == []
        await through(shell, EDGE)
        await through(shell, [(80, 24)])
        shell.question.press("y")
        await shell.until(lambda: conversation.answers)


async def test_a_click_on_a_screen_that_cannot_be_seen_is_at_nothing(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        await through(shell, [(3, 3)])
        place = shell.composer.region.offset
        for kind in (events.MouseDown, events.MouseUp):
            shell.app.post_message(kind(None, place.x, place.y, 0, 0, 1, False, False, False, place.x, place.y))
        await shell.pilot.pause()
        await works(shell)


async def test_the_sentence_fits_its_terminal_and_changes_with_it(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        driver = shell.app._driver
        assert driver is not None
        written: list[str] = []
        driver.write = lambda data: written.append(data)  # type: ignore[method-assign]  # the headless one writes nothing
        await through(shell, [(3, 3), (9, 2), (1, 1)])
        said = [text.removeprefix("\x1b[2J\x1b[H") for text in written if text.startswith("\x1b[2J")]
        assert said == [TOO_SMALL[:9], TOO_SMALL[:18], TOO_SMALL[:1]]
