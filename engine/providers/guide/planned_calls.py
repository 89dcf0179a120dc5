"""Conversion of a planned step to a call of a tool that is really on offer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from engine.providers.guide.markdown import code
from engine.providers.guide.plan import (
    BashStep,
    ListStep,
    PatchStep,
    PlanStep,
    ReadStep,
    SearchStep,
    ThinkStep,
    WriteStep,
)
from tools.contract import JsonObject, ToolSpec


class PlannedCall(Struct, frozen=True):
    """A call, and the words that announce it."""

    tool: str
    arguments: JsonObject
    announcement: str

    @property
    def input_json(self) -> str:
        """The arguments as JSON text of a tool use."""
        return json.dumps(self.arguments, ensure_ascii=False)


def planned_call(step: PlanStep) -> PlannedCall:
    """The call that carries out `step`."""
    match step:
        case ReadStep(path):
            return PlannedCall("read_file", {"path": path}, f"reading {code(path)}")
        case ListStep(folder, glob):
            place: JsonObject = {"path": folder} if folder else {}
            only: JsonObject = {"glob": glob} if glob else {}
            what = f"listing {code(glob or folder)}" if glob or folder else "listing the files"
            return PlannedCall("list_files", {**place, **only}, what)
        case SearchStep(pattern, glob):
            where: JsonObject = {"glob": glob} if glob else {}
            return PlannedCall("search", {"pattern": pattern, **where}, f"searching {code(pattern)}")
        case BashStep(command, slow):
            time: JsonObject = {"slow": True} if slow else {}
            return PlannedCall("bash", {"command": command, **time}, f"running {code(command)}")
        case WriteStep(path, content):
            return PlannedCall("write_file", {"path": path, "content": content}, f"writing {code(path)}")
        case PatchStep(path, old, new):
            edit: JsonObject = {"op": "replace", "old": old, "new": new}
            return PlannedCall("patch", {"path": path, "edits": [edit]}, f"patching {code(path)}")
        case ThinkStep(thoughts):
            return PlannedCall("think", {"thoughts": thoughts}, "noting a thought")
        case _:
            assert_never(step)


def missing_tools(calls: Sequence[PlannedCall], tools: Sequence[ToolSpec]) -> list[str]:
    """The tools these calls need and the conversation does not offer, each once."""
    offered = {spec.name for spec in tools}
    return list(dict.fromkeys(call.tool for call in calls if call.tool not in offered))
