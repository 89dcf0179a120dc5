"""Background commands: send one there, end one."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.jobs import NO_JOBS, send_to_background
from phoenix_tui.linear.context import LinearContext, Run
from phoenix_tui.text.labels import clock
from tools.clean import reveal


async def _background(ctx: LinearContext, _: str) -> None:
    ctx.say(send_to_background(ctx.conversation))


async def _jobs(ctx: LinearContext, _: str) -> None:
    conversation = ctx.conversation
    running = [job for job in conversation.jobs.all() if job.running] if conversation is not None else []
    if conversation is None or not running:
        ctx.say("No background commands are running." if conversation is not None else NO_JOBS)
        return
    rows = [f"{reveal(job.command)}, for {clock(job.elapsed)}" for job in running]
    chosen = await ctx.choose("Running in the background. Give a number to stop one:", rows)
    if chosen is not None:
        await conversation.jobs.kill(running[chosen].id)


RUNS: Final[dict[str, Run]] = {"background": _background, "jobs": _jobs}
