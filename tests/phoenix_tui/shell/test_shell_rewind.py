"""Esc Esc: the list of prompts, the last look, what is refused, branches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from msgspec.structs import replace

from engine.machine.states import AwaitingLlm, Requesting, Run
from engine.ports.files import BranchRow, Coverage, Restored
from engine.rewind.rewind import BUSY, PreviewFile, RewindScope, Takeback
from tests.support.fake_rewinding import FakeRewinding, change, point
from tests.support.shell import Shell

OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]
HERS = PreviewFile(change("notes.md", 1, 2), "changed since then by someone else")


async def prepare(shell: Shell, rewinding: FakeRewinding) -> None:
    """An open conversation in which something was said."""
    desk = shell.active
    desk.services = replace(desk.services, rewinding=rewinding)
    await shell.open(shell.engine.seed("Relay", messages=4))
    await shell.pilot.pause()


def two_turns(**more: Any) -> FakeRewinding:
    found = (point(3, "Fix the port", change("server.py", 2, 1), change("new.py", 9, kind="+")), point(1, "Explain it"))
    return FakeRewinding(found, **more)


async def test_a_pair_of_escapes_lists_prompts_and_enter_by_habit_changes_nothing(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        rewinding = two_turns()
        await prepare(shell, rewinding)
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        assert "Fix the port" in shell.text
        assert "2 files" in shell.text
        await shell.pilot.press("enter")
        await shell.until(lambda: "Enter selects" not in shell.text)
        assert rewinding.asked == []


async def test_a_pair_of_escapes_on_a_draft_still_clears_it(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await prepare(shell, two_turns())
        await shell.type("draft")
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: not shell.composer.text)
        assert "Enter selects" not in shell.text


@pytest.mark.parametrize(
    ("downs", "scope"), [(0, RewindScope.BOTH), (1, RewindScope.CONVERSATION), (2, RewindScope.FILES)]
)
async def test_what_goes_back_is_chosen(open_shell: OpenShell, downs: int, scope: RewindScope) -> None:
    async with open_shell() as shell:
        rewinding = two_turns(files=(PreviewFile(change("server.py", 1, 2)),))
        await prepare(shell, rewinding)
        await shell.type("/rewind")
        await shell.pilot.press("enter")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: "Rewind to before “Fix the port”" in shell.text)
        await shell.pilot.press(*["down"] * downs, "enter")
        await shell.until(lambda: rewinding.asked)
        assert rewinding.asked == [("rewind", 3, scope, ())]


async def test_what_came_before_a_prompt_can_become_a_summary_instead(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        rewinding = two_turns(files=(HERS,))
        await prepare(shell, rewinding)
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: "s summarizes instead" in shell.text)
        await shell.pilot.press("s")
        await shell.until(lambda: shell.conversation.context.asked == ["compact before 3"])
        assert rewinding.asked == []


async def test_before_the_first_prompt_no_summary_is_offered(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await prepare(shell, two_turns())
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "down", "enter")
        await shell.until(lambda: "Rewind to before “Explain it”" in shell.text)
        await shell.pilot.press("s")
        assert "summarizes" not in shell.text
        assert shell.conversation.context.asked == []


async def test_what_somebody_else_changed_is_kept_until_space_says_otherwise(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        rewinding = two_turns(files=(HERS, PreviewFile(change("server.py", 1, 2))))
        await prepare(shell, rewinding)
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: "restores 1 file, keeps 1 as it is" in shell.text)
        assert "changed since then by someone else" in shell.text
        await shell.pilot.press("down", "down", "down", "space")
        await shell.until(lambda: "restores 2 files" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: rewinding.asked)
        assert rewinding.asked == [("rewind", 3, RewindScope.FILES, (b"notes.md",))]


async def test_d_shows_what_going_back_does_to_a_file(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await prepare(shell, two_turns(files=(HERS,)))
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: "notes.md" in shell.text)
        await shell.pilot.press("down", "down", "down", "d")
        await shell.until(lambda: "+ is here" in shell.text)


async def test_going_back_shows_the_branch_with_the_prompt_in_the_box(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        branch = shell.engine.seed("Relay", messages=2)
        rewinding = two_turns(
            files=(HERS,), shows=branch.id, problems=(Restored(b"a\x1b[31m.txt", "holds other files"),)
        )
        await prepare(shell, rewinding)
        left = shell.conversation.id
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: "Rewind to before" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.conversation.id == branch.id)
        await shell.until(lambda: len(shell.toasts) == 2)
        assert shell.composer.text == "the prompt"
        assert left not in shell.engine.opened
        assert shell.toasts == [
            "1 file restored. You are in a new branch; "
            "Esc Esc to empty the line, then Esc Esc, then u returns to the previous one.",
            "Not restored: a.txt (holds other files).",
        ]


async def test_u_takes_the_last_rewind_back(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        rewinding = two_turns(takeback=Takeback("step", 0.0, 2, "another"))
        await prepare(shell, rewinding)
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "u undoes" in shell.text)
        await shell.pilot.press("u")
        await shell.until(lambda: rewinding.asked)
        assert rewinding.asked == [("undo", ())]


async def test_undoing_over_the_work_of_somebody_else_asks_first(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        rewinding = two_turns(takeback=Takeback("step", 0.0, 2, ""), files=(HERS,))
        await prepare(shell, rewinding)
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "u undoes" in shell.text)
        await shell.pilot.press("u")
        await shell.until(lambda: "Undo the last rewind" in shell.text)
        await shell.pilot.press("escape")
        await shell.until(lambda: "Undo the last rewind" not in shell.text)
        assert rewinding.asked == []


@pytest.mark.parametrize(("key", "take_back"), [("f", False), ("t", True)])
async def test_a_restore_that_was_cut_off_is_finished_or_taken_back(
    open_shell: OpenShell, key: str, take_back: bool
) -> None:
    async with open_shell() as shell:
        rewinding = two_turns(unfinished=3)
        await prepare(shell, rewinding)
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "A restore of 3 files was interrupted" in shell.text)
        await shell.pilot.press(key)
        await shell.until(lambda: rewinding.asked)
        assert rewinding.asked == [("finish", take_back)]


async def test_while_a_run_is_under_way_it_is_refused_in_one_sentence(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await prepare(shell, two_turns())
        shell.conversation.become(AwaitingLlm(1, Run("r", 5), Requesting()))
        await shell.type("/undo")
        await shell.pilot.press("enter")
        await shell.until(lambda: BUSY in shell.toasts)


async def test_what_another_process_owns_is_refused_with_its_reason(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        conversation = shell.engine.seed("Relay", messages=4)
        conversation.read_only = "Process 12 has this conversation open."
        desk = shell.active
        desk.services = replace(desk.services, rewinding=two_turns())
        await shell.open(conversation)
        await shell.type("/rewind")
        await shell.pilot.press("enter")
        await shell.until(lambda: "Process 12 has this conversation open." in shell.toasts)


async def test_without_files_only_the_conversation_is_offered_and_the_reason_said(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await prepare(shell, two_turns(refusal="The folder /x no longer exists; only the conversation can be rewound."))
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: "The folder /x no longer exists" in shell.text)
        assert "the conversation is kept" not in shell.text


async def test_what_is_left_as_it_is_now_is_said(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        coverage = Coverage((".git", ".env"), 2, ("film.mp4",))
        await prepare(shell, two_turns(files=(HERS,), coverage=coverage))
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: "Not restored, even if deleted: .env." in shell.text)
        assert "Not saved: film.mp4 (too large). Git commits are kept." in " ".join(shell.text.split())


async def test_branches_stand_as_a_tree_and_enter_goes_to_one(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        conversation = shell.engine.seed("Relay", messages=4)
        other = shell.engine.seed("Relay", messages=2)
        family = (
            BranchRow(conversation.id, "Relay", "", 0, 4, 0.0, "second", "first"),
            BranchRow(other.id, "Relay", conversation.id, 2, 3, 0.0, "again", "again"),
        )
        rewinding = FakeRewinding(family=family)
        desk = shell.active
        desk.services = replace(desk.services, rewinding=rewinding)
        await shell.open(conversation)
        await shell.type("/branches")
        await shell.pilot.press("enter")
        await shell.until(lambda: "└─ after message 2: again" in shell.text)
        assert "you are here" in shell.text
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: shell.conversation.id == other.id)
        assert rewinding.asked == [("switch", other.id)]


async def test_where_nothing_was_said_there_is_nothing_to_go_back_to(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: shell.toasts)
        assert shell.toasts == ["There are no prompts to rewind to yet."]


async def test_a_third_escape_begins_another_pair(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await prepare(shell, two_turns())
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("escape")
        await shell.until(lambda: "Enter selects" not in shell.text)
        await shell.pilot.press("escape")
        await shell.pilot.pause()
        assert "Enter selects" not in shell.text


async def test_the_heading_names_every_key_also_where_there_is_little_room(open_shell: OpenShell) -> None:
    async with open_shell((60, 20)) as shell:
        family = tuple(BranchRow(name, name, "", 0, 4, 0.0, "second", "first") for name in "abc")
        await prepare(shell, two_turns(takeback=Takeback("step", 0.0, 2, "another"), family=family))
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: "Enter selects" in shell.text)
        heading = next(row for row in shell.text.splitlines() if "Rewind" in row)
        assert "…" not in heading
        assert [key in heading for key in ("Enter selects", "u undo ", "b branches")] == [True] * 3
