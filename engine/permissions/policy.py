"""The permission policy: mode, rules and paths give one decision per call."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from engine.permissions.rules import Rule, matches
from engine.records import PermissionMode
from tools.contract import ToolClass, ToolRequest, ToolSpec


class Allow(Struct, frozen=True):
    """Run it; `outside` where it may leave the working directory."""

    outside: bool = False


class Ask(Struct, frozen=True):
    """Ask the user first, for this reason."""

    reason: str


class Deny(Struct, frozen=True):
    """Do not run it; the model reads `text`."""

    text: str


WORDS: Final = {
    ToolClass.READ: "reading needs",
    ToolClass.EDIT: "edits need",
    ToolClass.RUN: "commands need",
    ToolClass.SPAWN: "sub-agents need",
}
"""What a class of tools is called in the reason of a question."""

Decision: TypeAlias = Allow | Ask | Deny


class Place(Struct, frozen=True):
    """Where a call counts as inside: the working directory, and for reading Phoenix's own spill folder."""

    working_dir: Path
    readable: tuple[Path, ...] = ()

    def outside(self, spec: ToolSpec, request: ToolRequest) -> list[Path]:
        """The paths of a call that lie elsewhere."""
        inside = (self.working_dir, *self.readable) if spec.tool_class is ToolClass.READ else (self.working_dir,)
        return [path for path in request.paths if not any(path.is_relative_to(folder) for folder in inside)]


def decide(spec: ToolSpec, request: ToolRequest, mode: PermissionMode, place: Place, rules: Iterable[Rule]) -> Decision:
    """What happens to a call (CONTRACT 6)."""
    outside = place.outside(spec, request)
    free = _runs_freely(spec.tool_class, mode)
    match mode:
        case PermissionMode.AUTO:
            return Allow(outside=True)
        case PermissionMode.PLAN | PermissionMode.DENY:
            if free and not outside:
                return Allow()
            return Deny(f"Permission mode '{mode.value}' does not allow {spec.name}.")
        case PermissionMode.ASK | PermissionMode.ACCEPT_EDITS:
            if free and not outside:
                return Allow()
            if any(matches(rule, spec, request, place.working_dir) for rule in rules):
                return Allow(outside=True)
            return Ask(_reason(spec, mode, outside))
        case _:
            assert_never(mode)


def _runs_freely(tool_class: ToolClass, mode: PermissionMode) -> bool:
    if tool_class is ToolClass.READ:
        return True
    return tool_class is ToolClass.EDIT and mode is PermissionMode.ACCEPT_EDITS


def _reason(spec: ToolSpec, mode: PermissionMode, outside: list[Path]) -> str:
    if outside:
        return f"outside the working directory: {outside[0]}"
    return f"in mode {mode.value} {WORDS[spec.tool_class]} your yes"
