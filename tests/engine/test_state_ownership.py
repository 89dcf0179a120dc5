"""The state of a conversation is assigned in one place, and events reach a move through the machine alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from engine.executor.session import Session
from engine.machine import events
from engine.records import ConversationRecord

ENGINE = Path(events.__file__).parents[1]
LOOP = ENGINE / "executor" / "loop.py"
EVENTS = {name for name, kind in vars(events).items() if getattr(kind, "__module__", "") == events.__name__}


def assignments(path: Path, name: str) -> list[str]:
    """The functions of a file that assign an attribute of this name, or hand it to a copy of a session."""
    found: list[str] = []
    text = path.read_text()
    if not re.search(rf"\b{name}\b", text):  # the others are not worth parsing
        return found
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=targets):
                    pass
                case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                    targets = [target]
                case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str() as attribute), *_]):
                    targets = [ast.Attribute(ast.Name("_"), attribute)]
                case _:
                    continue
            parts = [part for target in targets for part in ast.walk(target)]
            found += [function.name for part in parts if isinstance(part, ast.Attribute) and part.attr == name]
    return found


def test_the_loop_alone_assigns_the_state_of_a_conversation_and_in_one_place() -> None:
    servers = ENGINE / "extensions" / "mcp"  # connections to servers have a state of their own
    paths = (path for path in ENGINE.rglob("*.py") if not path.is_relative_to(servers))
    found = {path.relative_to(ENGINE): assignments(path, "state") for path in paths}
    assert {str(path): names for path, names in found.items() if names} == {"executor/loop.py": ["enter"]}


def test_the_record_of_an_open_conversation_is_assigned_in_one_place() -> None:
    found = {path.relative_to(ENGINE): assignments(path, "record") for path in ENGINE.rglob("*.py")}
    assert {str(path): names for path, names in found.items() if names} == {"executor/session.py": ["set_record"]}


def test_the_record_of_an_open_conversation_holds_no_state() -> None:
    assert "state" in Session.__struct_fields__
    assert "state" not in ConversationRecord.__struct_fields__


def test_the_loop_looks_into_no_event() -> None:
    named = {node.id for node in ast.walk(ast.parse(LOOP.read_text())) if isinstance(node, ast.Name)}
    assert named & EVENTS == set()
