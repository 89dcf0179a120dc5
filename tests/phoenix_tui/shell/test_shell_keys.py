"""Keys of the workspace, in every state and from every focus."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from engine.machine.messages import Role
from engine.machine.states import AwaitingLlm, Errored, Idle, Requesting, Run, is_busy
from engine.ports import StorageError
from engine.records import PermissionMode
from engine.updates import ContextChanged, StateChanged, TextArrived
from phoenix_tui.features.front_end import PageRow
from phoenix_tui.keys.keymap import EVERYDAY, KEYS, help_rows, key_names
from phoenix_tui.keys.keymap_file import KeymapError, read_keymap
from phoenix_tui.modals.help_sheet import HelpSheet, how_to
from phoenix_tui.modals.rows_sheet import RowsSheet, find
from phoenix_tui.modals.text_sheet import ConfirmSheet, TextSheet
from phoenix_tui.workspace.actions import Actions
from tests.support.fake_engine import FakeEngine, question
from tests.support.shell import Shell

RUN = Run("r", 50)


@pytest.mark.parametrize("focus", ["composer", "list", "transcript", "question"])
async def test_esc_stops_the_run_from_any_focus(open_shell: Any, focus: str) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        if focus == "question":
            conversation.ask(question())
        parts = shell.parts
        wanted = {
            "composer": shell.composer,
            "list": shell.rows,
            "transcript": parts.transcript,
            "question": parts.dock.question,
        }
        shell.screen.set_focus(wanted[focus])
        await shell.press("escape")
        assert conversation.cancelled == 1
        assert isinstance(conversation.state, Idle)


async def test_esc_stops_what_was_sent_and_is_not_stored_yet(shell: Shell) -> None:
    conversation = await shell.say("hello")
    conversation.answer_with("Hello.")
    conversation.hold = asyncio.Event()
    await shell.enter("make everything", until=lambda: len(conversation.caps) == 2)
    await shell.press("escape")
    assert not conversation.cancelled
    conversation.hold.set()
    await shell.until(lambda: conversation.cancelled)
    assert conversation.said[-1][0] == "make everything"
    assert isinstance(conversation.state, Idle)


async def test_esc_closes_the_completions_and_leaves_the_run_alone(shell: Shell) -> None:
    conversation = await shell.say("go")
    await shell.type("/re", until=lambda: shell.composer.keys.completing)
    await shell.press("escape")
    assert not shell.composer.keys.completing
    assert is_busy(conversation.state)


@pytest.mark.parametrize("closing", ["escape", "f1"])
async def test_a_key_closes_the_help_and_leaves_the_run_alone(shell: Shell, closing: str) -> None:
    conversation = await shell.say("go")
    await shell.press("f1", until=lambda: isinstance(shell.top, HelpSheet))
    await shell.press(closing, until=lambda: shell.top is shell.screen)
    assert is_busy(conversation.state)


async def test_ctrl_c_stops_then_clears_then_asks_again_then_quits(shell: Shell, engine: FakeEngine) -> None:
    conversation = await shell.say("go")
    await shell.type("draft", "ctrl+c")
    assert isinstance(conversation.state, Idle)
    assert shell.composer.text == "draft"
    await shell.press("ctrl+c")
    assert shell.composer.text == ""
    await shell.press("ctrl+c")
    assert shell.toasts[-1] == "Press Ctrl+C again to quit."
    shell.app.action_interrupt()
    await shell.ended()
    assert shell.app.shutdown.note == f"phoenix --resume {conversation.id}"


async def test_quitting_asks_while_a_run_is_under_way_and_keeps_the_draft(shell: Any, engine: FakeEngine) -> None:
    conversation = await shell.say("go")
    await shell.type("half", "ctrl+q", until=lambda: isinstance(shell.top, ConfirmSheet))
    await shell.press("n", until=lambda: shell.top is shell.screen)
    assert is_busy(conversation.state)
    await shell.press("ctrl+q", until=lambda: isinstance(shell.top, ConfirmSheet))
    shell.top.action_say(True)
    await shell.ended()
    assert engine.stored[conversation.id].draft == "half"


async def test_quitting_asks_first_when_the_draft_cannot_be_stored(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = await shell.say("go")
    conversation.answer_with("Gone.")

    async def full(_: object) -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr(conversation, "change", full)
    await shell.type("half", "ctrl+q", until=lambda: isinstance(shell.top, ConfirmSheet))
    assert "cannot be saved" in shell.text
    await shell.press("n", until=lambda: shell.top is shell.screen)
    assert not shell.exits
    monkeypatch.undo()
    await shell.press("ctrl+q")
    await shell.ended()
    assert conversation.record.draft == "half"


async def test_a_session_in_memory_alone_says_so_all_the_time_and_offers_no_way_back(open_shell: Any) -> None:
    async with open_shell(kept=False) as shell:
        await shell.say("go")
        assert "ask · sandbox · not saved · " in shell.status
        shell.conversation.cancel()
        shell.app.action_leave()
        await shell.ended()
        assert shell.app.shutdown.note == ""


async def test_ctrl_d_deletes_in_a_text_and_quits_without_one(shell: Shell, engine: FakeEngine) -> None:
    await shell.type("ab", "home", "ctrl+d")
    assert shell.composer.text == "b"
    await shell.press("ctrl+d")
    shell.composer.action_order("leave")
    await shell.ended()


async def test_shift_tab_goes_through_the_modes(shell: Shell) -> None:
    conversation = await shell.say("go")
    seen = []
    for _ in range(4):
        before = conversation.record.permission_mode
        await shell.press("shift+tab")
        await shell.until(lambda: conversation.record.permission_mode is not before)  # noqa: B023 - used in the turn
        seen.append(conversation.record.permission_mode)
    assert seen == [
        PermissionMode.ACCEPT_EDITS,
        PermissionMode.PLAN,
        PermissionMode.ASK,
        PermissionMode.ACCEPT_EDITS,
    ]


async def test_shift_tab_leads_to_auto_once_it_was_chosen(shell: Shell) -> None:
    conversation = await shell.say("go")
    await shell.command("/permissions auto")
    await shell.until(lambda: conversation.record.permission_mode is PermissionMode.AUTO)
    seen = []
    for _ in range(4):
        before = conversation.record.permission_mode
        await shell.press("shift+tab")
        await shell.until(lambda: conversation.record.permission_mode is not before)  # noqa: B023 - used in the turn
        seen.append(conversation.record.permission_mode)
    assert seen == [
        PermissionMode.ASK,
        PermissionMode.ACCEPT_EDITS,
        PermissionMode.PLAN,
        PermissionMode.AUTO,
    ]


async def test_enter_on_an_empty_line_retries_after_an_error(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.become(Errored(2, "network", "The line is down.", True, "r"))
    await shell.pilot.pause()
    assert "demo/guide · ✗ no connection" in shell.status
    assert shell.text.count("The line is down.") == 1
    assert shell.status.endswith("Enter retries · Esc dismisses")
    await shell.press("enter", until=lambda: conversation.retried)


async def test_the_list_over_a_narrow_screen_says_how_it_closes_and_answers_the_question_mark(
    open_shell: Any, engine: FakeEngine
) -> None:
    engine.seed("one", messages=2)
    async with open_shell((60, 20)) as shell:
        await shell.press("ctrl+l", until=lambda: shell.status.endswith("Esc closes"))
        await shell.active.begin()  # as at the start, where the list may be ready before the conversation
        assert shell.status.endswith("Esc closes")
        await shell.press("question_mark", shows="Keys here")
        assert shell.status.endswith("Esc closes")
        await shell.press("escape", until=lambda: shell.top is shell.screen)
        await shell.pilot.resize_terminal(120, 40)
        await shell.until(lambda: shell.status.endswith("Esc returns"))
        await shell.press("escape", until=lambda: shell.status.endswith("? help"))
        assert shell.app.focused is shell.composer


async def test_esc_puts_an_error_away(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.become(Errored(2, "auth", "The key was refused.", False, "r"))
    await shell.until(lambda: "/key sets another key" in shell.text)
    await shell.press("escape", until=lambda: "The key was refused." not in shell.text)
    assert shell.status.endswith("? help")


async def test_what_is_written_to_a_conversation_of_another_process_is_refused_and_stays(
    open_shell: Any, engine: FakeEngine
) -> None:
    held = engine.seed("held", messages=2)
    held.read_only = "Open in another window (pid 4711): answers and messages go there · /fork"
    held.state = AwaitingLlm(1, Run("r", 5), Requesting())
    async with open_shell() as shell:
        await shell.open(held)
        await shell.until(lambda: shell.text.count("pid 4711") == 1)
        assert "read-only · sandbox · " in shell.status
        assert "thinking…" in shell.status
        assert shell.composer.placeholder == ""
        await shell.enter("hello", until=lambda: shell.toasts)
        assert (shell.toasts, shell.composer.text, held.said) == ([held.read_only], "hello", [])
        await shell.press("escape")
        await shell.pilot.pause()
        assert held.cancelled == 0
        assert "pid 4711" in shell.text
        shell.composer.clear()
        await shell.enter("/fork", until=lambda: "Process 4711" not in shell.text)
        assert not shell.conversation.read_only
        await shell.until(lambda: "Read-only" not in shell.composer.placeholder)


async def test_enter_resumes_what_a_restart_cut_off_but_not_what_the_user_stopped(
    open_shell: Any, engine: FakeEngine
) -> None:
    cut = engine.seed("cut off", messages=1)
    cut.resumable = True
    async with open_shell() as shell:
        stopped = await shell.say("go")
        await shell.press("escape")
        stopped.play(StateChanged(Idle(4), engine.now, resumable=True))
        await shell.until(lambda: "ready · stopped after" in shell.status)
        await shell.press("enter")
        await shell.pilot.pause()
        assert stopped.retried == 0
        await shell.enter("/retry", until=lambda: stopped.retried == 1)
        await shell.open(cut)
        await shell.until(lambda: "interrupted, Enter resumes" in shell.status)
        await shell.press("enter", until=lambda: cut.retried == 1)


async def test_what_the_user_stopped_is_not_interrupted_when_it_is_opened_again(
    open_shell: Any, engine: FakeEngine
) -> None:
    stopped = engine.seed("stopped", messages=1)
    stopped.add("Stopped by you after 3 s", Role.SYSTEM)
    stopped.resumable = True
    async with open_shell() as shell:
        await shell.open(stopped)
        await shell.pilot.pause()
        assert "interrupted" not in shell.status


async def test_the_list_counts_conversations_and_has_an_unsent_one_first(open_shell: Any, engine: FakeEngine) -> None:
    engine.seed("finished", messages=2)
    async with open_shell((120, 40)) as shell:
        await shell.type("a draft", shows="2 conversations")
        lines = [line[:28].strip() for line in shell.text.splitlines()]
        assert lines[0] == "recent"
        assert ("New conv" in lines[1], "finished" in lines[2]) == (True, True)
        assert lines[-2] == "2 conversations"


async def test_the_list_says_writing_once_text_arrives(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell((200, 60)) as shell:
        await shell.open(engine.seed("short", messages=1))
        conversation = await shell.say("go")
        await shell.until(lambda: "thinking 0s" in shell.text)
        conversation.play(TextArrived("Hello"))
        await shell.until(lambda: "writing 0s" in shell.text)


async def test_enter_on_an_empty_line_does_nothing_when_idle(shell: Shell, engine: FakeEngine) -> None:
    await shell.open(engine.seed("one", messages=2))
    await shell.press("enter")
    await shell.pilot.pause()
    assert (shell.conversation.retried, shell.conversation.said) == (0, [])


async def test_switching_leaves_a_run_alone_and_marks_it_when_it_ends(open_shell: Any, engine: FakeEngine) -> None:
    other = engine.seed("other", messages=1)
    async with open_shell((200, 60)) as shell:
        conversation = await shell.say("go")
        await shell.open(other)
        assert conversation.cancelled == 0
        assert conversation.listeners == []
        conversation.answer_with("finished")
        await shell.until(lambda: conversation.id in engine.unread)
        assert "unread" in shell.text
        await shell.open(conversation)
        await shell.until(lambda: conversation.id not in engine.unread)
        assert "finished" in shell.text


async def test_a_question_elsewhere_shows_in_the_title_of_a_narrow_screen(open_shell: Any, engine: FakeEngine) -> None:
    other = engine.seed("other", messages=1)
    async with open_shell((60, 20)) as shell:
        await shell.say("go")
        other.ask(question())
        await shell.until(lambda: "◆1" in shell.text)


async def test_alt_and_a_number_open_the_conversation_at_that_place(open_shell: Any, engine: FakeEngine) -> None:
    engine.seed("older", messages=1, age=100)
    newer = engine.seed("newer", messages=1)
    async with open_shell() as shell:
        await shell.press("alt+1", until=lambda: shell.in_view is newer)


async def test_the_clock_runs_only_during_a_run(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        status, rows = shell.parts.status, shell.rows
        assert not status.ticking
        conversation = await shell.say("go")
        assert status.ticking
        assert (rows.ticker.runs, rows.ages.runs) == (True, False)
        conversation.answer_with("done")
        await shell.pilot.pause()
        assert not status.ticking
        assert (rows.ticker.runs, rows.ages.runs) == (False, True), "ages are looked at once a minute"


async def test_the_status_line_says_writing_once_text_arrives(shell: Shell) -> None:
    conversation = await shell.say("go")
    assert "thinking…" in shell.status
    conversation.play(TextArrived("Hello"))
    assert "writing…" in shell.status
    assert "Esc stops" in shell.status


async def test_a_full_window_is_told_once(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.play(ContextChanged(160_000, 200_000, False, 0.5))
    conversation.play(ContextChanged(161_000, 200_000, False, 0.5))
    await shell.pilot.pause()
    assert len([toast for toast in shell.toasts if "context window" in toast]) == 1
    assert "ctx 80%" in shell.text


@pytest.mark.parametrize("width", [200, 120, 80, 60, 40, 24])
async def test_state_and_esc_never_leave_the_status_line(open_shell: Any, width: int) -> None:
    async with open_shell((width, 24)) as shell:
        await shell.active.current()
        shell.conversation.become(AwaitingLlm(1, RUN, Requesting()))
        await shell.pilot.pause()
        assert "thinking" in shell.status
        assert shell.status.endswith("Esc stops")
        assert len(shell.status) <= width - 2


async def test_help_lists_the_keys_of_the_user(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "keymap.toml").write_text('new = "f9"\n')
    async with open_shell((120, 40)) as shell:
        await shell.press("question_mark", until=lambda: isinstance(shell.top, HelpSheet))
        await shell.type("conversation", shows="F9")
        await shell.press("escape")
        await shell.say("go")
        await shell.press("f9", until=lambda: shell.in_view is None)


@pytest.mark.parametrize(
    ("keys", "key", "first"),
    [
        (("ctrl+l",), "question_mark", "Conversation list › Up, k"),
        (("ctrl+p",), "f1", "Sheets with a search line › Up, Ctrl+P"),
        (("f2",), "f1", "Sheets with a search line › Up, Ctrl+P"),
        (("/", "r", "u", "l", "e", "s", "enter"), "question_mark", "Permission rules n"),
        ((), "question_mark", "Everyday keys › Enter"),
    ],
)
async def test_the_help_shows_the_keys_of_where_one_is_and_those_of_every_place_behind_tab(
    open_shell: Any, keys: tuple[str, ...], key: str, first: str
) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.say("go")
        await shell.press(*keys)
        await shell.until(lambda: not keys or shell.top is not shell.screen or shell.app.focused is shell.rows)
        await shell.press(key, until=lambda: isinstance(shell.top, HelpSheet))
        await shell.until(lambda: first in " ".join(shell.text.replace("│", " ").split()))
        await shell.press("tab", shows="All keys and commands")
        await shell.press("tab", until=lambda: first in " ".join(shell.text.replace("│", " ").split()))


def test_a_command_comes_ahead_of_a_setting_of_the_same_name() -> None:
    entries = [
        PageRow("Commands", "command:model", "/model", "choose"),
        PageRow("Settings", "setting:model", "model", ""),
    ]
    assert [one.key for one in find(entries, "model")] == ["command:model", "setting:model"]


async def test_the_palette_runs_a_command(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.press("ctrl+p", until=lambda: isinstance(shell.top, RowsSheet))
        await shell.enter("doctor", until=lambda: isinstance(shell.top, TextSheet))
        await shell.until(lambda: "everything works" in shell.text)


def test_every_action_has_a_name_and_no_key_is_bound_twice_in_one_place() -> None:
    assert len({key.id for key in KEYS}) == len(KEYS)
    for scope in {key.scope for key in KEYS}:
        keys = [name for key in KEYS if key.scope is scope for name in key.keys.split(",")]
        assert len(keys) == len(set(keys))


async def test_every_action_of_a_key_is_known(shell: Shell) -> None:
    named = {name for key in KEYS for name in re.findall(r"\bact\('(\w+)'\)", key.action)}
    assert named == set(Actions(shell.ctx).by_key)


def test_the_help_names_every_action() -> None:
    assert len(help_rows({})) == len(KEYS) - 9 - 6 - 4 + 3
    assert len(set(EVERYDAY)) == 20
    assert len(how_to()) == 10
    assert key_names("ctrl+j,shift+enter") == "Ctrl+J, Shift+Enter"


@pytest.mark.parametrize("text", ["nonsense = 'x'", "new = 5", "= broken"])
def test_a_keymap_that_makes_no_sense_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keymap.toml"
    path.write_text(text)
    with pytest.raises(KeymapError, match=r"keymap\.toml"):
        read_keymap(path)


async def test_what_was_typed_before_there_was_a_desk_counts_for_what_esc_does(shell: Shell) -> None:
    shell.dock.is_loaded = False
    await shell.type("early")
    await shell.active.begin()
    assert shell.composer.text == "early"
    assert shell.status.endswith("Esc Esc clears")


async def test_end_in_an_empty_composer_goes_to_the_newest_text(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.answer_with("\n\n".join(f"part {number}" for number in range(60)))
    await shell.shows("part 59")
    await shell.press("pageup", "pageup", until=lambda: "part 59" not in shell.text)
    await shell.type("ab", "home", "end", "c", until=lambda: shell.composer.text == "abc")
    assert "part 59" not in shell.text
    await shell.press("ctrl+u", "end", shows="part 59")
