"""Questions beside the conversation: asked while the agent works, answered as lines, stored nowhere."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from engine.api.conversation import ConversationApi
from phoenix_tui.features.side_questions import SideAnswer, answer_of, in_one_line, why_not
from phoenix_tui.linear.command import LinearCommand
from phoenix_tui.linear.spoken import SpokenAnswer

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront

ASKED: Final = "Asked beside the conversation. Esc drops the question where nothing else runs."


class SpokenSideQuestions:
    """Those that wait for an answer."""

    def __init__(self, front: LinearFront) -> None:
        self._front = front
        self._asked: set[asyncio.Task[None]] = set()

    def ask(self, conversation: ConversationApi, question: str) -> asyncio.Task[None]:
        """Ask; the lines come with the answer."""
        task = asyncio.get_running_loop().create_task(self._answer(conversation, question))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        return task

    def drop(self) -> bool:
        """Wait for none of them any more; False where none was asked."""
        dropped = [task.cancel() for task in self._asked]
        return bool(dropped)

    async def close(self) -> None:
        """Drop all and wait until they have ended."""
        asked = tuple(self._asked)
        self.drop()
        await asyncio.gather(*asked, return_exceptions=True)

    async def _answer(self, conversation: ConversationApi, question: str) -> None:
        answer = await answer_of(conversation.side.ask, question)
        self._front.say(f"Beside the conversation, {in_one_line(question)}", *_lines(answer))
        if self._front.talk.rested.is_set():
            self._front.invite()


def _lines(answer: SideAnswer) -> list[str]:
    """The answer without its Markdown signs, or why there is none."""
    if answer.failed:
        return [f"Refused: {answer.text}"]
    words = SpokenAnswer(begun=True)
    return [*words.add(answer.text), *words.end(), "End of the answer beside it."]


async def _btw(front: LinearFront, question: str) -> None:
    conversation = front.talk.conversation
    refused = why_not(conversation, question)
    if conversation is None or refused:
        front.say(refused)
        return
    asked = front.beside.ask(conversation, question)
    if front.terminal.keyboard.is_terminal:
        front.say(ASKED)
    else:  # the lines of a pipe are taken one after the other
        await asyncio.wait((asked,))


COMMANDS: Final[dict[str, LinearCommand]] = {
    "btw": LinearCommand("a question beside the conversation; nothing is stored, the agent works on", _btw),
}
