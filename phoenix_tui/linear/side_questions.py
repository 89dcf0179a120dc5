"""Questions beside the conversation: asked while the agent works, answered as lines, stored nowhere."""

from __future__ import annotations

import asyncio

from engine.api.conversation import ConversationApi
from engine.records import SideExchange
from phoenix_tui.features.side_questions import SideAnswer, answer_of, in_one_line
from phoenix_tui.linear.conversation import LinearConversation
from phoenix_tui.linear.message_lines import AnswerLines


class LinearSideQuestions:
    """Side questions that wait for an answer."""

    def __init__(self, active: LinearConversation) -> None:
        self._active = active
        self._asked: set[asyncio.Task[None]] = set()
        self.exchanges: list[SideExchange] = []
        """The questions asked one on the other, the newest last."""
        self.about = ""
        """Conversation that they were asked about."""

    def ask(self, conversation: ConversationApi, question: str, *, more: bool = False) -> asyncio.Task[None]:
        """Ask; the lines come with the answer. With `more` the model is given the questions before it."""
        if not more or self.about != conversation.id:
            self.exchanges, self.about = [], conversation.id
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
        exchanges = self.exchanges
        answer = await answer_of(conversation.side, question, tuple(exchanges))
        if not answer.failed:
            exchanges.append(SideExchange(question, answer.text))
        self._active.say(f"Side question: {in_one_line(question)}", *_lines(answer))
        if self._active.rested.is_set():
            self._active.invite()


def _lines(answer: SideAnswer) -> list[str]:
    """The answer without its Markdown signs, or why there is none."""
    if answer.failed:
        return [f"Refused: {answer.text}"]
    words = AnswerLines(begun=True)
    return [*words.add(answer.text), *words.end(), "End of the side answer."]
