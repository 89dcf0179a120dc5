"""Names of tools in the settings, hooks and lists of other agents (Claude Code), and the tools of Phoenix they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NATIVE: Final[Mapping[str, str]] = {
    "Bash": "bash",
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "patch",
    "MultiEdit": "patch",
    "Glob": "list_files",
    "LS": "list_files",
    "Grep": "search",
    "TaskOutput": "job_output",
    "BashOutput": "job_output",
    "TaskStop": "job_kill",
    "KillShell": "job_kill",
    "KillBash": "job_kill",
    "Agent": "spawn_agents",
    "Task": "spawn_agents",
    "AskUserQuestion": "ask_user",
    "ExitPlanMode": "exit_plan",
    "TodoWrite": "todo_write",
    "Skill": "skill",
    "ToolSearch": "tool_search",
    "WebFetch": "web_fetch",
    "WebSearch": "web_search",
    "StructuredOutput": "submit_structured",
}
"""The tool that a foreign name means where the input does not say more."""
FOREIGN: Final[Mapping[str, str]] = {
    **{native: name for name, native in reversed(list(NATIVE.items()))},
    "read_image": "Read",
    "spawn_task": "Agent",
}
"""The name of each tool elsewhere; for `patch` and what spawns the input decides."""
WITHOUT: Final = frozenset({"NotebookEdit", "NotebookRead", "SlashCommand", "EnterPlanMode", "EnterWorktree"})
"""Foreign tools without a counterpart."""
_READS: Final = ("read_file", "read_image")
_SPAWNS: Final = ("spawn_agents", "spawn_task")
_SEVERAL: Final[Mapping[str, tuple[str, ...]]] = {
    "Read": _READS,
    "Edit": ("patch", "write_file"),
    "Agent": _SPAWNS,
    "Task": _SPAWNS,
}
_WIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "Read": (*_READS, "search", "list_files"),
    "Write": ("write_file", "patch"),
    "MultiEdit": ("patch", "write_file"),
}
"""Names in rules that deny mean more: whoever may not read a file there, may not search it either."""


def native_name(name: str) -> str:
    """The tool that a name means; a name that is not foreign means itself."""
    return NATIVE.get(name, name)


def native_names(name: str, *, widely: bool = False) -> tuple[str, ...]:
    """Every tool that a name in a list or rule means, `widely` in one that denies."""
    return (_WIDE.get(name) if widely else None) or _SEVERAL.get(name) or (native_name(name),)
