"""Prose typed while a question is open: no key that changes anything lasting acts (docs/decisions/answering-keys.md).

Every place that can have the keys gets bursts of prose. What changed for good then must stand in `MEANT`, with the
reason why that key is safe there.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace
from textual import events
from textual.keys import _character_to_key
from textual.screen import Screen
from textual.widget import Widget

import phoenix_tui
from engine.executor.requests import ApprovalAnswer, ApprovalChoice, Proposal
from engine.machine.effects import Strategy
from engine.machine.states import AwaitingLlm, Compacting, Errored, Routing
from engine.ports import ConversationChanges
from engine.records import Attachment, RunPriority
from engine.rewind.rewind import PreviewFile
from engine.updates import ApprovalAsked, Route, RouteAgent, RouteCard
from phoenix_tui.features.service_interfaces import LocalOffer
from phoenix_tui.keys.key_order import HARMLESS
from phoenix_tui.keys.keymap import KEYS, Scope
from phoenix_tui.linear.work import answer_of
from phoenix_tui.widgets.answer_keys import letter_of_text
from phoenix_tui.widgets.line_input import LineInput
from tests.phoenix_tui.shell.conftest import OpenShell, engine, open_shell
from tests.support.fake_agents import agent, waits_for
from tests.support.fake_engine import RUN, FakeConversation, FakeOnboarding, question
from tests.support.fake_rewinding import FakeRewinding, change, point
from tests.support.fake_task_boards import small_board
from tests.support.shell import Shell
from tools.contract import JobInfo
from tools.displays import TodoItem, TodoList

__all__ = ["engine", "open_shell"]

BURST: Final = "Stop: 1 add, rm -d &é!"
"""Both cases, digits, punctuation, spaces, and the letters of every answer and of every row."""
PROSE: Final = (
    "stop, use make clean instead",
    "yes but add a test first",
    "and delete the rest, xX!",
    "Sure: 1 of 2 (see #3)?",
    "dddddddd",
    "aber höflich – 👍 né",
)
ENDS: Final = ("", "enter", "tab", "escape")
TYPED: Final = (
    (BURST, "tab", "y Ad", "enter"),
    *(product(PROSE, ENDS) if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else ()),
)
"""Bursts by place; the long list takes minutes."""
Setup = Callable[[Shell], Awaitable[None]]


def keys_of(text: str) -> list[events.Key]:
    return [events.Key(_character_to_key(letter), letter) for letter in text]


async def at_once(shell: Shell, text: str, *ends: str) -> None:
    """Type faster than anybody: all keys in one read."""
    for key in (*keys_of(text), *(events.Key(end, None) for end in ends)):
        shell.app.post_message(key)
    await shell.pilot.pause()


def lasting(shell: Shell) -> dict[str, object]:
    """State that outlives the keys: rows, requests, answers, jobs, agents, settings, rules, downloads."""
    found: dict[str, object] = {
        "forks": list(shell.engine.forks),
        "agents": [*shell.engine.sub_agents.stopped, *shell.engine.sub_agents.hints],
        "settings": list(shell.settings),
        "downloads": (shell.onboarding.installed, list(shell.onboarding.keys)),
        "end": list(shell.exits),
        "rules": [str(rule) for rule in shell.engine.rules.all()],
        "boards": (dict(shell.engine.tasks.boards), list(shell.engine.tasks.flushed)),
    }
    for one in shell.engine.stored.values():
        kept = (one.title, one.archived, one.deleted, one.pinned_at, one.model, one.permission_mode, one.profile)
        found[f"row {one.id}"] = kept
    for conversation in shell.engine.opened.values():
        found |= requests_of(conversation)
    return found


def changes(before: dict[str, object], after: dict[str, object]) -> set[str]:
    """Kinds of changed things; a conversation that a draft has begun counts as the blank one did."""
    blank = max(name.split()[1] for name in before if name.startswith("row "))
    kinds = {name: name.partition(" ")[0] for name in after}
    return {
        kind
        for name, kind in kinds.items()
        if after[name] != before.get(name, before.get(f"{kind} {blank}")) and not (kind == "row" and name not in before)
    }


def requests_of(one: FakeConversation) -> dict[str, object]:
    return {
        f"sent {one.id}": (list(one.said), list(one.shells), list(one.side.asked), one.retried),
        f"answers {one.id}": (list(one.answers), list(one.routing.answers)),
        f"stopped {one.id}": (one.cancelled, [job.running for job in one.jobs.listed], one.jobs.let_go),
        f"queue {one.id}": ([each.text for each in one.queue.waiting], one.queue.went_on, list(one.queue.sent_now)),
        f"todos {one.id}": [item.line for item in one.todos.now.items],
        f"context {one.id}": list(one.context.asked),
        f"images {one.id}": list(one.attached),
    }


# Where the keys can be.


async def idle(shell: Shell) -> None:
    shell.engine.seed("other", messages=2)
    await shell.open(shell.engine.seed("Relay", messages=4))


async def busy(shell: Shell) -> None:
    await idle(shell)
    await shell.say("go")


async def errored(shell: Shell) -> None:
    await idle(shell)
    shell.conversation.become(Errored(4, "provider", "The server is away.", retryable=True, run_id=RUN.id))
    await shell.pilot.pause()


async def asked(shell: Shell) -> None:
    await busy(shell)
    shell.conversation.ask(question())
    await shell.pilot.pause()
    age_dock(shell)


def age_dock(shell: Shell) -> None:
    """The question above the composer has been in sight for long, and nothing was typed since."""
    panel, answering = shell.question, shell.answering
    answering.since, answering.typed_at, panel.gate.since = -100.0, -100.0, -100.0


async def asked_with_focus(shell: Shell) -> None:
    await asked(shell)
    await shell.pilot.press("up")
    await shell.until(lambda: shell.question.has_focus)


async def reason_line(shell: Shell) -> None:
    await asked(shell)
    await shell.pilot.press("r")
    await shell.until(lambda: shell.question.line.is_open)


async def rule_line(shell: Shell) -> None:
    await asked(shell)
    await shell.pilot.press("a")
    await shell.until(lambda: shell.question.line.is_open)
    shell.question.line._since = -100.0


async def card(shell: Shell) -> None:
    await busy(shell)
    route = Route(
        Strategy.PARALLEL, (RouteAgent("explore", "look", RunPriority.HIGH), RouteAgent("review", "read")), "two", 0.9
    )
    shell.conversation.become(AwaitingLlm(1, RUN, Routing()))
    shell.conversation.routing.offer(RouteCard("card-1", route, starts_at=0.0))
    await shell.until(lambda: shell.dock.route and "90% sure" in shell.text)
    panel = shell.dock.route
    assert panel is not None
    panel.gate.since = shell.answering.since = shell.answering.typed_at = -100.0


async def card_with_focus(shell: Shell) -> None:
    await card(shell)
    await shell.pilot.press("up")
    await shell.until(lambda: not shell.composer.has_focus)


async def queued(shell: Shell) -> None:
    await busy(shell)
    for text in ("first", "second"):
        await shell.conversation.queue.add(text)
    await shell.pilot.press("up")
    await shell.until(lambda: shell.dock.queue.has_focus)


async def todo_list(shell: Shell) -> None:
    await idle(shell)
    shell.conversation.set_todos(TodoList((TodoItem("first"), TodoItem("second"))))
    await shell.until(lambda: shell.dock.todos is not None and shell.dock.todos.display)
    await shell.pilot.press("ctrl+t")
    await shell.until(lambda: shell.dock.todos is not None and shell.dock.todos.has_focus)


async def board(shell: Shell) -> None:
    await idle(shell)
    shell.engine.tasks.set(shell.conversation.id, small_board())
    await sheet("tasks")(shell)


async def listed(shell: Shell) -> None:
    await idle(shell)
    await shell.pilot.press("ctrl+l")
    await shell.until(lambda: shell.rows.has_focus)


async def list_by_tab(shell: Shell) -> None:
    await idle(shell)
    await shell.pilot.press("tab")
    await shell.until(lambda: not shell.composer.has_focus)


async def blocks(shell: Shell) -> None:
    await idle(shell)
    await shell.pilot.press("alt+up")
    await shell.until(lambda: not shell.composer.has_focus)


async def agents_at_work(shell: Shell) -> FakeConversation:
    await busy(shell)
    parent = shell.conversation
    views = [agent("a1", "look for it", shell.engine.now), agent("a2", "write it", shell.engine.now)]
    for view in views:
        shell.engine.sub_agents.put(parent, view)
    parent.become(waits_for(*views))
    await shell.pilot.pause()
    return parent


async def agents_sheet(shell: Shell) -> None:
    parent = await agents_at_work(shell)
    shell.engine.sub_agents.ask(parent, "a1", question())
    await sheet("agents")(shell)
    age_question(shell)


async def agent_asks(shell: Shell) -> None:
    parent = await agents_at_work(shell)
    shell.engine.sub_agents.ask(parent, "a1", question())
    await shell.pilot.pause()
    answering = shell.answering
    answering.since = answering.typed_at = shell.question.gate.since = -100.0


def age_question(shell: Shell) -> None:
    """The question of a sheet has been in sight for long."""
    found: Any = shell.top
    if hasattr(found, "question"):
        found.question.gate.since = -100.0
    if hasattr(found, "gate"):
        found.gate.since = -100.0


async def approvals(shell: Shell) -> None:
    await asked(shell)
    await shell.pilot.press("alt+a")
    await shell.until(lambda: len(shell.app.screen_stack) > 1)
    await shell.pilot.pause()
    age_question(shell)


async def peek(shell: Shell) -> None:
    await idle(shell)
    await shell.pilot.press("ctrl+l", "p")
    await shell.until(lambda: len(shell.app.screen_stack) > 1)


async def peek_asked(shell: Shell) -> None:
    await asked(shell)
    await shell.pilot.press("ctrl+l", "p")
    await shell.until(lambda: len(shell.app.screen_stack) > 1)
    await shell.pilot.pause()
    age_question(shell)


async def jobs(shell: Shell) -> None:
    await busy(shell)
    shell.conversation.jobs.become(
        *(JobInfo(f"job-{n}", shell.conversation.id, "serve", True, None, 7.0) for n in (1, 2))
    )
    await sheet("jobs")(shell)


async def rewind(shell: Shell) -> None:
    await idle(shell)
    desk = shell.active
    fake = FakeRewinding((point(1, "Fix it", change("a.py", 1, 1)),), (PreviewFile(change("a.py", 1, 1)),))
    desk.services = replace(desk.services, rewinding=fake)
    await sheet("rewind")(shell)


async def archive(shell: Shell) -> None:
    shell.engine.seed("old", messages=2)
    await shell.engine.bulk.change(["c0000001"], ConversationChanges(archived=True))
    await sheet("archived")(shell)


async def trash(shell: Shell) -> None:
    shell.engine.seed("old", messages=2)
    await shell.engine.bulk.change(["c0000001"], ConversationChanges(deleted=True))
    await sheet("trash")(shell)


async def purge(shell: Shell) -> None:
    await trash(shell)
    await shell.pilot.press("d")
    await shell.until(lambda: len(shell.app.screen_stack) > 2)


async def leaving(shell: Shell) -> None:
    await busy(shell)
    await shell.pilot.press("ctrl+q")
    await shell.until(lambda: len(shell.app.screen_stack) > 1)


async def summary(shell: Shell) -> None:
    await idle(shell)
    conversation = shell.conversation
    conversation.become(Compacting(2))
    shell.screen.action_command("compact")
    await shell.until(lambda: conversation.context.review is not None)
    review: Any = conversation.context.review
    shell.app.verdict = asyncio.create_task(review(Proposal("The plan is kept.", 12, 5, "")))  # type: ignore[attr-defined]  # kept alive
    await shell.until(lambda: "The plan is kept." in shell.text)
    found: Any = shell.top
    found.gate.since = -100.0


async def welcome(shell: Shell) -> None:
    await shell.until(lambda: "try offline" in shell.text)


async def read_only(shell: Shell) -> None:
    await idle(shell)
    conversation = shell.engine.seed("theirs", messages=2)
    conversation.read_only = "Another Phoenix has it."
    await shell.open(conversation)


async def split(shell: Shell) -> None:
    await idle(shell)
    shell.screen.action_command("split other")
    await shell.pilot.pause()


async def sub_agent(shell: Shell) -> None:
    await agents_at_work(shell)
    await shell.pilot.press("alt+n")
    await shell.pilot.pause()


async def images(shell: Shell) -> None:
    await idle(shell)
    shell.dock.chips.images = (Attachment("a" * 64, Path("a.png"), "image/png", 3, 2, 4_000, 3, 2, 4_000),)
    await shell.pilot.pause()


async def key_line(shell: Shell) -> None:
    await sheet("key")(shell)
    await shell.until(lambda: isinstance(shell.app.focused, LineInput))


def sheet(command: str) -> Setup:
    async def opened(shell: Shell) -> None:
        before = len(shell.app.screen_stack)
        shell.screen.action_command(command)
        await shell.until(lambda: len(shell.app.screen_stack) > before or "find" in command)
        await shell.pilot.pause()

    return opened


def over(command: str) -> Setup:
    async def opened(shell: Shell) -> None:
        await idle(shell)
        await sheet(command)(shell)

    return opened


SHEETS: Final = (
    "rules", "context", "diff", "profile", "help", "config", "model", "resume", "search", "find", "theme",
)  # fmt: skip
"""Commands that open one."""
PLACES: Final[dict[str, Setup]] = (
    {
        setup.__name__: setup
        for setup in (
            idle,
            busy,
            errored,
            asked,
            asked_with_focus,
            reason_line,
            rule_line,
            card,
            card_with_focus,
            queued,
            todo_list,
            board,
        )
    }
    | {
        setup.__name__: setup
        for setup in (listed, list_by_tab, blocks, agents_sheet, agent_asks, approvals, peek, peek_asked, jobs, rewind)
    }
    | {
        setup.__name__: setup
        for setup in (archive, trash, purge, leaving, summary, welcome, read_only, split, sub_agent, images, key_line)
    }
    | {name: over(name) for name in SHEETS}
)
FOCUSED: Final = {
    "Composer": "idle", "ConversationList": "listed", "LineInput": "key_line",
    "AskingPanel": "asked_with_focus", "QueuePanel": "queued", "RoutePanel": "card_with_focus",
    "TodoPanel": "todo_list", "TranscriptView": "blocks",
}  # fmt: skip
"""Every widget of ours that can have the keys, and a place where it has them."""
SENDS: Final = "a text of its own in the composer, and Enter: that is what sending is"
REASON: Final = "Enter says no with the text as the reason, and the rule above says so beforehand; never a yes"
LINE: Final = "a line that was opened to write in, and Enter"
MEANT: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("idle", "enter"): ("sent", SENDS),
    ("split", "enter"): ("sent", SENDS),
    ("images", "enter"): ("sent", SENDS),
    ("welcome", "enter"): ("sent", SENDS),
    ("errored", "enter"): ("sent", SENDS),
    ("sub_agent", "enter"): ("agents", SENDS),
    ("busy", "tab"): ("queue", "Tab queues while the agent works: the text waits, can be edited and taken back"),
    ("asked", "tab"): ("queue", "as while the agent works"),
    ("card", "tab"): ("queue", "as while the agent works"),
    ("agent_asks", "tab"): ("queue", "as while the agent works"),
    ("asked", "enter"): ("answers", REASON),
    ("agent_asks", "enter"): ("answers", REASON),
    ("reason_line", "enter"): ("answers", LINE),
    ("peek", "enter"): ("sent", LINE),
    ("card", "escape"): ("stopped", "Esc stops the run, in every focus"),
    ("card_with_focus", "escape"): ("stopped", "as above"),
    ("busy", "escape"): ("stopped", "Esc stops the run, in every focus"),
    ("asked", "escape"): ("stopped", "Esc stops the run, in every focus"),
}
"""Permitted changes by place and last key, with the reasons."""


@pytest.mark.parametrize("typed", TYPED, ids=" ".join)
@pytest.mark.parametrize("place", PLACES)
async def test_prose_changes_nothing_that_lasts(open_shell: OpenShell, place: str, typed: tuple[str, ...]) -> None:
    async with at(open_shell, place) as shell:
        await walk(shell, place, *typed)


def focusable() -> set[str]:
    """Names of the widgets of Phoenix that can have the keys, screens aside."""
    for module in pkgutil.walk_packages(phoenix_tui.__path__, "phoenix_tui."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, waiting = set[type[Widget]](), [Widget]
    while waiting:
        below = waiting.pop().__subclasses__()
        found.update(below)
        waiting += below
    ours = {one for one in found if one.__module__.startswith("phoenix_tui.") and not issubclass(one, Screen)}
    bases = {base for one in ours for base in one.__bases__}
    return {one.__name__ for one in ours - bases if one.can_focus}


def test_every_widget_that_can_have_the_keys_has_a_place_in_the_walk() -> None:
    assert focusable() == set(FOCUSED)
    assert set(FOCUSED.values()) <= set(PLACES)


@pytest.mark.parametrize(("widget", "place"), FOCUSED.items())
async def test_it_has_the_keys_there(open_shell: OpenShell, widget: str, place: str) -> None:
    async with at(open_shell, place) as shell:
        assert type(shell.app.focused).__name__ == widget


@pytest.mark.parametrize("place", ["asked", "card", "listed", "queued"])
async def test_esc_behind_prose_does_what_esc_does(open_shell: OpenShell, place: str) -> None:
    async with at(open_shell, place) as shell:
        await walk(shell, place, BURST, "escape")


async def test_no_prose_approves_a_command(open_shell: OpenShell) -> None:
    """One question after the other in one conversation; each finds an empty composer that has the keys."""
    async with at(open_shell, "asked") as shell:
        for text, end in product((*PROSE, "ok, but don't push", "yes-men"), ENDS):
            if end == "enter" and letter_of_text(text) == "y":
                continue
            await walk(shell, "asked", text, end)
            await ask_again(shell)


async def test_a_text_that_begins_with_yes_approves_once_and_only_with_enter(open_shell: OpenShell) -> None:
    agrees = [text for text in PROSE if letter_of_text(text) == "y"]
    assert agrees == ["yes but add a test first", "Sure: 1 of 2 (see #3)?"]
    async with at(open_shell, "asked") as shell:
        for text in agrees:
            await at_once(shell, text, "enter")
            assert [answer for _, answer in shell.conversation.answers] == [ApprovalAnswer(ApprovalChoice.ONCE)]
            await shell.until(lambda: bool(shell.conversation.queue.waiting))
            assert [one.text for one in shell.conversation.queue.waiting] == [text]
            await ask_again(shell)


async def ask_again(shell: Shell) -> None:
    conversation = shell.conversation
    conversation.question = None
    conversation.answers.clear()
    conversation.play(ApprovalAsked(None))
    conversation.queue.become()
    shell.composer.clear()
    await shell.pilot.pause()
    conversation.ask(question())
    await shell.pilot.pause()
    assert (shell.composer.text, shell.composer.has_focus) == ("", True)
    age_dock(shell)


@asynccontextmanager
async def at(open_shell: OpenShell, place: str) -> AsyncIterator[Shell]:
    """A shell whose keys are at this place."""
    offer = LocalOffer("small", 1_100_000_000, 3_200_000_000, "example.org", "")
    more: dict[str, Any] = {"onboarding": FakeOnboarding(offer)} if place == "welcome" else {}
    async with open_shell((100, 30), **more) as shell:
        await PLACES[place](shell)
        shell.engine.seed("blank")
        yield shell


async def walk(shell: Shell, place: str, *typed: str) -> None:
    """Type texts and keys in one read, and look at what they have changed for good."""
    before = lasting(shell)
    for part in typed:
        keys = [events.Key(part, None)] if part in ENDS[1:] else keys_of(part)
        for key in keys:
            shell.app.post_message(key)
    await shell.pilot.pause()
    meant = {MEANT[place, part][0] for part in typed if (place, part) in MEANT}
    assert changes(before, lasting(shell)) <= meant, (typed, shell.text)
    given = [answer for one in shell.engine.opened.values() for _, answer in one.answers]
    assert all(answer.choice is ApprovalChoice.DENY and answer.reason for answer in given)


async def burst(shell: Shell, *keys: str) -> None:
    for key in keys:
        shell.app.post_message(events.Key(key, key if len(key) == 1 else None))
    await shell.pilot.pause()


@pytest.mark.parametrize(
    ("keys", "answers"),
    [
        (("y",), [ApprovalAnswer(ApprovalChoice.ONCE)]),
        (("y", "enter"), [ApprovalAnswer(ApprovalChoice.ONCE)]),
        (("2",), [ApprovalAnswer(ApprovalChoice.CONVERSATION)]),
        (("down", "enter"), [ApprovalAnswer(ApprovalChoice.CONVERSATION)]),
        (("up", "y"), [ApprovalAnswer(ApprovalChoice.ONCE)]),
        (("up", "y", "e"), []),
        (("y", "y"), []),
        (("y", "backspace"), []),
        (("y", "escape"), []),
        (("y", " "), []),
    ],
)
async def test_a_letter_answers_alone_or_with_enter_behind_it(
    open_shell: OpenShell, keys: tuple[str, ...], answers: list[ApprovalAnswer]
) -> None:
    async with open_shell() as shell:
        await asked(shell)
        conversation = shell.conversation
        await burst(shell, *keys)
        assert [answer for _, answer in conversation.answers] == answers


async def test_a_paste_answers_nothing_and_takes_the_letter_before_it_along(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await asked(shell)
        shell.app.post_message(events.Paste("y"))
        await shell.pilot.pause()
        assert (shell.conversation.answers, shell.composer.text) == ([], "y")
        shell.composer.clear()
        await shell.pilot.pause()
        shell.app.post_message(events.Key("s", "s"))
        shell.app.post_message(events.Paste("top it"))
        await shell.pilot.pause()
        assert (shell.conversation.answers, shell.composer.text) == ([], "stop it")


async def test_what_is_typed_on_the_list_is_written_in_the_composer(open_shell: OpenShell) -> None:
    async with open_shell((100, 30)) as shell:
        await listed(shell)
        before = lasting(shell)
        await at_once(shell, "and add a test", "enter")
        assert (shell.composer.text, shell.composer.has_focus) == ("and add a test", True)
        assert changes(before | {"row c9": ()}, lasting(shell)) == set(), "its Enter is not the composer's"


async def test_tab_behind_a_text_keeps_the_keys_in_the_composer(open_shell: OpenShell) -> None:
    async with open_shell((100, 30)) as shell:
        await idle(shell)
        await shell.type("fix it ")
        before = lasting(shell)
        await shell.pilot.press("tab")
        await shell.type("and add a test")
        assert (shell.composer.text, shell.composer.has_focus) == ("fix it and add a test", True)
        assert lasting(shell) == before


async def test_a_message_counts_as_work_at_once_so_tab_behind_it_queues(open_shell: OpenShell) -> None:
    async with open_shell((100, 30)) as shell:
        await idle(shell)
        shell.conversation.hold = asyncio.Event()
        for letter in keys_of("go"):
            shell.app.post_message(letter)
        await burst(shell, "enter", "a", "d", "tab")
        shell.conversation.hold.set()
        await shell.until(lambda: shell.conversation.said)
        await shell.until(lambda: shell.conversation.queue.waiting)
        assert [one.text for one in shell.conversation.queue.waiting] == ["ad"]
        assert shell.composer.has_focus


async def test_letters_of_the_list_still_do_what_they_say_for_who_is_there(open_shell: OpenShell) -> None:
    async with open_shell((100, 30)) as shell:
        await listed(shell)
        await shell.pilot.press("j", "d")
        await shell.until(lambda: any(one.deleted for one in shell.engine.stored.values()))
        await shell.until(lambda: "Moved to the trash · u undoes." in shell.toasts)
        await shell.pilot.press("u")
        await shell.until(lambda: not any(one.deleted for one in shell.engine.stored.values()))


async def test_a_download_is_begun_by_a_yes_of_its_own(open_shell: OpenShell) -> None:
    offer = LocalOffer("small", 1_100_000_000, 3_200_000_000, "example.org", "")
    async with open_shell((100, 30), onboarding=FakeOnboarding(offer)) as shell:
        await welcome(shell)
        await shell.pilot.press("enter")
        await shell.until(lambda: "Download small, 1.1 GB, from example.org?" in shell.text)
        await burst(shell, "enter", "enter")
        assert shell.onboarding.installed == 0
        await shell.pilot.press("y")
        await shell.until(lambda: shell.onboarding.installed == 1)


def test_every_letter_is_harmless_by_name_or_waits_for_what_follows() -> None:
    letters = {key.id for key in KEYS if any(len(one) == 1 or one == "space" for one in key.keys.split(","))}
    names = {key.id for key in KEYS}
    assert names >= HARMLESS, "an action that is no more"
    waits = letters - HARMLESS
    acting = {"archive", "delete", "pin", "restore", "stop_rows", "fork_row", "peek", "queue_remove", "queue_send"}
    acting |= {key.id for key in KEYS if key.scope in {Scope.QUESTION, Scope.APPROVALS}} & letters
    acting |= {
        "agent_stop",
        "agent_stop_all",
        "job_end",
        "rule_remove",
        "context_compact",
        "rewind_undo",
        "route_start",
    }
    assert acting <= waits


@pytest.mark.parametrize("line", ["yes but use make", "sure", "y, and then the docs", "always?", "no, do X", "stop"])
async def test_in_lines_mode_only_a_whole_answer_letter_answers(line: str) -> None:
    nobody: Any = None  # asked for a reason only
    assert await answer_of(nobody, question(), line) is None
    assert await answer_of(nobody, question(), " Y ") == ApprovalAnswer(ApprovalChoice.ONCE)
