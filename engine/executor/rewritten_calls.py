"""Calls that run with another input than the model's, since a host has answered the question about them with one."""

from __future__ import annotations

import json

from msgspec.structs import replace

from engine.executor.session import Session
from engine.machine.messages import ToolCall
from tools.contract import JsonObject


def as_it_runs(session: Session, call: ToolCall) -> ToolCall:
    """The call with its changed input, if it has one."""
    changed = session.rewritten.get(call.id)
    return call if changed is None else replace(call, input_json=changed)


def rewrite(session: Session, call: ToolCall, args: JsonObject) -> None:
    """Let a call run with another input from now on."""
    session.rewritten[call.id] = json.dumps(args)
