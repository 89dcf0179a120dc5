"""The orders of the composer over a bare text area, without an app: what is asked for, sent, walked to and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from textual.dom import DOMNode
from textual.geometry import Region
from textual.message import Message
from textual.reactive import Reactive
from textual.widgets import TextArea

from phoenix_tui.features.composing import PromptHistory
from phoenix_tui.keys.keymap import KEYS, Scope
from phoenix_tui.widgets.answer_keys import TYPING_PAUSE, Answering, ComposerHost
from phoenix_tui.widgets.composer import Composer, ComposerKeys, VimMode
from phoenix_tui.widgets.pasting import Pasted, PastedImages, PastedKey, PasteStore, paste_of
from phoenix_tui.widgets.readline import DraftText, PasteMarks
from phoenix_tui.widgets.vim import Mode, VimKeys
from tests.support.clocks import SteppedClock

LONG = "\n".join(f"line {number}" for number in range(100))


class FakeScreen:
    """Screen with the methods that a text area calls."""

    def __init__(self) -> None:
        self.told: list[Message] = []
        self.focused: list[Any] = []

    def post_message(self, message: Message) -> bool:
        self.told.append(message)
        return True

    def set_focus(self, widget: Any) -> None:
        self.focused.append(widget)

    def focus_next(self) -> None:
        self.focused.append("next")


class RecordedArea(TextArea):
    """A text area of its own, never mounted."""

    has_focus: Reactive[bool] = Reactive(True, repaint=False)

    def __init__(self, text: str) -> None:
        self.told: list[Message] = []
        self.ran: list[str] = []
        self.around = FakeScreen()
        super().__init__(text)
        self.move_cursor(self.document.end)

    @property
    def screen(self) -> Any:
        return self.around

    @property
    def region(self) -> Region:
        return Region(0, 0, 80, 10)

    def post_message(self, message: Message) -> bool:
        if not isinstance(message, TextArea.Changed | TextArea.SelectionChanged):
            self.told.append(message)
        return True

    async def run_action(self, action: str, namespaces: Mapping[str, DOMNode] | None = None) -> None:
        self.ran.append(action)


class RecordingHost(ComposerHost):
    """Requests of the composer to the widget around it."""

    def __init__(self, above: Any = None) -> None:
        self.widget_above = above
        self.given: list[str] = []
        self.caught_up = 0

    def answer(self, letter: str) -> bool:
        self.given.append(letter)
        return True

    def above(self) -> Any:
        return self.widget_above

    def catch_up(self) -> None:
        self.caught_up += 1

    def move_completion(self, by: int) -> None:
        self.given.append(f"move {by}")

    async def take_completion(self, *, send: bool) -> None:
        self.given.append("send" if send else "take")


class Bench:
    """A text, the keys over it, and what came of them."""

    def __init__(self, text: str = "") -> None:
        self.area = RecordedArea(text)
        self.shelf = PasteStore()
        self.marks = PasteMarks(self.area, self.shelf)
        self.vim = VimMode(self.area)
        answering = Answering(SteppedClock(0.0))
        self.draft = DraftText(self.area, self.shelf, answering)
        self.keys = ComposerKeys(self.area, self.marks, self.vim, answering, self.draft)
        self.keys.end_start()

    def order(self, *names: str) -> None:
        for name in names:
            done = self.keys.orders[name]()
            if isawaitable(done):
                asyncio.run(self._finish(done))

    @staticmethod
    async def _finish(done: Any) -> None:
        await done

    def vim_in(self, mode: Mode) -> None:
        keys = VimKeys(self.area, self.shelf, self.draft, self.vim.tell)
        self.vim.use(keys)
        keys.state = keys.state.rest(mode)

    @property
    def told(self) -> list[str]:
        return [type(message).__name__ for message in (*self.area.told, *self.area.around.told)]


def test_every_order_has_a_key_and_every_key_of_the_composer_an_order() -> None:
    named = {key.action for key in KEYS if key.scope is Scope.COMPOSER if key.action.startswith("order(")}
    assert named == {f"order('{name}')" for name in Bench().keys.orders}


def test_enter_sends_the_whole_text_and_empties_the_box() -> None:
    bench = Bench("hello")
    bench.order("send")
    assert [message.text for message in bench.area.around.told if isinstance(message, Composer.Submitted)] == ["hello"]
    assert bench.area.text == ""


def test_enter_behind_a_backslash_breaks_the_line_and_behind_two_sends() -> None:
    one, two = Bench("a\\"), Bench("a\\\\")
    one.order("send")
    two.order("send")
    assert (one.area.text, one.told, two.told) == ("a\n", [], ["Submitted"])


def test_before_the_first_frame_a_line_break_is_an_enter() -> None:
    bench = Bench("now")
    bench.keys.starting = True
    bench.order("newline")
    assert bench.told == ["Submitted"]
    later = Bench("then")
    later.order("newline")
    assert (later.area.text, later.told) == ("then\n", [])


def test_completions_take_the_keys_before_anything_else() -> None:
    bench = Bench("/he")
    bench.keys.host = host = RecordingHost()
    bench.keys.completing = True
    bench.order("send", "older", "newer", "complete")
    assert (host.given, bench.told) == (["send", "move -1", "move 1", "take"], [])
    assert (bench.area.text, host.caught_up) == ("/he", 4)


def test_up_goes_to_what_stands_above_else_through_older_prompts_and_down_comes_back(tmp_path: Path) -> None:
    bench = Bench("draft")
    bench.draft.prompts = PromptHistory(tmp_path, tmp_path)
    for text in ("first", "second"):
        bench.draft.prompts.add(text)
    panel = TextArea()
    bench.keys.host = RecordingHost(above=panel)
    bench.order("older")
    assert (bench.area.around.focused, bench.area.text) == ([panel], "draft")
    bench.keys.host = ComposerHost()
    texts: list[str] = []
    for order in ("older", "older", "newer", "newer"):
        bench.order(order)
        texts.append(bench.area.text)
    assert texts == ["second", "first", "second", "draft"]


def test_tab_writes_the_examples_one_after_the_other_and_leaves_another_text_alone() -> None:
    bench = Bench()
    bench.keys.examples = ("one", "two")
    texts: list[str] = []
    for _ in range(3):
        bench.order("complete")
        texts.append(bench.area.text)
    bench.area.text = "one more"
    bench.order("complete")
    assert (texts, bench.area.text, bench.area.around.focused) == (["one", "two", "one"], "one more", [])


@pytest.mark.parametrize(
    ("text", "busy", "told", "left"),
    [
        ("a draft", True, ["QueueWanted"], ""),
        ("", True, [], ""),
        ("a draft", False, ["KeyRefused"], "a draft"),
        ("", False, [], ""),
        ("!ls", True, [], "!!ls"),
        ("!!ls", False, [], "!ls"),
    ],
)
def test_tab_queues_while_the_agent_works_and_switches_who_reads_a_shell_line(
    text: str, busy: bool, told: list[str], left: str
) -> None:
    bench = Bench(text)
    bench.keys.busy = busy
    bench.order("complete")
    assert (bench.told, bench.area.text) == (told, left)
    assert bench.area.around.focused == (["next"] if not busy and not text else []), "text keeps the keys"


def test_ctrl_d_leaves_an_empty_text_alone() -> None:
    empty, written = Bench(), Bench("ab")
    written.area.move_cursor((0, 1))
    empty.order("leave")
    written.order("leave")
    assert (empty.told, written.told, written.area.text) == (["LeaveWanted"], [], "a")


def test_ctrl_r_searches_but_in_vim_s_normal_it_redoes() -> None:
    bench = Bench("one")
    bench.order("history")
    assert bench.area.ran == ["screen.command('history')"]
    bench.vim_in(Mode.INSERT)
    bench.order("history")
    assert len(bench.area.ran) == 2
    bench.vim_in(Mode.NORMAL)
    bench.order("history")
    assert len(bench.area.ran) == 2


def test_esc_is_vim_s_only_while_it_leaves_a_mode() -> None:
    bench = Bench("one")
    assert (bench.vim.takes_escape, bench.vim.escape()) == (False, False)
    bench.vim_in(Mode.INSERT)
    assert (bench.vim.takes_escape, bench.vim.escape(), bench.vim.escape()) == (True, True, False)
    bench.vim.begin()
    assert bench.vim.takes_escape


def test_a_letter_answers_only_once_typing_has_rested() -> None:
    clock = SteppedClock()
    answering = Answering(clock)

    def press(*, is_empty: bool = True) -> bool:
        return answering.letter_of("y", writes=True, is_empty=is_empty) == "y"

    assert not press(), "nothing is asked"
    answering.since = 100.0
    clock.seconds += TYPING_PAUSE - 0.1
    assert not press(), "the question has only just appeared"
    clock.seconds += TYPING_PAUSE
    assert not press(is_empty=False), "a text is written"
    answering.note_typing()
    clock.seconds += TYPING_PAUSE
    assert press()
    assert not press(), "that letter was typed a moment ago"


async def test_a_paste_is_images_or_a_key_or_a_text(tmp_path: Path) -> None:
    image = tmp_path / "shot.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n")
    key = "sk-ant-" + "a" * 40
    assert await paste_of(f"{image}\n", into_empty=False) == PastedImages((image,))
    assert await paste_of(f" {key}\n", into_empty=True) == PastedKey(key)
    assert await paste_of(key, into_empty=False) == Pasted(key)
    assert await paste_of("a\r\nb\x1b", into_empty=True) == Pasted("a\nb", 1)


def marked(before: str = "", behind: str = "") -> tuple[Bench, str]:
    bench = Bench()
    mark = bench.shelf.fold(LONG)
    bench.area.load_text(before + mark + behind)
    return bench, mark


def test_a_mark_is_deleted_whole_from_either_side_and_nothing_else_is() -> None:
    bench, mark = marked("a", "b")
    bench.area.move_cursor((0, 0))
    assert (bench.marks.delete(-1), bench.marks.delete(1)) == (False, False)
    bench.area.move_cursor((0, 1 + len(mark)))
    assert bench.marks.delete(-1)
    assert (bench.area.text, bench.area.cursor_location) == ("ab", (0, 1))
    again, _ = marked("a", "b")
    again.area.move_cursor((0, 1))
    assert again.marks.delete(1)
    assert (again.area.text, again.area.cursor_location) == ("ab", (0, 1))


def test_the_cursor_never_stands_in_a_mark() -> None:
    bench, mark = marked("a", "b")
    places: list[int] = []
    for start in (1, 1 + len(mark)):
        bench.area.move_cursor((0, start))
        bench.marks.step_out()
        bench.area.move_cursor((0, start + (1 if start == 1 else -1)))
        bench.marks.step_out()
        places.append(bench.area.cursor_location[1])
    assert places == [1 + len(mark), 1]


def test_enter_opens_the_mark_that_was_gone_to_and_sends_where_one_has_just_written() -> None:
    bench, mark = marked()
    bench.area.move_cursor((0, 0))
    bench.order("send")
    assert [message.mark for message in bench.area.around.told if isinstance(message, Composer.PasteOpened)] == [mark]
    bench.marks.note_change()
    bench.order("send")
    assert [message.text for message in bench.area.around.told if isinstance(message, Composer.Submitted)] == [LONG]


def test_a_mark_changed_to_a_short_text_becomes_that_text() -> None:
    bench, mark = marked("a", "b")
    bench.marks.change(mark, "short")
    assert (bench.area.text, bench.area.cursor_location) == ("ashortb", (0, 6))
