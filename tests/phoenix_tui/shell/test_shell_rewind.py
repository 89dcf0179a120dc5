"""Rewinding and the changes of a conversation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from msgspec.structs import replace

from engine.machine.states import AwaitingLlm, Requesting, Run
from engine.ports.files import BranchRow, Coverage, FileChange, Restored
from engine.rewind.rewind import BUSY, ChangedFile, PreviewFile, RewindScope, Takeback
from phoenix_tui.widgets.diff_view import DiffView
from tests.support.fake_rewinding import FILE, FakeRewinding, change, point
from tests.support.plain_runner import PlainRunner
from tests.support.shell import Shell
from tools.contract import Command, DiffDisplay

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


async def test_a_pair_of_escapes_lists_prompts_and_enter_by_habit_changes_nothing(shell: Shell) -> None:
    rewinding = two_turns()
    await prepare(shell, rewinding)
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    assert "Fix the port" in shell.text
    assert "2 files" in shell.text
    await shell.press("enter", until=lambda: "Enter selects" not in shell.text)
    assert rewinding.asked == []


async def test_a_pair_of_escapes_on_a_draft_still_clears_it(shell: Shell) -> None:
    await prepare(shell, two_turns())
    await shell.type("draft")
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: not shell.composer.text)
    assert "Enter selects" not in shell.text


@pytest.mark.parametrize(
    ("downs", "scope"), [(0, RewindScope.BOTH), (1, RewindScope.CONVERSATION), (2, RewindScope.FILES)]
)
async def test_what_goes_back_is_chosen(shell: Shell, downs: int, scope: RewindScope) -> None:
    rewinding = two_turns(files=(PreviewFile(change("server.py", 1, 2)),))
    await prepare(shell, rewinding)
    await shell.enter("/rewind", shows="Enter selects")
    await shell.press("down", "enter", shows="Rewind to before “Fix the port”")
    await shell.press(*["down"] * downs, "enter", until=lambda: rewinding.asked)
    assert rewinding.asked == [("rewind", 3, scope, ())]


async def test_what_came_before_a_prompt_can_become_a_summary_instead(shell: Shell) -> None:
    rewinding = two_turns(files=(HERS,))
    await prepare(shell, rewinding)
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("down", "enter", shows="s summarizes instead")
    await shell.press("s", until=lambda: shell.conversation.context.asked == ["compact before 3"])
    assert rewinding.asked == []


async def test_before_the_first_prompt_no_summary_is_offered(shell: Shell) -> None:
    await prepare(shell, two_turns())
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("down", "down", "enter", shows="Rewind to before “Explain it”")
    await shell.press("s")
    assert "summarizes" not in shell.text
    assert shell.conversation.context.asked == []


async def test_what_somebody_else_changed_is_kept_until_space_says_otherwise(shell: Shell) -> None:
    rewinding = two_turns(files=(HERS, PreviewFile(change("server.py", 1, 2))))
    await prepare(shell, rewinding)
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("down", "enter", shows="restores 1 file, keeps 1 as it is")
    assert "changed since then by someone else" in shell.text
    await shell.press("down", "down", "down", "space", shows="restores 2 files")
    await shell.press("enter", until=lambda: rewinding.asked)
    assert rewinding.asked == [("rewind", 3, RewindScope.FILES, (b"notes.md",))]


async def test_d_shows_what_going_back_does_to_a_file(shell: Shell) -> None:
    await prepare(shell, two_turns(files=(HERS,)))
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("down", "enter", shows="notes.md")
    await shell.press("down", "down", "down", "d", shows="+ is here")


async def test_going_back_shows_the_branch_with_the_prompt_in_the_box(shell: Shell) -> None:
    branch = shell.engine.seed("Relay", messages=2)
    rewinding = two_turns(files=(HERS,), shows=branch.id, problems=(Restored(b"a\x1b[31m.txt", "holds other files"),))
    await prepare(shell, rewinding)
    left = shell.conversation.id
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("down", "enter", shows="Rewind to before")
    await shell.press("enter", until=lambda: shell.conversation.id == branch.id)
    await shell.until(lambda: len(shell.toasts) == 2)
    assert shell.composer.text == "the prompt"
    assert left not in shell.engine.opened
    assert shell.toasts == [
        "1 file restored. You are in a new branch; "
        "Esc Esc to empty the line, then /rewind, then u returns to the previous one.",
        "Not restored: a.txt (holds other files).",
    ]


async def test_u_takes_the_last_rewind_back(shell: Shell) -> None:
    rewinding = two_turns(takeback=Takeback("step", 0.0, 2, "another"))
    await prepare(shell, rewinding)
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "u undoes" in shell.text)
    await shell.press("u", until=lambda: rewinding.asked)
    assert rewinding.asked == [("undo", ())]


async def test_home_and_end_go_to_the_first_and_the_last_prompt(shell: Shell) -> None:
    await prepare(shell, two_turns())
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("end", "enter", shows="Rewind to before “Explain it”")
    await shell.press("escape", until=lambda: "Rewind to before" not in shell.text)
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("end", "home", "enter", until=lambda: "Enter selects" not in shell.text)
    assert "Rewind to before" not in shell.text


async def test_undoing_over_the_work_of_somebody_else_asks_first(shell: Shell) -> None:
    rewinding = two_turns(takeback=Takeback("step", 0.0, 2, ""), files=(HERS,))
    await prepare(shell, rewinding)
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "u undoes" in shell.text)
    await shell.press("u", shows="Undo the last rewind")
    await shell.press("escape", until=lambda: "Undo the last rewind" not in shell.text)
    assert rewinding.asked == []


@pytest.mark.parametrize(("key", "take_back"), [("f", False), ("t", True)])
async def test_a_restore_that_was_cut_off_is_finished_or_taken_back(shell: Shell, key: str, take_back: bool) -> None:
    rewinding = two_turns(unfinished=3)
    await prepare(shell, rewinding)
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "A restore of 3 files was interrupted" in shell.text)
    await shell.press(key, until=lambda: rewinding.asked)
    assert rewinding.asked == [("finish", take_back)]


async def test_while_a_run_is_under_way_it_is_refused_in_one_sentence(shell: Shell) -> None:
    await prepare(shell, two_turns())
    shell.conversation.become(AwaitingLlm(1, Run("r", 5), Requesting()))
    await shell.enter("/undo", until=lambda: BUSY in shell.toasts)


async def test_what_another_process_owns_is_refused_with_its_reason(shell: Shell) -> None:
    conversation = shell.engine.seed("Relay", messages=4)
    conversation.read_only = "Process 12 has this conversation open."
    desk = shell.active
    desk.services = replace(desk.services, rewinding=two_turns())
    await shell.open(conversation)
    await shell.enter("/rewind", shows="Process 12 has this conversation open.")


async def test_without_files_only_the_conversation_is_offered_and_the_reason_said(shell: Shell) -> None:
    await prepare(shell, two_turns(refusal="The folder /x no longer exists; only the conversation can be rewound."))
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("down", "enter", shows="The folder /x no longer exists")
    assert "the conversation is kept" not in shell.text


async def test_what_is_left_as_it_is_now_is_said(shell: Shell) -> None:
    coverage = Coverage((".git", ".env"), 2, ("film.mp4",))
    await prepare(shell, two_turns(files=(HERS,), coverage=coverage))
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("down", "enter", shows="Not restored, even if deleted: .env.")
    assert "Not saved: film.mp4 (too large). Git commits are kept." in " ".join(shell.text.split())


async def test_branches_stand_as_a_tree_and_enter_goes_to_one(shell: Shell) -> None:
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
    await shell.enter("/branches", shows="└─ after message 2: again")
    assert "you are here" in shell.text
    await shell.press("down", "enter", until=lambda: shell.conversation.id == other.id)
    assert rewinding.asked == [("switch", other.id)]


async def test_where_nothing_was_said_there_is_nothing_to_go_back_to(shell: Shell) -> None:
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "There are no prompts to rewind to yet. Each message becomes one." in shell.text)
    await shell.press("escape", until=lambda: shell.top is shell.screen)
    assert shell.toasts == []


async def test_a_third_escape_begins_another_pair(shell: Shell) -> None:
    await prepare(shell, two_turns())
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: "Enter selects" in shell.text)
    await shell.press("escape", until=lambda: "Enter selects" not in shell.text)
    await shell.press("escape")
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


LONG = "".join(f" line {number}\n" for number in range(60))
TWO_CHANGES = f"--- a\n+++ b\n@@ -1,124 +1,124 @@\n-port = 80\n+port = 8080\n{LONG}-host = 1\n+host = 2\n{LONG}"
FILES = (
    ChangedFile(change("server.py", 2, 2)),
    ChangedFile(change("new.py", 9, kind="+"), "changed since then by someone else"),
    ChangedFile(FileChange(b"logo.png", FILE, replace(FILE, content=b"another"))),
    ChangedFile(FileChange(b"run.sh", FILE, replace(FILE, mode=0o755))),
)


class Rewinding(FakeRewinding):
    """Shows a long change of one file, a short one of the next, and none of what is no text."""

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        match change.name:
            case "server.py":
                return DiffDisplay("server.py", TWO_CHANGES, 2, 2)
            case "new.py":
                return DiffDisplay("new.py", "--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+begin = True\n", 1, 0, created=True)
            case _:
                return None


async def opened(shell: Shell, rewinding: FakeRewinding | None = None) -> None:
    found = (point(3, "Fix the port", change("server.py", 1, 1)), point(2, "Explain it"), point(1, "Make it", NEW_FILE))
    desk = shell.active
    desk.services = replace(desk.services, rewinding=rewinding or Rewinding(found, changes=FILES))
    await shell.open(shell.engine.seed("Relay", messages=4))
    await shell.pilot.pause()
    await shell.enter("/diff")


NEW_FILE = change("new.py", 9, kind="+")


async def test_diff_shows_all_files_and_the_first_change(shell: Shell) -> None:
    await opened(shell)
    await shell.until(lambda: "port = 8080" in shell.text)
    rows = shell.text.splitlines()
    assert [" ".join(row.split()) for row in rows if "files" in row] == ["all of this conversation › 4 files +11 -2"]
    assert next(row.split() for row in rows if "server.py" in row) == ["~", "server.py", "+2", "-2"]
    assert [row.split() for row in rows if "new.py" in row] == [["+", "new.py", "+9", "*"]]


async def test_brackets_go_from_change_to_change_and_on_to_the_next_file(shell: Shell) -> None:
    await opened(shell)
    await shell.until(lambda: "port = 8080" in shell.text)
    view = shell.top.query_one(DiffView)
    assert "host = 2" not in shell.text
    await shell.press("]", shows="host = 2")
    await shell.press("]", shows="begin = True")
    assert "changed since then by someone else" in shell.text
    assert view.scroll_y == 0


async def test_a_file_without_lines_says_why(shell: Shell) -> None:
    await opened(shell)
    await shell.until(lambda: "port = 8080" in shell.text)
    await shell.press("n", "n", shows="This file is not text, or is too large to show.")
    await shell.press("n", shows="The mode changed from 644 to 755.")


async def test_left_and_right_go_through_the_turns_that_changed_files(shell: Shell) -> None:
    await opened(shell)
    await shell.until(lambda: "port = 8080" in shell.text)
    await shell.press("right", shows="Fix the port")
    await shell.press("right", shows="begin = True")
    assert "Make it" in shell.text
    assert "Explain it" not in shell.text
    await shell.press("left", "left", shows="all of this conversation")


async def test_the_change_is_copied_as_a_patch(shell: Shell) -> None:
    await opened(shell)
    await shell.until(lambda: "port = 8080" in shell.text)
    await shell.press("c", until=lambda: shell.toasts)
    assert shell.toasts[0].startswith(f"Copied {len(TWO_CHANGES):,} characters")


async def test_a_change_is_quoted_in_the_message_to_ask_about_it(shell: Shell) -> None:
    await opened(shell)
    await shell.until(lambda: "port = 8080" in shell.text)
    await shell.press("]", shows="host = 2")
    await shell.press("a", until=lambda: shell.composer.has_focus)
    assert shell.composer.content == "About server.py, line 62:\n```diff\n-host = 1\n+host = 2\n```\n"
    await shell.type("why?", until=lambda: shell.composer.content.endswith("```\nwhy?"))


async def test_a_conversation_that_changed_nothing_says_so(shell: Shell) -> None:
    await opened(shell, FakeRewinding((point(1, "Explain it"),)))
    await shell.until(lambda: "No files changed." in shell.text)
    await shell.press("n", "]", "c", "o", "escape", until=lambda: "No files changed." not in shell.text)
    assert shell.toasts == []


async def test_without_a_conversation_it_shows_what_git_has_not_committed(shell: Shell) -> None:
    folder = shell.active.folder
    await PlainRunner().run(Command(("git", "init", "-q"), folder))
    (folder / "draft.py").write_text("begin = 1\n")
    desk = shell.active
    desk.services = replace(desk.services, runner=PlainRunner())
    await shell.enter("/diff", shows="begin = 1")
    assert "not committed in git" in shell.text
    await shell.press("left", shows="No files changed.")
