"""What fills the context window, and making room, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.executor.context_manager import HIGHEST, LOWEST, ContextReport, Edited
from engine.executor.requests import Refused
from phoenix_tui.linear.command import LinearCommand, open_conversation, tell_outcome
from phoenix_tui.models.choice import GUIDE
from phoenix_tui.text.checkpoint_text import use_in_words
from tools.clean import clean, clean_line
from tools.wording import counted

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront

BIGGEST: Final = 5
"""Parts of the window that are named."""


async def _context(front: LinearFront, word: str) -> None:
    conversation = open_conversation(front)
    if conversation is None:
        return
    name, _, value = word.partition(" ")
    active = conversation.context
    edits = {
        "prune": active.prune,
        "images": active.strip_images,
        "back": active.put_back,
        "undo": active.undo,
        "restore": active.restore,
    }
    if name in edits:
        _say_edit(front, await edits[name]())
    elif name == "threshold":
        await _threshold(front, value)
    elif name:
        front.say(f"There is no /context {clean_line(name)}. There are {', '.join(edits)} and threshold.")
    else:
        front.say(*_report(await active.report(), conversation.record.model))


def _say_edit(front: LinearFront, outcome: Edited | Refused) -> None:
    if isinstance(outcome, Edited):
        front.say(f"Done, {counted(outcome.count, 'part')}: from {outcome.before:,} to about {outcome.after:,} tokens.")
    else:
        tell_outcome(front, outcome, "")


async def _threshold(front: LinearFront, value: str) -> None:
    conversation = open_conversation(front)
    if conversation is None:
        return
    never = value == "never"
    if not never and not (value.isdecimal() and LOWEST <= int(value) <= HIGHEST):
        front.say(f"A threshold is {LOWEST} to {HIGHEST} per cent, or never.")
        return
    await conversation.context.set_threshold(HIGHEST + 1 if never else int(value))
    front.say(f"Older messages are summarized {'never' if never else f'at {value} per cent'}.")


def _report(report: ContextReport, model: str) -> Iterator[str]:
    about = "about " if report.estimated else ""
    if model == GUIDE and not report.window:
        yield f"Context: {GUIDE} follows rules and has no window to fill."
    elif report.window:
        share = report.tokens * 100 // report.window
        yield f"Context: {about}{report.tokens:,} of {report.window:,} tokens, {share} per cent."
    else:
        yield f"Context: {about}{report.tokens:,} tokens; the window of this model is unknown."
    for filling, tokens in report.measured.shares:
        if tokens:
            yield f"{filling.value}: about {tokens:,} tokens."
    for part in report.measured.parts[:BIGGEST]:
        yield f"Message {part.seq}, {part.filling.value}, about {part.tokens:,} tokens: {clean_line(part.label)}"
    at = f"at {report.compact_percent} per cent" if report.compact_percent <= HIGHEST else "never"
    yield f"Older messages are summarized {at}. /context threshold NUMBER changes that."
    if report.checkpoints is not None:
        yield use_in_words(report.checkpoints)
    yield from _ways(report)


def _ways(report: ContextReport) -> Iterator[str]:
    """What can be done now."""
    if report.summarizable:
        yield f"/compact summarizes {counted(report.summarizable, 'message')} and keeps {report.kept}."
    if report.shortens or report.clears:
        does, number = ("shortens", report.shortens) if report.shortens else ("clears", report.clears)
        yield f"/context prune {does} {counted(number, 'old tool result')}."
    if report.images:
        yield f"/context images takes {counted(report.images, 'image')} out."
    if report.omitted:
        yield f"/context back sends {counted(report.omitted, 'part')} again that are left out."
    if report.earlier is not None:
        yield "/context restore sends the messages again that the newest summary stands for."
    if report.can_undo:
        yield "/context undo takes the last change back."


async def _prompt(front: LinearFront, _: str) -> None:
    conversation = open_conversation(front)
    if conversation is not None:
        sent = conversation.context.prompt()
        front.say(*clean(f"{sent.static}\n\n{sent.dynamic}").splitlines())
        front.say(f"{counted(len(sent.tools), 'tool')}: {clean_line(', '.join(sent.tools)) or 'none'}.")


COMMANDS: Final[dict[str, LinearCommand]] = {
    "prompt": LinearCommand("the system prompt as it is sent, and the tools beside it", _prompt),
    "context": LinearCommand("what fills the context window, and how to make room", _context),
}
