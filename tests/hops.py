"""The files that a reader opens from a key to its effect, as `make structure` counts them.

One rule for all: a chain ends where a request's bytes leave, a program runs, its tree is dead and the row is written,
or rows are drawn. Each step names a file, a function in it, and the text by which that function leads to the next one;
`test_hops.py` holds that every step is there. Functions that only prepare a value are no steps.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
UI: Final = "phoenix_tui/"


class Step(NamedTuple):
    """One function of the chain."""

    file: str
    function: str
    """Dotted inside the file."""
    leads_to: str
    """Text in its body that leads to the next step; empty for the last."""


class Chain(NamedTuple):
    """The way of one action through the source."""

    name: str
    steps: tuple[Step, ...]
    limit: int
    """Files a reader may have to open."""
    of_screens: int
    """Files of the screens among them."""

    @property
    def files(self) -> list[str]:
        """Files in the order in which they are opened first."""
        return list(dict.fromkeys(step.file for step in self.steps))

    @property
    def screens(self) -> list[str]:
        """Files of the screens."""
        return [file for file in self.files if file.startswith(UI)]


W: Final = "phoenix_tui/workspace"
V: Final = "phoenix_tui/widgets"
P: Final = "tools/process"
LOOP: Final = (
    Step("engine/executor/requests.py", "Inbox.put", "entry"),
    Step("engine/executor/loop.py", "MoveLoop._move", "step("),
    Step("engine/machine/step.py", "step", ""),
)
WIRE: Final = (
    Step("engine/executor/loop.py", "MoveLoop._start", "runner.start"),
    Step("engine/executor/effect_runner.py", "EffectRunner._start_asking", "call_model"),
    Step("engine/executor/model_call.py", "_stream", "provider.stream"),
    Step("engine/providers/anthropic/client.py", "AnthropicProvider.stream", "_ask("),
    Step("engine/providers/anthropic/client.py", "AnthropicProvider._ask", "_transport.events"),
    Step("engine/providers/anthropic/client.py", "HttpMessagesTransport.events", "post_stream"),
    Step("engine/providers/http.py", "HttpService.post_stream", "_ask_until_ready"),
    Step("engine/providers/http.py", "HttpService._ask_until_ready", "transport.ask"),
    Step("engine/providers/direct_transport.py", "DirectTransport.ask", "_ask_on"),
    Step("engine/providers/direct_transport.py", "DirectTransport._ask_on", "line.send"),
    Step("engine/providers/direct_transport.py", "HttpConnection.send", "_writer.write"),
)
REQUEST: Final = Chain(
    "Enter to the request",
    (
        Step(f"{V}/composer.py", "Composer.action_order", "keys.orders"),
        Step(f"{V}/composer.py", "ComposerKeys.submit", "Submitted"),
        Step(f"{W}/screen.py", "WorkspaceScreen._submit", "writing.submit"),
        Step(f"{W}/composer_events.py", "ComposerEvents.submit", "sending.send"),
        Step(f"{W}/startup.py", "Startup.then", "_then"),
        Step(f"{W}/sending.py", "Sending.send", "active.current()"),
        Step(f"{W}/active_conversation.py", "ActiveConversation.current", "engine.create"),
        Step("engine/conversation.py", "Conversation.say", "send("),
        Step("engine/executor/user_requests.py", "send", "ask("),
        *LOOP,
        *WIRE,
    ),
    limit=16,
    of_screens=6,
)
ANSWER: Final = Chain(
    "`y` to the program running",
    (
        Step(f"{V}/composer.py", "Composer._answers", "host.answer"),
        Step(f"{V}/dock.py", "Dock.answer", "question"),
        Step(f"{V}/question_panel.py", "QuestionPanel.press", "_answer("),
        Step(f"{W}/screen.py", "WorkspaceScreen.on_question_panel_answered", "sending.answer"),
        Step(f"{W}/sending.py", "Sending.answer", ".answer(call_id"),
        Step("engine/conversation.py", "Conversation.answer", "ask("),
        Step("engine/executor/user_requests.py", "ask", "inbox.put"),
        *LOOP,
        Step("engine/executor/loop.py", "MoveLoop._start", "runner.start"),
        Step("engine/executor/effect_runner.py", "EffectRunner._start_tool", "run_tool"),
        Step("engine/executor/tool_call.py", "run_tool", "_run("),
        Step("engine/executor/tool_call.py", "_run", "ready.tool.run"),
        Step("tools/bash.py", "Bash.run", "jobs.run"),
        Step(f"{P}/jobs.py", "JobTable.run", "_start_awaited"),
        Step(f"{P}/jobs.py", "JobTable._start_awaited", "_supervision.start"),
        Step(f"{P}/supervision.py", "Supervision.start", "start_planned"),
        Step(f"{P}/supervision.py", "Supervision._start", "execution.start"),
        Step(f"{P}/execution.py", "Execution.start", "link.send"),
        Step(f"{P}/zygote/main.py", "_serve", "_fork"),
        Step(f"{P}/zygote/main.py", "_fork", "supervise("),
        Step(f"{P}/zygote/main.py", "supervise", "run(request)"),
        Step(f"{P}/zygote/supervisor.py", "Supervisor.run", "launch("),
        Step(f"{P}/zygote/supervisor.py", "launch", ""),
    ),
    limit=18,
    of_screens=5,
)
STOP: Final = Chain(
    "Esc to the killed tree and the written row",
    (
        Step(f"{W}/screen.py", "WorkspaceScreen.action_stop", "escape_handler.escape"),
        Step(f"{W}/escape.py", "EscapeHandler.escape", "actions[action]"),
        Step(f"{W}/startup.py", "Startup.stop", "sending.stop"),
        Step(f"{W}/sending.py", "Sending.stop", "stop_in_view"),
        Step("phoenix_tui/features/agents.py", "stop_in_view", "cancel"),
        Step("engine/conversation.py", "Conversation.cancel", "_runner.cancel"),
        Step("engine/executor/effect_runner.py", "EffectRunner.cancel", "interrupt"),
        Step("engine/executor/effect_runner.py", "EffectRunner.interrupt", "_tool"),
        Step(f"{P}/jobs.py", "JobTable.run", "see_through"),
        Step(f"{P}/supervision.py", "Supervision.see_through", "execution.kill"),
        Step(f"{P}/execution.py", "Execution.kill", "_control.shutdown"),
        Step(f"{P}/zygote/supervisor.py", "Supervisor.run", "_empty"),
        Step(f"{P}/zygote/supervisor.py", "Supervisor._empty", "kill_once"),
        Step(f"{P}/zygote/supervisor.py", "Supervisor.kill_once", "kill_below"),
        Step(f"{P}/zygote/tree.py", "kill_below", ""),
        *LOOP,
        Step("engine/executor/loop.py", "MoveLoop._commit", "commit"),
        Step("engine/store/store.py", "Store.commit", ""),
    ),
    limit=16,
    of_screens=5,
)
OPEN: Final = Chain(
    "a row of the list to its transcript",
    (
        Step(f"{V}/conversation_list.py", "ConversationList.action_open", "Opened"),
        Step(f"{W}/screen.py", "WorkspaceScreen._open_conversation", "active.open"),
        Step(f"{W}/startup.py", "Startup.then", "_then"),
        Step(f"{W}/active_conversation.py", "ActiveConversation.open", "engine.open"),
        Step("engine/engine.py", "Engine.open", ""),
        Step(f"{W}/active_conversation.py", "ActiveConversation.show", "visible.start"),
        Step(f"{W}/conversation_view.py", "ConversationView.start", "subscribe"),
        Step(f"{W}/conversation_view.py", "ConversationView._begin", "transcript.show"),
        Step(f"{V}/transcript/view.py", "TranscriptView.show", "apply"),
        Step(f"{V}/transcript/view.py", "TranscriptView.render_lines", "_rows.within"),
        Step(f"{V}/transcript/painted_rows.py", "PaintedRows.within", ""),
    ),
    limit=8,
    of_screens=7,
)
AGENT_END: Final = Chain(
    "a sub-agent's end to its parent's next request",
    (
        Step("engine/executor/loop.py", "MoveLoop._tell", "publish"),
        Step("engine/updates.py", "Publisher.publish", ""),
        Step("engine/agents/manager.py", "SubAgents.follow", "_scheduler.follow_state"),
        Step("engine/agents/scheduler.py", "AgentScheduler._settle", "deliver_end"),
        Step("engine/executor/user_requests.py", "AgentMailbox.deliver_end", "AgentFinished"),
        *LOOP,
        *WIRE,
    ),
    limit=12,
    of_screens=0,
)
CHAINS: Final = (REQUEST, ANSWER, STOP, OPEN, AGENT_END)


def body(step: Step) -> str:
    """The source of a step's function; empty where the file has none of that name."""
    path = ROOT / step.file
    if not path.exists():
        return ""
    text = path.read_text("utf-8")
    nodes: list[ast.stmt] = ast.parse(text).body
    for name in step.function.split("."):
        found = [
            node
            for node in nodes
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
        ]
        if not found:
            return ""
        node, nodes = found[-1], found[-1].body
    return ast.get_source_segment(text, node) or ""
