"""Background commands in lines: send one there, read one, end one."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.jobs import background, end_job, jobs_in_view, output_of
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.text.agent_text import how_it_stands
from tools.clean import reveal

READ, END = "Read its output", "Stop it"


async def _jobs(ctx: LinearContext, _: str) -> None:
    jobs = jobs_in_view(ctx)
    if jobs is None:
        return
    found = jobs.all()
    chosen = await ctx.choose("Background commands:", [f"{reveal(job.command)}, {how_it_stands(job)}" for job in found])
    if chosen is None:
        return
    job = found[chosen]
    actions = [READ, END] if job.running else [READ]
    action = await ctx.choose(f"{reveal(job.command)}:", actions)
    match actions[action] if action is not None else "":
        case "Read its output":
            output = output_of(jobs, job)
            ctx.read(output.heading, "\n".join(filter(None, (output.before, output.text))))
        case "Stop it":
            await end_job(ctx, jobs, job)
        case _:
            pass  # none was wanted


RUNS: Final[dict[str, LineCommand]] = {"background": background, "jobs": _jobs}
