"""Every message of a session is just as the schema has it: known methods, known fields, values of their types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import acp
from acp import schema
from pydantic import BaseModel

from tests.support.acp_client import NO_SERVERS, Editor, option, scripted
from tests.support.journeys import calls, says

ASKED = [
    {
        "question": "Which?",
        "header": "One",
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
    }
]
TODOS = [{"content": "Read", "status": "in_progress"}]
ANSWERS: dict[str, type[BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
    "session/close": schema.CloseSessionResponse,
}
REQUESTS: dict[str, type[BaseModel]] = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
    "elicitation/create": schema.CreateFormSessionElicitationRequest,
}


def as_the_schema_has_it(kind: type[BaseModel], sent: Any) -> Any:
    """The value after its way through the schema, which drops what it does not know."""
    return kind.model_validate(sent).model_dump(mode="json", by_alias=True, exclude_unset=True)


async def test_every_message_is_one_of_the_schema(tmp_path: Path) -> None:
    editor = Editor(choose=option("allow_once"), fill={"q1": "A"})
    form = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
    script = (
        calls("todo_write", "toolu_1", todos=TODOS),
        calls("bash", "toolu_2", command="echo one"),
        calls("write_file", "toolu_3", path="a.txt", content="text"),
        calls("ask_user", "toolu_4", questions=ASKED),
        says("Done."),
    )
    async with scripted(tmp_path, *script, editor=editor, elicitation=form) as opened:
        agent, cwd, session = opened.agent, str(opened.phoenix.cwd), opened.session_id
        await opened.says("Go")
        await agent.set_session_mode(session_id=session, mode_id="plan")
        await agent.set_config_option(config_id="effort", session_id=session, value="low")
        await agent.list_sessions()
        copy = await agent.fork_session(cwd=cwd, session_id=session)
        await agent.close_session(session_id=copy.session_id)
        await agent.close_session(session_id=session)
        await agent.load_session(cwd=cwd, session_id=session, mcp_servers=NO_SERVERS)
        await agent.prompt(session_id=session, prompt=[acp.text_block("Again")])
    asked = {one["id"]: one["method"] for one in editor.frames if one["direction"] == "outgoing" and "method" in one}
    seen: set[str] = set()
    for frame in editor.frames:
        if frame["direction"] == "outgoing":
            continue
        assert frame["jsonrpc"] == "2.0"
        method = frame.get("method") or asked[frame["id"]]
        kind = (REQUESTS if "method" in frame else ANSWERS)[method]
        sent = frame["params"] if "method" in frame else frame["result"]
        assert as_the_schema_has_it(kind, sent) == sent, method
        seen.add(method)
    assert seen == set(ANSWERS) | set(REQUESTS)
