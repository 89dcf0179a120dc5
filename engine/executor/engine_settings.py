"""Numbers and choices of the engine that hold for every conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from engine.context.input_guard import GuardAction
from engine.context.omissions import PruningRule
from engine.diagnostics import Diagnostics
from engine.ports.extensions import InstructionFiles, NoInstructions

AUTO: Final = "auto"
"""The cheap model is the small one of the conversation's own provider."""


class MemoryGauge(Protocol):
    """Knows how much memory Phoenix may still take."""

    def refusal(self) -> str:
        """Reason why nothing new may begin now, in a sentence; empty while there is enough."""
        ...


class Unlimited:
    """Memory without a limit."""

    def refusal(self) -> str:
        """Refuse nothing."""
        return ""


UNLIMITED: Final = Unlimited()


class EngineSettings(Struct, frozen=True):
    """Numbers and choices that hold for every conversation."""

    max_iterations: int = 250
    """Model calls of a user's run (SPEC DEC-11)."""
    compact_percent: int = 75
    """Per cent of the window from which older messages are summarized (SPEC DEC-12); above 100 never."""
    pruning: PruningRule = PruningRule()
    """Thresholds from which old tool results are shortened by themselves."""
    instructions: InstructionFiles = NoInstructions()
    """Reader of AGENTS.md and similar files of the user and of trusted folders."""
    own: tuple[Path, ...] = ()
    """Phoenix's own files and folders, which no tool opens."""
    home: Path = Path("/nonexistent")
    """The user's home folder, which contains keys and shell start files."""
    sandbox_network: bool = True
    """Commands that are allowed to may use the network inside the sandbox."""
    network: tuple[str, ...] | None = None
    """Hosts that every sandboxed command may reach; None: no list, so that mode auto has the whole network."""
    spills: tuple[Path, ...] = ()
    """Folders of spilled output; a conversation may read the part of its working directory in each."""
    diagnostics: Diagnostics | None = None
    """Storage of replies and failed requests for debugging; None: none."""
    history_turns: int = 0
    """Newest turns that a model is sent (SPEC CLAW-20); 0: all of them."""
    input_guard: GuardAction = GuardAction.WARN
    """Treatment of text that looks like an injection (SPEC CLAW-03)."""
    sanitize_replies: bool = True
    """True when remains of a model's format are removed from the text of its replies (SPEC CLAW-12)."""
    attended: bool = True
    """True where a user can be asked: `ask_user` is offered (SPEC REQ-ASK)."""
    keeps_instructions: bool = False
    """True where instruction files count beside a given system prompt, as programs that drive an agent expect."""
    left_out: tuple[str, ...] = ()
    """Tools of servers that no model is offered; `mcp__SERVER` means all of a server."""
    may_defer: bool = False
    """True where a run may end with a call that a hook puts off: no screen shows it."""
    memory: bool = True
    """True when agents may search notes and older messages."""
    memory_flush: bool = False
    """True when a model writes notes before a summary (SPEC CLAW-40)."""
    auto_title: bool = False
    """True when a model names a conversation after its first answer."""
    turn_summaries: bool = False
    """True when a model summarizes each turn for the list of turns."""
    trace_verbose: bool = False
    """True when spans keep whole inputs (SPEC CLAW-81)."""
    task_tracking: bool = False
    """True when a model keeps the task board where the user chose nothing for a conversation (SPEC ACX-05)."""
    track_always: bool = False
    """True where the user's own settings say so: also where that model is the conversation's own, or runs on this
    machine.
    """
    track_after: float = 8.0
    """Seconds without another message after which fewer than 16 are recorded (SPEC ACX-02)."""
    track_tokens: int = 500_000
    """Tokens of the task agent in each conversation within 24 hours; 0: no limit."""
    task_criteria: str = ""
    """The user's words about when a task has succeeded or failed (SPEC ACX-16)."""
    snapshot_messages: int = 60
    """Number of the newest messages in a snapshot."""
    max_agents: int = 4
    """Sub-agents that work at the same time; more wait (SPEC SDK-10)."""
    agent_depth: int = 1
    """Depth of sub-agents: 1, because they start none of their own (SPEC BED-009), or 0 for none at all."""
    agent_turns: int = 20
    """Model calls of a sub-agent's run where neither its task nor its profile says another number (SPEC DEC-11)."""
    agent_timeout: float = 300.0
    """Seconds of a sub-agent's run, likewise (SPEC DEC-16)."""
    agent_budget_usd: float = 0.0
    """Dollars of a sub-agent's run, beside the budget of the run it works for; 0: none of its own."""
    budget_day_usd: float = 0.0
    """Dollars a day in the local time zone, all conversations together; 0: no cap."""
    budget_project_usd: float = 0.0
    """Dollars that a project may cost in all; 0: no cap."""
    summary_model: str = ""
    """Model that summarizes older messages; empty: the one for small questions."""
    summary_tokens: int = 0
    """Most output tokens of such a summary; 0: by the size of what it replaces (SPEC CLAW-31)."""
    summary_timeout: float = 120.0
    """Seconds it may take (SPEC CLAW-31)."""
    compact_after_runs: bool = False
    """True when older messages are summarized in the background after a run."""
    compact_messages: int = 50
    """Messages in the window above which they are; 0: only by its fill level (SPEC DEC-26)."""
    cheap_model: str = ""
    """Model for requests in the background; `AUTO`: the small one of the conversation's provider; empty: none."""
    route_wait: float = 0.0
    """Seconds that a supervisor's decision can be overruled before it starts by itself."""
    memory_gauge: MemoryGauge = UNLIMITED
    """Refuses anything new while memory is short."""
    mode_rest: float = 1.0
    """Seconds without another change of mode or sandbox after which an open question is decided again.

    Shift+Tab leads from `ask` over `auto` to `plan`: a mode in between answers nothing.
    """
    close_grace: float = 2.0
    """Seconds that cancelled runs have to end at close (SPEC STM-12)."""
