"""Every sentence the machine says. Those a model reads are byte-stable (SPEC DEC-24)."""

from __future__ import annotations

from engine.machine.states import RETRIES, StopCause
from tools.wording import pluralize

CANCELLED = "Cancelled by user"
SKIPPED = "Skipped due to cancellation"
SKIPPED_PLAN = "Skipped: the plan was answered first"
SKIPPED_HOOK = "Skipped: a hook stopped the run"
SKIPPED_LOOP = "Skipped: the run was stopped for repeating itself"
INTERRUPTED = "[Tool execution interrupted by restart]"

BUSY = "agent is busy — press Esc to cancel"
CANCELLING = "cancellation in progress"
READ_ONLY = "sub-agent transcripts are read-only"
NOTHING_TO_RETRY = "Nothing to retry"
NOTHING_TO_ANSWER = "That question is no longer open"
OUTPUT_LIMIT = "Stopped at the output limit after 3 continuations"
TIME_LIMIT = "Stopped at the time limit"
ENDED_MIDWAY = "Phoenix ended before the answer did."
"""Reason why a reply is incomplete that was being continued when Phoenix ended."""
LOOP = "Stopped: repeated tool calls without progress"
EMPTY_REPLY = "the model sent an empty answer"
OUTSIDE = "outside the working directory"
"""Begins the reason of a question about a path out there."""
KEYS_TOLD = " Press Enter to retry or send a message."
"""The end of an error that may be over by the next try (SPEC STM-02)."""
DECLINED = "The model declined to answer"
QUESTIONS_DECLINED = "The user declined to answer"
FILTERED = "A content filter of the provider stopped the answer"
SUMMARIZED = "Summarized "
"""Prefix of the row of a compaction."""


def describe_summary(count: int, kept: int, sizes: str, summary: str) -> str:
    """The row of a compaction: how much became of how many messages, and below it the summary."""
    return f"{SUMMARIZED}{count} messages, kept {kept} · {sizes}\n\n{summary}"


def waiting_for_approval(tool: str) -> str:
    """Refusal of a message while a question is open."""
    return f"waiting for your approval of {tool}"


_DENIED = "User denied permission to run "


def describe_denial(tool: str, reason: str) -> str:
    """Result of a denied call, as the model reads it (CONTRACT 6)."""
    return f"{_DENIED}{tool}: {reason}" if reason else f"{_DENIED}{tool}."


def denial_words(text: str, tool: str) -> str:
    """The same result as the user reads it; empty for any other text."""
    if not text.startswith(_DENIED):
        return ""
    reason = text.removeprefix(f"{_DENIED}{tool}").removeprefix(":").strip()
    return f"Denied by you: {reason}" if reason not in {"", "."} else "Denied by you"


ALLOWED_ONCE = "allowed once"
ALLOWED_HERE = "allowed for this conversation"
ALLOWED_IN_PROJECT = "always allowed in this project"
ALLOWED_EVERYWHERE = "always allowed everywhere"
ALLOWED_BY = "allowed by "
"""The ends of rows about a yes, behind the call and a colon; a rule follows behind another colon."""


def describe_unanswered(reason: str) -> str:
    """Result of questions that the user did not answer, as the model reads it (SPEC REQ-ASK)."""
    return f"{QUESTIONS_DECLINED}: {reason}" if reason else QUESTIONS_DECLINED


def plan_accepted(mode: str, edited_plan: str) -> str:
    """Result of an accepted plan, as the model reads it; with the plan where the user changed it."""
    told = f"The user approved the plan. The permission mode is now {mode}: carry the plan out."
    return f"{told} The user changed it; this is what holds:\n\n{edited_plan}" if edited_plan else told


def plan_revised(remarks: str) -> str:
    """Result of a plan that the user wants changed, as the model reads it."""
    return f"The user wants another plan. Stay in plan mode, revise it and call exit_plan again: {remarks}"


PLAN_DELIVERED = "The plan was delivered as the result of this run."


STOPPED = {
    StopCause.USER: "Stopped by you",
    StopCause.OUTSIDE: "Stopped by another process",
    StopCause.TIME_LIMIT: "Stopped at the time limit",
    StopCause.ENDING: "Interrupted: Phoenix ended",
}
"""Beginning of the row about a cancel, by its cause."""
_STOPPED_COMMAND = {
    StopCause.USER: "stopped by the user",
    StopCause.OUTSIDE: "stopped by another process",
    StopCause.TIME_LIMIT: "stopped at the time limit",
    StopCause.ENDING: "interrupted: Phoenix ended",
}
STOPPED_OUTSIDE = "Another process cancelled the run."
CUT_OFF = "Phoenix ended before this run did."
"""Error of a run that the end of Phoenix interrupted, in order or by a crash."""


def shell_ran(command: str, output: str) -> str:
    """A command that the user ran himself, and its output, as the model reads them."""
    return f"$ {command}\n{output}" if command else output


def describe_cancelled(job: str) -> str:
    """Result of a stopped call for the model; names the job when the command continues in the background."""
    return f"{CANCELLED}. The command runs on in the background as job {job}." if job else CANCELLED


def name_ended(count: int, named: tuple[str, ...]) -> str:
    """Names of ended processes behind their count; empty where none is known."""
    more = [f"{count - len(named)} more"] if count > len(named) else []
    return f": {', '.join([*named, *more])}" if named else ""


def describe_stop(
    elapsed: int, by: StopCause, processes: int = 0, survivors: tuple[int, ...] = (), names: str = ""
) -> str:
    """The row about a cancel: its cause, the duration and the ended processes."""
    parts = [f"{STOPPED[by]} after {elapsed} s"]
    if processes:
        parts.append(f"{pluralize(processes, 'process', 'processes')} ended{names}")
    if survivors:
        parts.append(f"not yet dead: pid {', '.join(map(str, survivors))}")
    return " · ".join(parts)


def describe_stopped_command(elapsed: int, by: StopCause, processes: int = 0, survivors: tuple[int, ...] = ()) -> str:
    """The last line of a stopped command's output, for the user and the model."""
    told = describe_stop(elapsed, by, processes, survivors).removeprefix(STOPPED[by])
    return f"[{_STOPPED_COMMAND[by]}{told}]"


def stragglers(ended: int, survivors: tuple[int, ...]) -> str:
    """The row for processes that took longer than the cancel itself."""
    parts = [f"{pluralize(ended, 'process', 'processes')} ended"] if ended else []
    if survivors:
        parts.append(f"not yet dead: pid {', '.join(map(str, survivors))}")
    return f"Stopped: {' · '.join(parts)}"


def iteration_limit(count: int) -> str:
    """Notice of a run that ended at its limit of iterations."""
    return f"Stopped after {count} iterations — send a message to continue"


def broke_off(cause: str) -> str:
    """The row below a text that was kept without its end."""
    return f"The answer broke off here and is kept: {cause}"


def retries_spent(cause: str) -> str:
    """The error after the last retry (SPEC STM-02)."""
    return f"Failed after {pluralize(RETRIES, 'retry', 'retries')}: {cause.rstrip('.')}.{KEYS_TOLD}"


def without_keys(text: str) -> str:
    """An error where no key helps, or where the keys that do are named beside it."""
    return text.removesuffix(KEYS_TOLD)


def overflow(cause: str) -> str:
    """Notice of a full context when a summary did not help or is unavailable."""
    return f"The conversation no longer fits the model's window: {cause.rstrip('.')}. /context makes room."
