"""Hints name the keys in force: on every sheet, in the status line, in the dock; each word is defined once."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import phoenix_tui
from engine.open_conversations import summary_of
from engine.records import Attachment, QueuedMessage
from phoenix_tui.keys import active_keys
from phoenix_tui.keys.active_keys import BACK, CLOSES
from phoenix_tui.keys.keymap import KEYS, key_names
from phoenix_tui.keys.keymap_file import read_keymap
from phoenix_tui.modals.agents_sheet import AgentsSheet
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.find_sheet import HistorySheet, HitSheet
from phoenix_tui.modals.image_sheet import ImageSheet
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.modals.text_sheet import EditSheet
from phoenix_tui.widgets.dock import ImageChips
from tests.phoenix_tui.shell.test_shell_rewind import HERS, prepare, two_turns
from tests.phoenix_tui.shell.test_sub_agents import rows
from tests.support.clocks import SteppedClock
from tests.support.fake_agents import waits_for
from tests.support.fake_engine import FakeEngine, question
from tests.support.shell import Shell

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
    await shell.pilot.press("escape")
    await shell.until(lambda: shell.top is shell.screen)


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
        await shell.pilot.press("w")
        await shell.until(lambda: "No, because" in shell.text)
        await shell.until(lambda: shell.status.endswith(BACK))
        await shell.pilot.press("f8")
        await shell.until(lambda: shell.status.endswith("F8 stops"))
        await shell.pilot.press("y")
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
        await shell.pilot.press("escape")
        other.queue.become(QueuedMessage("q", "next"), held=True)
        await shell.until(lambda: "paused · F7 resumes" in shell.text)
        shell.screen.set_focus(shell.dock.queue)
        await shell.until(lambda: "F5 edits · Shift+↑↓ moves · Del removes · F6 sends now" in shell.text)
        await shell.until(lambda: shell.status.endswith(BACK))


async def test_marks_and_a_filter_of_the_list_say_once_what_esc_does(open_shell: Any, engine: FakeEngine) -> None:
    for title in ("one", "two"):
        engine.seed(title, messages=2)
    async with open_shell((120, 40)) as shell:
        await shell.pilot.press("ctrl+l", "space")
        await shell.until(lambda: shell.status.endswith("Esc unmarks"))
        assert shell.text.count("Esc") == 1
        await shell.pilot.press("escape", "slash", "t")
        await shell.until(lambda: shell.status.endswith("Esc shows all"))
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.status.endswith("Esc returns"))
        assert shell.rows.has_focus
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.composer.has_focus and shell.status.endswith("? help"))
