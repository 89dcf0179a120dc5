"""Sub-agents of a session: their words below the call that started them, their questions as the session's own."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from engine.api.conversation import ConversationApi
from engine.machine.messages import Role, text_in
from engine.records import AgentFacts
from engine.updates import ApprovalAsked, MessageSaved, RunEnded, ToolStarted, Update
from phoenix_tui.acp.approvals import Approvals
from phoenix_tui.acp.pump import UpdatePump
from phoenix_tui.acp.tool_calls import text_part
from phoenix_tui.acp.translator import Translator, progress
from tools.call_titles import tool_label
from tools.clean import clean, clean_line

LONGEST_NOTE: Final = 2_000
"""Characters of a sub-agent's newest words."""


class _Row(Struct):
    task: str
    doing: str = "begins"
    said: str = ""


class AgentsInSession(Struct):
    """The sub-agents of one session by the call that started them."""

    pump: UpdatePump
    translator: Translator
    approvals: Approvals
    _rows: dict[str, dict[str, _Row]] = field(default_factory=dict[str, dict[str, _Row]])

    def follow(self, agent: ConversationApi, facts: AgentFacts, update: Update) -> None:
        """Take in an update of a sub-agent."""
        if isinstance(update, ApprovalAsked):
            self.approvals.follow(agent, update.question)
            return
        rows = self._rows.setdefault(facts.call_id, {})
        row = rows.setdefault(agent.id, _Row(clean_line(facts.task)))
        match update:
            case ToolStarted(call, request):
                row.doing = clean_line(request.summary if request is not None else tool_label(call.name))
            case MessageSaved(message) if message.role is Role.ASSISTANT and not message.silent:
                row.said = clean(text_in(message.blocks, "\n\n"))[:LONGEST_NOTE] or row.said
            case RunEnded(status=status):
                row.doing = f"ended: {status}"
            case _:
                return
        self._show(facts.call_id, rows)

    def _show(self, call_id: str, rows: dict[str, _Row]) -> None:
        if call_id not in self.translator.calls:  # it has ended, and shows the outcome
            self._rows.pop(call_id, None)
            return
        content = [text_part(f"**{row.task}**: {row.doing}\n\n{row.said}".rstrip()) for row in rows.values()]
        self.pump.put(progress(call_id, content=content, field_meta={"phoenix": {"agents": list(rows)}}))
