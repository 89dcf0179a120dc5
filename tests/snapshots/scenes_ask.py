"""Questions of the agent: one, several with long labels, own words, a preview, hostile texts."""

from __future__ import annotations

from typing import Any, Final

from tests.phoenix_tui.shell.test_shell_ask import ask_question
from tests.snapshots.booth import LARGE, SMALL, Booth
from tests.support.questions import COLOUR, PARTS

BOTH: Final = (SMALL, LARGE)
LONG: Final[dict[str, Any]] = {
    "question": "再試行の上限はどこに置きますか。Where shall the upper bound live, given that both clients read it?",
    "header": "Upper bound",
    "options": [
        {
            "label": "In relay/retry.py beside the doubling, as a constant that the tests import",
            "description": "One place; the command line cannot change it. \x1b[2JNothing else is touched.",
        },
        {"label": "In the settings", "description": "Users can change it.", "preview": "[retry]\nmost_seconds = 30"},
    ],
}


async def questions(place: Booth) -> None:
    """One question, three of them, the selected option with its preview, the line for own words."""
    for name, asked in (("one", (COLOUR,)), ("several", (LONG, PARTS, COLOUR))):
        async with place.opened() as shell:
            await shell.say("Bound the delay")
            shell.conversation.ask(ask_question(*asked))
            await shell.shows("1 ( )")
            shell.answering.since = shell.question.gate.since = shell.answering.typed_at = 0.0  # long ago
            shown = shell.question._question
            assert shown is not None
            shell.question._offer(shown, guarded=False)
            await place.take(shell, name, BOTH)
            if name == "several":
                await shell.pilot.press("down", "down")
                await shell.shows("most_seconds")
                await place.take(shell, "selected", BOTH)
                await shell.pilot.press("o")
                await shell.shows("Enter takes your words")
                await place.take(shell, "words", (SMALL,))


SCENES: Final = {"questions": questions}
