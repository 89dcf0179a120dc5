"""Short words of the screen: states, plans, hooks and paths (SPEC STM-11, docs/decisions/looks.md)."""

from __future__ import annotations

import time
from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never, cast

from msgspec import Struct

from engine.machine import states
from engine.run_options import PermissionMode
from tools.call_titles import tool_label
from tools.call_values import SandboxMode
from tools.clean import clean_line, reveal_name
from tools.wording import one_line, pluralize

if TYPE_CHECKING:
    from engine.updates import HookEnded, HookStarted


class Tone(StrEnum):
    """Meaning of a colour; the value is the theme variable."""

    YOU = "$accent"
    WORK = "$primary"
    NEEDS_YOU = "$warning"
    GOOD = "$success"
    BAD = "$error"
    QUIET = "$text-muted"


class Glyph(Struct, frozen=True):
    """A sign one cell wide, its ASCII form and the meaning of its colour."""

    sign: str
    plain: str
    tone: Tone

    def mark(self, plain: bool) -> str:
        return self.plain if plain else self.sign


class ListGroup(StrEnum):
    """Group of a conversation in lists; the value is the heading."""

    PINNED = "pinned"
    NEEDS_YOU = "needs you"
    WORKING = "working"
    STOPPED = "stopped"
    """The last run was stopped, cut off, or failed."""
    RECENT = "recent"
    ARCHIVED = "archived"
    TRASH = "trash"


WRITABLE: Final = "The other Phoenix closed this conversation; you can now continue it here."
READY: Final = Glyph("○", ".", Tone.GOOD)
THINKING: Final = Glyph("◐", "*", Tone.WORK)
RUNNING: Final = Glyph("▸", ">", Tone.WORK)
ASKING: Final = Glyph("◆", "!", Tone.NEEDS_YOU)
AGENTS: Final = Glyph("◇", "&", Tone.WORK)
RETRYING: Final = Glyph("↻", "~", Tone.WORK)
STOPPED: Final = Glyph("■", "#", Tone.QUIET)
DENIED: Final = Glyph("⊘", "-", Tone.QUIET)
FAILED: Final = Glyph("✗", "x", Tone.BAD)
UNREAD: Final = Glyph("●", "o", Tone.GOOD)
DONE: Final = Glyph("✓", "v", Tone.GOOD)
TURNING: Final = "◐◓◑◒"
"""The faces of THINKING, shown one after another where it is alive."""


class StatusDetails(Struct, frozen=True):
    """Inputs of a label besides the state; times in seconds."""

    elapsed: float = 0.0
    """Seconds since the state began."""
    writing: bool = False
    """True once the answer has begun to arrive."""
    drafting: str = ""
    """The tool whose call is being written."""
    rate: float = 0.0
    """Tokens a second, estimated; 0 unknown."""
    resumable: bool = False
    """True when a restart cut the turn off; one that the user stopped resumes by /retry alone."""
    planned: int = 0
    """Sub-agents of the supervisor's decision that is open; 0 while it decides."""
    starts_at: float = 0.0
    """Monotonic time at which they start by themselves; 0: when the user says so."""
    now: float = 0.0
    """Monotonic."""
    stopped_after: float | None = None
    """Duration of the run that the user stopped last, None when it ended by itself."""
    agents: int = 0
    """Sub-agents that work, or wait to."""
    results: int = 0
    """Ends of sub-agents that wait to be read with the next message."""
    paced_until: float = 0.0
    """Monotonic time until which the call waits, to stay below the rate limit of its model."""
    prompt_percent: int = 100
    """Per cent of the prompt that the model's server has read, where it says so."""
    decides: bool = False
    """True while a summary waits for the user's decision."""
    suggestion: str = ""
    """Suggested next message of the user."""


class Label(Struct, frozen=True):
    """A glyph and words."""

    glyph: Glyph
    text: str


def label(state: states.State, details: StatusDetails) -> Label:
    match state:
        case states.Idle():
            return _idle(details)
        case states.AwaitingLlm():
            return _awaiting_llm(state, details)
        case states.ToolExecuting():
            queued = f" (+{len(state.round.queue)} queued)" if state.round.queue else ""
            return Label(RUNNING, f"{_tool(state.round)} {clock(details.elapsed)}{queued}")
        case states.AwaitingApproval():
            place = len(state.round.results) + 1
            total = place + len(state.round.queue)
            return Label(ASKING, f"{_waits(state.round)}{f' · {place} of {total}' if total > 1 else ''}")
        case states.AwaitingSubagents(pending=pending, outcomes=outcomes):
            total = len(pending) + len(outcomes)
            return Label(AGENTS, f"sub-agents {len(outcomes)}/{total} done · {clock(details.elapsed)}")
        case states.Cancelling():
            return Label(STOPPED, "cancelling…")
        case states.Compacting():
            return _label_compaction(details)
        case states.Errored() | states.Completed() | states.Failed():
            return _label_end(state)
        case _:
            assert_never(state)


def _label_compaction(details: StatusDetails) -> Label:
    if details.decides:
        return Label(ASKING, "the summary needs your decision")
    return Label(THINKING, _label_wait(details) or f"compacting… {clock(details.elapsed)}")


def _label_end(state: states.Errored | states.Completed | states.Failed) -> Label:
    match state:
        case states.Errored(kind=kind):
            return Label(FAILED, TROUBLES.get(kind, "failed"))
        case states.Completed():
            return Label(DONE, "result submitted")
        case states.Failed(error=error, partial=partial):
            return Label(FAILED, f"{clean_line(error)}{' (partial kept)' if partial else ''}")
        case _:
            assert_never(state)


TROUBLES: Final[dict[str, str]] = {
    "auth": "no valid key",
    "rate_limit": "rate limited",
    "overloaded": "overloaded",
    "timeout": "timed out",
    "server": "server error",
    "network": "no connection",
    "protocol": "invalid reply",
    "invalid_request": "request refused",
    "refused_image": "image refused",
    "storage": "not saved",
    "busy": "database busy",
    "internal": "internal error",
}
"""Words of the status line for an error; the whole sentence is in the conversation, once."""


def _idle(details: StatusDetails) -> Label:
    agents = f" · {details.agents} running" if details.agents else ""
    waiting = f" · {pluralize(details.results, 'result')} waiting" if details.results else ""
    if details.stopped_after is not None:
        return Label(STOPPED, f"ready · stopped after {clock(details.stopped_after)}{agents}{waiting}")
    if details.resumable:
        return Label(STOPPED, f"ready · interrupted, Enter resumes{agents}{waiting}")
    return Label(READY, f"ready{agents}{waiting}")


def _awaiting_llm(state: states.AwaitingLlm, details: StatusDetails) -> Label:
    match state.phase:
        case states.Requesting():
            return Label(THINKING, _label_request(state, details))
        case states.RetryWait(seconds=seconds, cause=cause):
            left = max(seconds - details.elapsed, 0.0)
            return Label(RETRYING, f"retrying {state.attempt}/{states.RETRIES} in {left:.1f} s: {clean_line(cause)}")
        case states.Routing():
            if not details.planned:
                return Label(THINKING, _label_wait(details) or f"routing… {clock(details.elapsed)}")
            left = max(int(details.starts_at - details.now) + 1, 0)
            when = f"starts in {left} s" if details.starts_at else "waits for you"
            return Label(THINKING, f"routing: {pluralize(details.planned, 'agent')}, {when}")
        case states.CompactingContext():
            return _label_compaction(details)
        case states.Ending():
            return Label(THINKING, "hooks decide if the run may end")
        case _:
            assert_never(state.phase)


def _label_wait(details: StatusDetails) -> str:
    """The wait ahead of a call; empty without one."""
    left = details.paced_until - details.now
    return f"paced: {ceil(left)} s to stay below the rate limit" if left > 0 else ""


WHOLE: Final = 100


def _label_request(state: states.AwaitingLlm, details: StatusDetails) -> str:
    step = f" · step {state.run.iteration}/{state.run.max_iterations}" if state.run.iteration > 1 else ""
    if paced := _label_wait(details):
        return paced
    if details.drafting:
        return f"preparing {clean_line(tool_label(details.drafting))}… {clock(details.elapsed)}{step}"
    if details.writing:
        return f"writing… {f'{details.rate:.0f} tok/s' if details.rate >= 1 else clock(details.elapsed)}{step}"
    if details.prompt_percent < WHOLE:
        return f"reading the prompt {details.prompt_percent} % · {clock(details.elapsed)}{step}"
    if state.continuations:
        return f"continuing (output limit) {state.continuations}/{states.CONTINUATIONS}"
    if state.attempt:
        return f"thinking… {clock(details.elapsed)} · try {state.attempt + 1} of {states.RETRIES + 1}{step}"
    return f"thinking… {clock(details.elapsed)}{step}"


WAITS: Final = {"exit_plan": "a plan waits", "ask_user": "a question waits", "spawn_task": "a sub-agent waits"}
"""Words for a call that asks, by its tool; any other one is named."""


def _waits(tool_round: states.ToolRound) -> str:
    call = tool_round.current
    if call.name != "spawn_agents":
        return WAITS.get(call.name, f"{_tool(tool_round)} asks")
    count = _count_tasks(call.input_json)
    return f"{count} sub-agents wait" if count > 1 else WAITS["spawn_task"]


def _count_tasks(input_json: str) -> int:
    import json  # noqa: PLC0415 - with the first sub-agents

    try:
        arguments: object = json.loads(input_json)
    except (ValueError, RecursionError):
        return 1
    tasks = cast("dict[str, object]", arguments).get("tasks") if isinstance(arguments, dict) else None
    return len(cast("list[object]", tasks)) if isinstance(tasks, list) else 1


def _tool(tool_round: states.ToolRound) -> str:
    return clean_line(tool_label(tool_round.current.name))


class AgentCounts(Struct, frozen=True):
    """Numbers about sub-agents for a hint."""

    agents: int = 0
    """Sub-agents of the conversation that work or queue: Esc stops them too."""
    asking: int = 0
    """Number of them with an open question."""
    is_agent: bool = False
    """True when the conversation is one itself."""


def invitation(state: states.State, *, begun: bool, agent_counts: AgentCounts | None = None) -> str:
    """Placeholder of the empty composer; `begun` is whether the conversation has messages."""
    agent_counts = agent_counts or AgentCounts()
    if agent_counts.is_agent and not isinstance(state, states.AwaitingApproval):
        ended = isinstance(state, states.Completed | states.Failed)
        return "A message starts this sub-agent again; its result stays" if ended else "Type a hint for this sub-agent"
    if agent_counts.asking or isinstance(state, states.AwaitingApproval):
        return "Press a letter to answer the question above"
    match state:
        case (
            states.AwaitingLlm()
            | states.ToolExecuting()
            | states.AwaitingSubagents()
            | states.Cancelling()
            | states.Compacting()
        ):
            return "Type your next message"
        case states.Idle() | states.Errored() | states.Completed() | states.Failed():
            return "Reply" if begun else "Type to start"
        case _:
            assert_never(state)


def short_state(state: states.State, elapsed: float, *, writing: bool = False) -> Label:
    match state:
        case states.AwaitingLlm(phase=states.RetryWait()):
            return Label(RETRYING, "retrying")
        case states.AwaitingLlm(phase=states.Routing()):
            return Label(THINKING, f"routing {age(elapsed)}")
        case states.AwaitingLlm():
            return Label(THINKING, f"{'writing' if writing else 'thinking'} {age(elapsed)}")
        case states.ToolExecuting():
            return Label(RUNNING, f"{_tool(state.round)} {age(elapsed)}")
        case states.AwaitingApproval():
            return Label(ASKING, "asks")
        case states.AwaitingSubagents(pending=pending, outcomes=outcomes):
            return Label(AGENTS, f"{len(outcomes)}/{len(pending) + len(outcomes)} agents")
        case states.Cancelling() | states.Compacting():
            return Label(THINKING, "stopping" if isinstance(state, states.Cancelling) else "compacting")
        case states.Idle() | states.Errored() | states.Completed() | states.Failed():
            return SETTLED[type(state)]
        case _:
            assert_never(state)


SETTLED: Final[dict[type[states.State], Label]] = {
    states.Idle: Label(READY, ""),
    states.Errored: Label(FAILED, "failed"),
    states.Completed: Label(DONE, "result"),
    states.Failed: Label(FAILED, "failed"),
}
ENDS: Final[dict[str, Label]] = {
    "cancelled": Label(STOPPED, "stopped"),
    "interrupted": Label(STOPPED, "interrupted"),
    "timeout": Label(STOPPED, "timed out"),
    "failure": Label(FAILED, "failed"),
}
"""Label of an idle conversation whose last run did not end well."""
MODE_WORDS: Final[dict[PermissionMode, tuple[str, Tone]]] = {
    PermissionMode.ASK: ("ask", Tone.QUIET),
    PermissionMode.ACCEPT_EDITS: ("edits", Tone.NEEDS_YOU),
    PermissionMode.AUTO: ("auto", Tone.BAD),
    PermissionMode.PLAN: ("plan", Tone.GOOD),
    PermissionMode.DENY: ("deny", Tone.GOOD),
}
"""The word of a permission mode in the status line, and its colour."""
MODE_MEANINGS: Final[dict[PermissionMode, str]] = {
    PermissionMode.ASK: "edits, and anything outside the sandbox, ask first",
    PermissionMode.ACCEPT_EDITS: "edits in this folder run too, leaving the sandbox asks",
    PermissionMode.AUTO: "everything that stays in the sandbox runs",
    PermissionMode.PLAN: "reading only, everything else is refused",
    PermissionMode.DENY: "reading only, for unattended use",
}
SANDBOX_WORDS: Final[dict[SandboxMode, tuple[str, Tone]]] = {
    SandboxMode.OFF: ("no sandbox", Tone.NEEDS_YOU),
    SandboxMode.WORKSPACE: ("sandbox", Tone.QUIET),
    SandboxMode.READ_ONLY: ("sandbox read-only", Tone.GOOD),
}
"""The word of a sandbox in the status line, and its colour."""
LIMITED: Final = {
    "none": ("sandbox not enforced", Tone.NEEDS_YOU),
    "files": ("sandbox weak", Tone.NEEDS_YOU),
}
"""The words there where this system can enforce no sandbox, or only where files are written, by its enforcement."""
SANDBOX_MEANINGS: Final[dict[SandboxMode, str]] = {
    SandboxMode.OFF: "commands can reach everything you can; each one asks, except in mode auto",
    SandboxMode.WORKSPACE: "commands run without asking and write only in this folder; network and leaving it ask",
    SandboxMode.READ_ONLY: "commands run without asking and cannot write; edits are refused",
}


def ask_widening(before: SandboxMode, after: SandboxMode) -> str:
    return f"Change the sandbox from {before.value} to {after.value}? Then {SANDBOX_MEANINGS[after]}."


def sandbox_set(sandbox: SandboxMode, enforcement: str) -> str:
    if sandbox is not SandboxMode.OFF and enforcement == "files":
        return f"Sandbox {sandbox.value}; it is weak on this system, so commands ask (`phoenix doctor` says why)."
    if sandbox is not SandboxMode.OFF and enforcement == "none":
        return f"Sandbox {sandbox.value}; this system cannot enforce it, so commands ask (`phoenix doctor` says why)."
    return f"Sandbox {sandbox.value}: {SANDBOX_MEANINGS[sandbox]}."


SECOND_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
TOKEN_UNITS: Final = ((1_000_000, "M", 1), (10_000, "k", 0), (1_000, "k", 1))
"""Units of tokens: least number, letter and digits after the point."""
CENT: Final = 0.01


def clock(seconds: float) -> str:
    """A running time with its two largest units: 4 s, 1 m 12 s, 2 h 5 m."""
    left = int(max(seconds, 0))
    parts: list[str] = []
    for size, unit in SECOND_UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


AGES_EVERY: Final = 60.0
"""Seconds after which the ages of a list are put into words again while nothing runs."""


def age(seconds: float) -> str:
    """Age in short form: 12s, 9m, 3h, 2d."""
    whole = int(max(seconds, 0))
    return next((f"{whole // size}{unit}" for size, unit in SECOND_UNITS if whole >= size), "0s")


def ago(seconds: float) -> str:
    """Age of an idle one, updated once a minute: `now` within the first."""
    return age(seconds) if seconds >= AGES_EVERY else "now"


def tokens(count: int) -> str:
    """A count of tokens: 950, 4.2k, 84k, 1.2M."""
    for least, unit, digits in TOKEN_UNITS:
        if count >= least:
            return f"{count / (1_000_000 if unit == 'M' else 1_000):.{digits}f}{unit}"
    return str(count)


def money(dollars: float | None) -> str:
    """A cost; empty for nothing, `$?` where a price is unknown."""
    if dollars is None:
        return "$?"
    if dollars == 0:
        return ""
    return f"${dollars:.2f}" if dollars >= CENT else "<$0.01"


KEPT_PROVIDERS: Final = frozenset({"demo", "local"})


def short_model(reference: str) -> str:
    """The name without its provider; names of other kinds stay whole."""
    provider, slash, name = reference.partition("/")
    return clean_line(name if slash and provider not in KEPT_PROVIDERS else reference)


SLOW: Final = 0.3
"""Seconds from which a hook beside a run is shown."""


LONGEST_STATUS: Final = 50
"""Columns of the text that a hook is shown with."""


class HookInView(Struct, frozen=True):
    """A hook that runs, and since when (monotonic)."""

    name: str
    since: float
    status: str = ""
    """Text of its file, behind the name: a project does not speak as Phoenix."""


def hook_in_view(update: HookStarted | HookEnded) -> HookInView | None:
    from engine.updates import HookStarted  # noqa: PLC0415 - not for the first frame, which shows no hook

    if isinstance(update, HookStarted):
        return HookInView(update.name, time.monotonic(), update.status)
    return None


def hook_label(hook: HookInView | None, state: states.State, now: float) -> Label | None:
    """Words for a hook; None where there is none to tell of."""
    if hook is None or isinstance(state, states.Cancelling):
        return None
    name, seconds = clean_line(hook.name), now - hook.since
    status = one_line(clean_line(hook.status), LONGEST_STATUS)
    if isinstance(state, states.Idle):  # no clock moves yet
        return Label(RUNNING, f"hook {name}: {status}" if status else f"hook {name} runs")
    name = f"{name}: {status}" if status else name
    return Label(RUNNING, f"hook {name} {seconds:.1f} s") if seconds >= SLOW else None


LONGEST_PLACE: Final = 30
"""Characters of the folder beside a shell line."""


def short_path(path: Path) -> str:
    """A path with the home folder as `~`."""
    home = Path.home()
    return f"~/{path.relative_to(home)}".removesuffix("/.") if path.is_relative_to(home) else str(path)


def short_tail(path: str, most: int) -> str:
    """The end of a path of at most `most` characters, with the home folder as `~`."""
    shown = short_path(Path(path))
    return shown if len(shown) <= most else f"…{shown[len(shown) - most + 1 :]}"


def shell_place(folder: str) -> str:
    """Words for the folder of a shell line; empty for the conversation's own."""
    return f"in {short_tail(reveal_name(folder), LONGEST_PLACE)}" if folder else ""
