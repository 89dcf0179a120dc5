"""Questions of `ask_user` for tests."""

from __future__ import annotations

import json
from typing import Any

from tests.support.scripted_provider import Reply, ScriptedCall

COLOUR: dict[str, Any] = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
PARTS: dict[str, Any] = {
    "question": "Which parts?",
    "header": "Parts",
    "multiSelect": True,
    "options": [{"label": name, "description": ""} for name in ("API", "Docs", "Tests")],
}


def call(*questions: dict[str, Any], call_id: str = "t1") -> ScriptedCall:
    return ScriptedCall("ask_user", json.dumps({"questions": list(questions or (COLOUR,))}), call_id)


def asks(*questions: dict[str, Any]) -> Reply:
    return Reply((call(*questions),))
