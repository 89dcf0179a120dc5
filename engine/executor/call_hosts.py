"""Hosts that a running command wants to reach: allowed, refused, or asked about while the connection waits."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct, field

from engine.executor.approving import denials_of, limits_of, rules_of
from engine.executor.server_questions import ServerQuestions
from engine.executor.session import Session
from engine.machine.messages import ToolCall
from engine.permissions.hosts import ANY_HOST, NET, PORTS, HostRules
from engine.permissions.policy import host_rules
from engine.permissions.projects import project_of
from engine.permissions.rules import KeptRule, Rule
from engine.records import PermissionMode
from tools.asked_questions import Answers, AskedOption, AskedQuestion
from tools.clean import reveal
from tools.contract import HostVerdict, ToolRequest
from tools.wording import one_line

WAIT: Final = 60.0
"""Seconds that a connection waits for an answer."""
MOST_ASKED: Final = 20
"""Hosts that one call asks about; further ones are refused."""
LONGEST_COMMAND: Final = 100
"""Characters of the command in the question."""
ONCE: Final = "Once"
CONVERSATION: Final = "In this conversation"
ALWAYS: Final = "Always in this project"
ANY: Final = "Any host, for this command"
NO: Final = "No"
HEADER: Final = "Network"
NOTE: Final = "A command wants to reach {host}"
ASKS: Final = "{command}\nwants to reach {host}, which is not allowed yet. Its connection waits for a minute."
DENIED: Final = "the rule deny net({host}) refuses it"
NOT_ALLOWED: Final = "{host} is not allowed here"
SAID_NO: Final = "the user did not allow {host}"
NOT_ANSWERED: Final = "nobody answered in time whether {host} may be reached"
TOO_MANY: Final = "{host} is not allowed, and this command asked about too many hosts"
ALLOWED: Final = {
    ONCE: "{host}: allowed for this command",
    ANY: "any host: allowed for this command",
    CONVERSATION: "allowed for this conversation: {rule}",
    ALWAYS: "always allowed in this project: {rule}",
}
"""Rows about an answer, below the call."""


class HostForm(Struct, frozen=True):
    """The question about a host."""

    questions: tuple[AskedQuestion, ...]

    def why_not(self, answers: Answers) -> str:
        """Every choice does."""
        del answers
        return ""


class CallHosts(Struct, eq=False):
    """Decides about the hosts of one call; implements `tools.contract.HostGate`."""

    session: Session
    call: ToolCall
    request: ToolRequest
    granted: HostRules
    """Hosts of the yes for this call."""
    rows: list[str]
    """Rows below the call."""
    any_host: bool = False
    """True once the user allowed every host of this call, on the usual ports."""
    is_open: bool = True
    """True while the call runs: what it left in the background asks nothing."""
    answers: dict[tuple[str, int], asyncio.Task[HostVerdict]] = field(
        default_factory=dict[tuple[str, int], "asyncio.Task[HostVerdict]"]
    )

    async def __call__(self, host: str, port: int) -> HostVerdict:
        """Decide; every connection to the same host waits for one answer."""
        limits = await limits_of(self.session)
        rules = host_rules(limits, rules_of(self.session), denials_of(self.session))
        shown = host_text(host, port)
        if rules.denies(host, port):
            return HostVerdict(allowed=False, why=DENIED.format(host=shown))
        is_free = port in PORTS and (self.any_host or (limits.mode is PermissionMode.AUTO and limits.hosts is None))
        if is_free or rules.admits(host, port) or self.granted.admits(host, port):
            return HostVerdict(allowed=True)
        if (host, port) not in self.answers:
            if not self._may_ask() or limits.unattended:
                return HostVerdict(allowed=False, why=NOT_ALLOWED.format(host=shown))
            if len(self.answers) >= MOST_ASKED:
                return HostVerdict(allowed=False, why=TOO_MANY.format(host=shown))
            self.answers[host, port] = asyncio.create_task(self._ask(shown))
        return await asyncio.shield(self.answers[host, port])

    def close(self) -> None:
        """Ask no more: the call is over."""
        self.is_open = False
        for answer in self.answers.values():
            answer.cancel()

    def _may_ask(self) -> bool:
        return self.is_open and self.session.settings.attended and not self.session.read_only

    async def _ask(self, host: str) -> HostVerdict:
        """Ask the user, and keep the answer."""
        command = one_line(reveal(self.request.summary), LONGEST_COMMAND)
        labels = (ONCE, CONVERSATION, ALWAYS, ANY, NO)
        options = tuple(AskedOption(label, self._meaning(label, host)) for label in labels)
        asked = AskedQuestion(ASKS.format(command=command, host=host), HEADER, options, only_options=True)
        try:
            async with asyncio.timeout(WAIT):
                questions, note = ServerQuestions(self.session), NOTE.format(host=host)
                given = await questions.put(self.session.asker, note, HEADER, HostForm((asked,)))
        except TimeoutError:
            return self._refused(NOT_ANSWERED.format(host=host))
        except asyncio.CancelledError:
            if not self.any_host:
                raise
            return HostVerdict(allowed=True)
        label = given.answers[0][0] if given.answers and given.answers[0] else NO
        if label not in ALLOWED:
            return self._refused(SAID_NO.format(host=host))
        if label == ANY:
            self.any_host = True
            self._withdraw_others()
        rule = Rule(NET, host)
        self.rows.append(self._keep(label, rule))
        return HostVerdict(allowed=True)

    def _refused(self, why: str) -> HostVerdict:
        """Refuse a host, with a row below the call."""
        self.rows.append(why)
        return HostVerdict(allowed=False, why=why)

    def _withdraw_others(self) -> None:
        """Take back the open questions that the answer about any host answers too."""
        mine = asyncio.current_task()
        for (_, port), answer in self.answers.items():
            if answer is not mine and port in PORTS:
                answer.cancel()

    def _meaning(self, label: str, host: str) -> str:
        if label == ANY:
            return "ports 80 and 443, until it ends; other commands ask again"
        return f"net({host})" if label in {CONVERSATION, ALWAYS} else ""

    def _keep(self, label: str, rule: Rule) -> str:
        """Keep the rule that an answer means; the row about it."""
        session, now = self.session, self.session.ports.clock.now()
        if label == CONVERSATION:
            session.rules[rule] = now
        elif label == ALWAYS:
            try:
                session.ports.rules.add(KeptRule(str(rule), now, str(project_of(session.record.cwd))))
            except OSError as error:
                return f"{rule} could not be saved: {error.strerror or error}. It is allowed for this command."
        return ALLOWED[label].format(host=rule.pattern, rule=rule)


def host_text(host: str, port: int) -> str:
    """A host as a rule names it: with its port where that is none of the usual ones."""
    named = f"[{host}]" if ":" in host else host
    return named if port in PORTS else f"{named}:{port}"


def granted_hosts(hosts: tuple[str, ...]) -> HostRules:
    """The hosts that a yes was for."""
    return HostRules(tuple(one for one in hosts if one != ANY_HOST))
