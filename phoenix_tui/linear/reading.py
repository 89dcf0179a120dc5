"""Commands that read something out and change nothing."""

from __future__ import annotations

import asyncio
from typing import Final

from engine.api.conversation import ConversationApi
from engine.machine.states import is_busy
from phoenix_tui.features.cost import choose_run, cost_report
from phoenix_tui.features.diagnostics import debug
from phoenix_tui.features.doctor import doctor
from phoenix_tui.features.side_questions import FORKED, why_not
from phoenix_tui.linear.context import LinearContext, LineCommand
from tools.wording import counted, number_within

READ_BACK: Final = 4
MOST_READ: Final = 100
OUTPUT_ROWS: Final = 200
FORK: Final = "fork"
MORE: Final = "more"
"""Words behind /btw that take the answers further."""
ASKED: Final = "Side question sent. Esc cancels it if nothing else is running."


async def _read(ctx: LinearContext, number: str) -> None:
    await ctx.active.read(number_within(number, MOST_READ) or (MOST_READ if number.isdecimal() else READ_BACK))


async def _output(ctx: LinearContext, _: str) -> None:
    rows = ctx.active.transcript.last_output.strip().splitlines()
    ctx.say(*(rows[:OUTPUT_ROWS] or ["There is no tool output yet."]))
    if len(rows) > OUTPUT_ROWS:
        ctx.say(f"{len(rows) - OUTPUT_ROWS} more lines.")


async def _state(ctx: LinearContext, _: str) -> None:
    live = [one for one in ctx.services.engine.live() if is_busy(one.state)]
    busy = "Working." if ctx.active.busy else "Ready."
    ctx.say(f"{busy} {counted(len(live), 'conversation')} working in all.")


async def _cost(ctx: LinearContext, what: str) -> None:
    conversation = ctx.opened
    if conversation is None:
        return
    if what == "runs":
        await choose_run(ctx, conversation)
        return
    report = await cost_report(ctx, conversation)
    ctx.say(f"Cost: {report.price}, {report.lines[0]}.", *report.lines[1:], report.remark)
    ctx.say(*(("Last run:", *report.last_run) if report.last_run else ()))


async def _btw(ctx: LinearContext, question: str) -> None:
    conversation = ctx.conversation
    refused = why_not(conversation, question)
    if conversation is None or refused:
        ctx.say(refused)
        return
    word, _, rest = question.partition(" ")
    if word == FORK and not rest:
        await _fork_side(ctx, conversation)
        return
    more = word == MORE and bool(rest.strip())
    asked = ctx.side_questions.ask(conversation, rest.strip() if more else question, more=more)
    if ctx.terminal.keyboard.is_terminal:
        ctx.say(ASKED)
    else:  # the lines of a pipe are handled one after the other
        await asyncio.wait((asked,))


async def _fork_side(ctx: LinearContext, conversation: ConversationApi) -> None:
    """Continue in a copy that ends with the side questions."""
    side = ctx.side_questions
    if not side.exchanges or side.about != conversation.id:
        ctx.say("No side question was answered here. /btw QUESTION asks one.")
        return
    copy = await ctx.services.engine.fork(conversation.id, None, tuple(side.exchanges))
    await ctx.open(copy.id)
    ctx.say(FORKED)


async def _quit(ctx: LinearContext, _: str) -> None:
    ctx.leave(0)


RUNS: Final[dict[str, LineCommand]] = {
    "btw": _btw,
    "cost": _cost,
    "debug": debug,
    "doctor": doctor,
    "output": _output,
    "quit": _quit,
    "read": _read,
    "state": _state,
}
