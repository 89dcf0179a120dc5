"""Agent profiles: their permissions, and the port that finds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from engine.records import PermissionMode
from tools.contract import SandboxMode

BUILT_IN: Final = "built-in"
"""Source of a profile without a file."""
GENERAL: Final = "general"
"""The profile of an agent for which none is named."""
READ_TOOLS: Final = ("read_file", "list_files", "search", "read_image", "think")
"""Standard tools that change nothing."""
JOB_TOOLS: Final = ("job_output", "job_kill")
"""Tools that come with bash: they read and end its jobs."""
MEMORY_TOOLS: Final = ("memory_search", "memory_get")
"""Tools that whoever reads files may use, too: they read notes, and the conversation itself."""
STANDARD_TOOLS: Final = (*READ_TOOLS, "write_file", "patch", "bash", *JOB_TOOLS)
SPAWN_TOOLS: Final = ("spawn_agents", "spawn_task")
"""Tools that only a conversation of the user has: sub-agents cannot spawn (SPEC BED-009)."""
WEB_TOOLS: Final = ("web_fetch", "web_search")
"""Tools that ask the web."""
PLAN_TOOLS: Final = ("todo_write", "exit_plan")
"""Tools for the list and the plan of the conversation itself; a sub-agent has no plan to hand over."""
OWN_TOOLS: Final = frozenset({*SPAWN_TOOLS, "exit_plan"})
"""Tools that only a conversation of the user has."""
ASK_TOOL: Final = "ask_user"
"""Asks the user; offered where there is one. A sub-agent may ask, too: its question appears as its approvals do."""
SKILL_TOOLS: Final = ("skill",)
ANSWER_TOOL: Final = "submit_structured"
"""Tool for an answer of a wanted shape; every profile may hand one in."""
KNOWN_TOOLS: Final = (*STANDARD_TOOLS, *MEMORY_TOOLS, *PLAN_TOOLS, ASK_TOOL, *WEB_TOOLS, *SPAWN_TOOLS, *SKILL_TOOLS)
"""Tools that a profile may name."""
FREEDOM: Final = {
    PermissionMode.AUTO: 4,
    PermissionMode.ACCEPT_EDITS: 3,
    PermissionMode.ASK: 2,
    PermissionMode.PLAN: 1,
    PermissionMode.DENY: 1,
}
"""Freedom of each mode, as a rank (CONTRACT 4)."""
SANDBOX_FREEDOM: Final = {mode: -rank for rank, mode in enumerate(SandboxMode)}
"""The same of a sandbox; 0 for none."""


def narrower_mode(first: PermissionMode, second: PermissionMode) -> PermissionMode:
    """The mode that lets less happen, the first where they are equal."""
    return second if FREEDOM[second] < FREEDOM[first] else first


def narrower_sandbox(first: SandboxMode, second: SandboxMode) -> SandboxMode:
    """The sandbox that lets less happen."""
    return min(first, second, key=SANDBOX_FREEDOM.__getitem__)


class Profile(Struct, frozen=True):
    """A kind of agent: its instructions, tools and time limit."""

    name: str
    description: str = ""
    """Description for the model that chooses one."""
    model: str = ""
    """PROVIDER/MODEL; empty: the parent's."""
    tools: tuple[str, ...] = ()
    """Allowed tools; empty: all of them."""
    permission_mode: PermissionMode | None = None
    """Permission mode; None: the parent's."""
    max_turns: int = 0
    """Model replies; 0: the limit that is set for sub-agents (SPEC DEC-11), the user's own limit otherwise."""
    timeout: float = 0.0
    """Seconds; 0: the limit that is set for sub-agents (SPEC DEC-16), the user's own limit otherwise."""
    locked: bool = False
    """The agent may not write this profile's own file (SPEC CLAW-18)."""
    prompt: str = ""
    """Added to the system prompt."""
    skills: tuple[str, ...] = ()
    """Skills whose texts are added behind it."""
    source: str = BUILT_IN
    """BUILT_IN, or the path of its file."""
    sandbox: str = ""
    """Sandbox of a conversation begun with it: off, workspace, read-only; empty: the user's."""
    effort: str = ""
    """Effort of its model, as in `Effort`; empty: the parent's, or the user's."""
    project: bool = False
    """True for a project's own profile, which can only narrow the user's permissions (CONTRACT 4)."""

    def allows(self, tool: str) -> bool:
        """True when an agent of this profile may be given the tool."""
        if not self.tools or tool in self.tools or tool == ANSWER_TOOL:
            return True
        return (tool in JOB_TOOLS and "bash" in self.tools) or (tool in MEMORY_TOOLS and "read_file" in self.tools)

    def mode_under(self, parent: PermissionMode) -> PermissionMode:
        """The mode of an agent whose parent works in `parent`; a project's profile never has more freedom than that."""
        mode = self.permission_mode or parent
        return parent if self.project and FREEDOM[mode] > FREEDOM[parent] else mode

    def sandbox_under(self, parent: SandboxMode) -> SandboxMode:
        """The sandbox of an agent whose parent has `parent`: never a wider one."""
        return narrower_sandbox(parent, SandboxMode(self.sandbox)) if self.sandbox else parent

    def limits_under(self, turns: int, seconds: float) -> tuple[int, float]:
        """Model replies and seconds of a sub-agent where the user set these; a project's profile only lowers them."""
        if not self.project:
            return self.max_turns or turns, self.timeout or seconds
        return min(self.max_turns or turns, turns), min(self.timeout or seconds, seconds)

    def protects(self, path: Path) -> bool:
        """True when an agent of this profile must not write there."""
        return self.locked and self.source != BUILT_IN and path.resolve() == Path(self.source).resolve()


class ProfileError(ValueError):
    """A profile is unknown or its file is wrong; one sentence that names file, line and what is allowed."""

    def __init__(self, sentence: str, path: Path | None = None, line: int = 0) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.path = path
        self.line = line


class Profiles(Protocol):
    """All profiles."""

    def names(self, cwd: Path) -> Sequence[Profile]:
        """Profiles that can be used in this folder, the built-in ones first."""
        ...

    def list_added(self, cwd: Path) -> Sequence[Profile]:
        """Profiles beside Phoenix's own in this folder, from memory: agents of files, a host or a plugin. The tools
        that spawn name each of them to the model.
        """
        ...

    def resolve(self, name: str, cwd: Path) -> Profile:
        """The profile called `name`, general for no name.

        Raises:
            ProfileError: there is none, naming those there are; or its file is wrong.
        """
        ...
