"""Work of the screen by itself: handlers, words that pass, rest without work, rows that go."""

from __future__ import annotations

import asyncio
import gc
import inspect
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from textual import events
from textual.message import Message
from textual.message_pump import MessagePump
from textual.reactive import Reactive
from textual.strip import Strip

import phoenix_tui
from phoenix_tui.app import PhoenixApp
from phoenix_tui.lifecycle.launch import Services
from phoenix_tui.modals.help_sheet import HelpSheet
from phoenix_tui.widgets.status_line import Heading
from phoenix_tui.workspace import startup
from phoenix_tui.workspace.screen import WorkspaceScreen
from tests.phoenix_tui.shell.conftest import OpenLive
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import FakeEngine, launch
from tests.support.shell import ScreenDriver, Shell
from tests.support.waiting import poll

OWN: Final = "phoenix_tui."
ADDED: Final = {
    ("Sheet", "on_mount"),
    ("Sheet", "on_resize"),
    ("Sheet", "on_screen_suspend"),
    ("Sheet", "on_screen_resume"),
}
"""Decorated handlers that are meant to run beside those of subclasses: a sheet takes its place, and its keys."""
REPLACED: Final = ("on_key", "on_paste")
"""Handlers of Textual's text area that Phoenix replaces, and which would insert the text a second time."""
HIDES: Final = {("TranscriptView", "watch_scroll_y")}
"""Watchers in place of those below: the transcript places its rows and its bar itself."""
LOOKED_UP: Final = ("watch", "validate", "compute", "action")
"""Prefixes of methods that Textual finds by attribute, with and without `_`: an override hides the one below it, and
the other spelling runs as well, or wins.
"""


@cache
def pumps() -> tuple[type[MessagePump], ...]:
    """Every class of Phoenix that gets messages."""
    for module in pkgutil.walk_packages(phoenix_tui.__path__, OWN):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    found: dict[type[MessagePump], None] = {}
    waiting: list[type[MessagePump]] = [MessagePump]
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        found.update(dict.fromkeys(one for one in below if one.__module__.startswith(OWN)))
    return tuple(found)


def handlers(one: type) -> Iterator[tuple[str, str]]:
    """Each handler that a class defines itself: name of the message's handler, name of the function."""
    for name, value in vars(one).items():
        if getattr(value, "_textual_on", None):
            for kind, _ in value._textual_on:
                yield kind.handler_name, name
        elif name.startswith(("on_", "_on_")) and callable(value) and name not in {"on_event", "_on_message"}:
            yield name.removeprefix("_"), name


def doubles(one: type) -> list[str]:
    """Messages for which two classes of Phoenix in the line of `one` have a handler, each of which would run."""
    found: dict[str, list[tuple[type, str]]] = defaultdict(list)
    for each in one.__mro__:
        if each.__module__.startswith(OWN) or each is one:
            for message, name in handlers(each):
                found[message].append((each, name))
    return [
        f"{one.__name__}: {message} in {' and '.join(f'{each.__name__}.{name}' for each, name in those)}"
        for message, those in found.items()
        if len([each for each, name in those if (each.__name__, message) not in ADDED or name == message]) > 1
    ]


def test_one_class_of_a_line_handles_a_message_and_the_others_override_what_its_handler_calls() -> None:
    assert len(pumps()) > 60
    assert [double for one in pumps() for double in doubles(one)] == []


def test_the_sweep_finds_a_handler_above_another_one_under_each_spelling() -> None:
    class Base(MessagePump):
        def on_resize(self) -> None: ...

    class Below(Base):
        def _on_resize(self) -> None: ...

    Base.__module__ = Below.__module__ = "phoenix_tui.nowhere"
    try:
        assert doubles(Below) == ["Below: on_resize in Below._on_resize and Base.on_resize"]
    finally:
        Base.__module__ = Below.__module__ = __name__


def test_a_handler_that_takes_textuals_place_says_so_and_no_other_does() -> None:
    """Textual's own bookkeeping, such as that of the focus, must go on; text must not be inserted twice."""
    silent: list[str] = []
    for one in pumps():
        for message, name in handlers(one):
            above = [each for each in one.__mro__[1:] if {message, f"_{message}"} & set(vars(each))]
            source = inspect.getsource(vars(one)[name])
            replaces = "prevent_default" in source or "edit_at_once" in source
            if above and replaces is not (message in REPLACED):
                silent.append(f"{one.__name__}.{name} over {above[0].__name__}")
    assert silent == []


def test_no_watcher_or_action_has_a_second_spelling_in_its_line() -> None:
    """Both `_watch_x` and `watch_x` run; of `_action_x` and `action_x` only the first does."""
    found: list[str] = []
    for one in pumps():
        for name, value in vars(one).items():
            bare = name.removeprefix("_")
            if callable(value) and bare.startswith(tuple(f"{prefix}_" for prefix in LOOKED_UP)):
                other = bare if name.startswith("_") else f"_{bare}"
                found += [
                    f"{one.__name__}.{name} beside {each.__name__}.{other}"
                    for each in one.__mro__
                    if other in vars(each)
                ]
    assert found == []


def test_an_overridden_watcher_calls_the_one_it_hides() -> None:
    hidden: list[str] = []
    for one in pumps():
        reactives: dict[str, Reactive[Any]] = getattr(one, "_reactives", {})
        for name in [*(f"watch_{each}" for each in reactives), *(f"_watch_{each}" for each in reactives)]:
            above = any(name in vars(each) for each in one.__mro__[1:])
            if (
                name in vars(one)
                and above
                and (one.__name__, name) not in HIDES
                and f"super().{name}" not in inspect.getsource(vars(one)[name])
            ):
                hidden.append(f"{one.__name__}.{name}")
    assert hidden == []


@pytest.mark.parametrize("kind", [events.Key, events.Mount, events.ScreenResume])
def test_handlers_are_found_by_the_name_that_textual_calls(kind: type[Message]) -> None:
    assert kind.handler_name in {"on_key", "on_mount", "on_screen_resume"}


def long_ago(shell: Any) -> None:
    """Age all visible notices by some seconds."""
    shell.screen.toasts.clock = SteppedClock(shell.screen.toasts.clock.monotonic() + 3)


async def test_what_was_said_goes_when_a_sheet_comes_and_can_be_said_again(shell: Shell) -> None:
    shell.tell("In the trash.")
    await shell.until(lambda: shell.toasts == ["In the trash."])
    long_ago(shell)
    await shell.press("f1", until=lambda: isinstance(shell.top, HelpSheet) and not shell.toasts)
    shell.tell("In the trash.")
    await shell.until(lambda: shell.toasts == ["In the trash."])


async def test_what_was_said_just_before_a_sheet_came_and_a_trouble_stay(shell: Shell) -> None:
    shell.screen.toasts.clock = SteppedClock()  # on a machine of any speed
    shell.tell("Kept for this conversation.")
    await shell.press("f1", until=lambda: isinstance(shell.top, HelpSheet) and shell.toasts)
    await shell.press("escape", until=lambda: shell.top is shell.screen)
    shell.tell("The disk is full.", bad=True)
    await shell.until(lambda: list(shell.screen.query("Toast.-error")))
    long_ago(shell)
    await shell.press("f1", until=lambda: isinstance(shell.top, HelpSheet))
    await shell.pilot.pause()
    assert "The disk is full." in shell.toasts


async def test_what_was_said_of_one_conversation_goes_with_it_but_not_what_came_with_the_change(
    open_shell: Any, engine: FakeEngine
) -> None:
    one, two = engine.seed("one", messages=2), engine.seed("two", messages=2)
    async with open_shell() as shell:
        await shell.open(one)
        shell.tell("Removed from the queue.")
        shell.tell("It has no branches.", bad=True)
        await shell.until(lambda: len(list(shell.screen.query("Toast"))) == 2)
        long_ago(shell)
        await shell.open(two)
        await shell.until(lambda: not shell.toasts)
        shell.tell("Back from the trash.")
        await shell.until(lambda: list(shell.screen.query("Toast")))
        await shell.open(one)
        assert shell.toasts == ["Back from the trash."]
        shell.app.notify("keymap.toml:1: no key", severity="error")
        await shell.until(lambda: len(list(shell.screen.query("Toast"))) == 2)
        long_ago(shell)
        await shell.open(two)
        assert "keymap.toml:1: no key" in shell.toasts


async def test_what_is_said_loses_no_letter_where_it_fills_the_screen(open_shell: Any) -> None:
    async with open_shell((60, 20)) as shell:
        for letters in (57, 58, 60):
            words = ("eleven said " * 6)[: letters - 1] + "Z"
            shell.tell(words)
            await shell.until(lambda words=words: words in shell.toasts)
        await shell.until(lambda: shell.text.count("Z") == 3)
        toasts = list(shell.screen.query("Toast"))
        assert all(toast.region.right <= 60 and toast.region.x >= 0 for toast in toasts)


async def test_a_prompt_given_at_the_start_is_sent_and_then_drawn(open_shell: Any) -> None:
    async with open_shell(prompt="look around") as shell:
        await shell.until(lambda: shell.in_view and shell.conversation.said)
        assert shell.conversation.said == [("look around", ())]
        await shell.until(lambda: not shell.app._batch_count)


async def test_the_screen_moves_again_though_nothing_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "MOST", 0.05)
    began: list[object] = []
    begin = startup.PaintPause.begin

    def noted(self: startup.PaintPause) -> None:
        begin(self)
        began.append(self)

    monkeypatch.setattr(startup.PaintPause, "begin", noted)

    async def never() -> Services:
        await asyncio.Event().wait()
        raise AssertionError

    app: Any = PhoenixApp(launch(tmp_path, prompt="look around"), never)
    async with app.run_test():
        assert await poll(lambda: began and not app._batch_count)
        app._workspace.parts.title.heading = Heading(folder="elsewhere")
        rows = app.screen._compositor.render_strips
        assert await poll(lambda: "elsewhere" in "".join(strip.text for strip in rows()))


async def test_the_welcome_comes_back_though_what_was_asked_for_early_goes_on(open_shell: Any) -> None:
    """Case of a sheet that was requested before the start and is still open."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def work(_: object) -> None:
        begun.set()
        await over.wait()

    async with open_shell() as shell:
        shell.parts.greet(False)
        shell.screen.startup._ready.clear()
        shell.screen.startup.then(work)
        shell.parts.greet(True)
        assert shell.parts.welcome.welcome is None
        shell.screen.startup._ready.set()
        await shell.until(begun.is_set)
        shell.parts.greet(True)
        await shell.until(lambda: shell.parts.welcome.welcome is not None)
        over.set()


async def test_what_nobody_asked_for_early_is_drawn_as_it_comes(shell: Shell) -> None:
    assert shell.screen.startup.paint_pause._batch is None


async def test_before_the_transcript_stands_its_keys_do_nothing(shell: Shell) -> None:
    parts = shell.parts
    view, parts.view = parts.view, None
    shell.screen.action_view("page_up")
    await shell.press("escape")
    parts.view = view
    await shell.type("still here")


async def test_keys_typed_before_anything_listened_are_drawn_together(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, composer, drawn = shell.app, shell.composer, list[str]()
    display = app._display

    def noted(*frame: Any) -> None:
        drawn.append(composer.text)
        display(*frame)

    monkeypatch.setattr(app, "_display", noted)
    app._typed_early = [events.Key(letter, letter) for letter in "look"]
    await app.on_workspace_screen_listening(WorkspaceScreen.Listening())
    await shell.until(lambda: drawn and drawn[-1] == "look" and not app._batch_count)
    assert set(drawn) == {"look"}


async def repainted(shell: ScreenDriver, times: int) -> int:
    """Number of rows in memory after repeated paints of a whole screen."""
    for _ in range(times):
        for widget in shell.screen.query("*"):
            widget.refresh()
        await shell.pilot.pause()
    return sum(type(one) is Strip for one in gc.get_objects())


async def test_painting_again_and_again_leaves_no_rows(open_live: OpenLive) -> None:
    async with open_live(paints=True) as shell:
        gc.collect()
        gc.disable()
        try:
            before = await repainted(shell, 5)
            after = await repainted(shell, 30)
        finally:
            gc.enable()
        assert after - before < 10  # a row that is being written more or less; 30 screens have 700


def test_a_row_is_cut_as_textual_cuts_it() -> None:
    row = Strip.blank(10)
    assert [list(part) for part in row.divide([3, 10])] == [list(part) for part in (row.crop(0, 3), row.crop(3, 10))]
    assert row.divide([10]) == [row]
    assert row.divide([10, 25]) == [row]
    assert row.divide([12]) == []
