"""/review in the real program: begun from its page, its findings opened, fixed, dropped, and there after a restart."""

from __future__ import annotations

import json
from typing import Any

from tests.phoenix_tui.cli.test_review_command import FOUND, HIGH, LOW, repository
from tests.support.git_repositories import git
from tests.support.journeys import Claude, says
from tests.support.program import ENTER, in_lines, on_screen


def last_words(server: Any) -> str:
    """The words of the newest message of the newest request."""
    content = json.loads(server.requests[-1].body)["messages"][-1]["content"]
    return "\n".join(block["text"] for block in content)


async def test_findings_are_listed_dropped_restored_and_sent_to_be_fixed(claude: Claude) -> None:
    phoenix, server = await claude(FOUND, says("Two findings in all."), says("Mended."))
    repository(phoenix.cwd)
    async with on_screen(phoenix, columns=100) as running:
        await running.press("/review\r", "uncommitted changes", "staged changes", "changes since main", "Add b")
        await running.press(ENTER, "2 findings · /review lists", "Two findings in all.")
        await running.press("/review\r", "High", "a.py:2", "Divides by zero", "b.py", "Has no test.")
        await running.press("d", "Dropped: a.py:2.")
        await running.press("u", "Restored.")
        await running.press("d", "Dropped: a.py:2.")
        await running.press("f", "Mended.")
        assert f"- b.py (low): {LOW['text']}" in last_words(server)
        await running.press("/review\r", "all findings are fixed or dropped")
    async with on_screen(phoenix, columns=100) as running:
        await running.press("/review\r", "all findings are fixed or dropped")


async def test_a_review_is_begun_and_its_findings_are_read_again_in_lines(claude: Claude) -> None:
    phoenix, _ = await claude(FOUND, says("Two findings in all."))
    repository(phoenix.cwd)
    async with in_lines(phoenix, columns=200) as running:
        await running.press("/review nowhere\r", "There is no branch, tag or commit nowhere here")
        await running.press("/review main\r", "Two findings in all.", "Ready")
        await running.press("/review\r", f"1. high: a.py:2: {HIGH['text']}", f"2. low: b.py: {LOW['text']}")
        await running.press("1\r", "1. open the file at this line", "3. drop it")
        await running.press("3\r", "Dropped: a.py:2.")
    async with in_lines(phoenix, columns=200) as running:
        await running.press("/review\r", f"1. low: b.py: {LOW['text']}")


async def test_without_a_repository_or_changes_it_says_so(claude: Claude) -> None:
    phoenix, _ = await claude()
    async with on_screen(phoenix, columns=120) as running:
        await running.press("/review\r", "is in no git repository")
    git(phoenix.cwd, "init", "-q")
    async with on_screen(phoenix, columns=120) as running:
        await running.press("/review --staged\r", "There is nothing to review: no staged changes.")
        await running.press("/review\r", "No changes to review here.")
