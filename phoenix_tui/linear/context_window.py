"""Contents of the context window, and making room, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.api.conversation import ContextApi
from engine.executor.context_manager import HIGHEST, LOWEST, ContextReport, Edited
from engine.executor.requests import Refused
from phoenix_tui.features.context_window import sent_prompt, sent_to
from phoenix_tui.features.init import init
from phoenix_tui.features.mcp import server_shares
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.models.choice import GUIDE
from phoenix_tui.text.context_text import compaction_lines, use_in_words
from tools.clean import clean_line
from tools.wording import counted, number_within

BIGGEST: Final = 5
"""Parts of the window that are named."""


async def _context(ctx: LinearContext, word: str) -> None:
    conversation = sent_to(ctx)
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
        _say_edit(ctx, await edits[name]())
    elif name == "threshold":
        await _threshold(ctx, active, value)
    elif name:
        ctx.say(f"There is no /context {clean_line(name)}. Give {', '.join(edits)} or threshold.")
    else:
        await active.count()
        ctx.say(*_report(await active.report(), conversation.record.model))
        if shares := await server_shares(ctx):
            ctx.say(f"{shares}.")


def _say_edit(ctx: LinearContext, outcome: Edited | Refused) -> None:
    if isinstance(outcome, Edited):
        ctx.say(f"Done, {counted(outcome.count, 'part')}: from {outcome.before:,} to about {outcome.after:,} tokens.")
    else:
        ctx.say_outcome(outcome, "")


async def _threshold(ctx: LinearContext, window: ContextApi, value: str) -> None:
    never = value == "never"
    number = HIGHEST + 1 if never else number_within(value, HIGHEST)
    if number is None or number < LOWEST:
        ctx.say(f"The threshold must be {LOWEST} to {HIGHEST} per cent, or never.")
        return
    await window.set_threshold(number)
    ctx.say(f"Older messages are summarized {'never' if never else f'at {value} per cent'}.")


def _report(report: ContextReport, model: str) -> Iterator[str]:
    about = "about " if report.estimated else ""
    if model == GUIDE and not report.window:
        yield f"Context: {GUIDE} follows rules and has no context window."
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
    for line in compaction_lines(report.compactions):
        yield f"{line}."
    if report.checkpoints is not None:
        yield use_in_words(report.checkpoints)
    yield from _ways(report)


def _ways(report: ContextReport) -> Iterator[str]:
    """Actions possible now."""
    if report.summarizable:
        yield f"/compact summarizes {counted(report.summarizable, 'message')} and keeps {report.kept}."
    if report.shortens or report.clears:
        does, number = ("shortens", report.shortens) if report.shortens else ("clears", report.clears)
        yield f"/context prune {does} {counted(number, 'old tool result')}."
    if report.images:
        yield f"/context images removes {counted(report.images, 'image')}."
    if report.omitted:
        yield f"/context back restores {counted(report.omitted, 'removed part')}."
    if report.earlier is not None:
        yield "/context restore restores the messages before the newest summary."
    if report.can_undo:
        yield "/context undo undoes the last change."


async def _prompt(ctx: LinearContext, _: str) -> None:
    conversation = sent_to(ctx)
    if conversation is not None:
        sent = await sent_prompt(conversation)
        ctx.say(f"System prompt: {sent.total}.")
        for one in sent.sections:
            ctx.say(f"{one.name}, about {one.tokens:,} tokens, {one.origin}:", *one.text.splitlines())
        ctx.say(f"{sent.tools}.")


async def _init(ctx: LinearContext, _: str) -> None:
    await init(ctx)


RUNS: Final[dict[str, LineCommand]] = {"prompt": _prompt, "init": _init, "context": _context}
