"""Handlers of messages: Textual calls those of every class in the line of inheritance, so none may take another's place
(docs/decisions/screen.md).
"""

from __future__ import annotations

import inspect
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

import pytest
from textual import events
from textual.message import Message
from textual.message_pump import MessagePump
from textual.reactive import Reactive

import phoenix_tui

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
