"""The todo list and the plan in lines."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.plan import NO_PLAN_WAITS, plan
from phoenix_tui.features.todo import todo
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.linear.plan_edit import edit_plan


async def _plan(ctx: LinearContext, word: str) -> None:
    question = ctx.active.question
    if word != "edit":
        await plan(ctx, word)
    elif question is None or not question.request.plan:
        ctx.say(NO_PLAN_WAITS)
    else:
        await edit_plan(ctx, question)


RUNS: Final[dict[str, LineCommand]] = {"plan": _plan, "todo": todo}
