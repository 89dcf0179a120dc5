"""Questions to the user while a call runs: of MCP servers, their sampling included, about hosts, about changed files.

A sampling request is answered by a model without tools once the user agrees. The call belongs to the run that called
the server, and nothing of the conversation is sent with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.context.estimate import blocks_tokens, text_tokens
from engine.executor.approving import denials_of, limits_of, rules_of
from engine.executor.asking import ask_aside, check_budget, named_cheap_model, run_model
from engine.executor.event_hooks import notify
from engine.executor.guarding import check_message
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, Receipt, Refused
from engine.executor.session import Session
from engine.executor.session_parts import ServerQuestion
from engine.machine.messages import Block, ImageBlock, Role, StopReason, TextBlock, ToolCall, Usage, text_in
from engine.machine.states import run_of
from engine.permissions.hosts import ANY_HOST, NET, PORTS, HostRules
from engine.permissions.place import project_of
from engine.permissions.policy import host_rules
from engine.permissions.rules import KeptRule, Rule
from engine.ports import ImageBytes, ModelMessage, ModelReply, ModelRequest, ProviderError, StorageError
from engine.records import PermissionMode
from engine.records.runs import CallPurpose
from engine.updates import ApprovalAsked, Noticed, Question
from tools.clean import clean_line, reveal, reveal_line
from tools.contract import HostVerdict, OutputSoFar, SelfStarting, TerminalDisplay, ToolClass, ToolOutput, ToolRequest
from tools.displays import Answers, AskedOption, AskedQuestion, clean_answers, why_no_answers
from tools.files.self_starting import weigh
from tools.images.contract import ImageRejected
from tools.mcp_form import LEFT, FormAnswer, ServerForm
from tools.mcp_sampling import (
    DECLINED,
    INTERNAL,
    NOT_CALLED,
    YES,
    SampleAnswer,
    SampleForm,
    SampleImage,
    SampleRefused,
    SampleRequest,
)
from tools.wording import both_ends, one_line

GONE = "The server's question is no longer open."
ASKER = "MCP server {name}"
NOTE = "The MCP server {name} asks you"


class ServerQuestions(Struct, frozen=True):
    """Asks the user for servers in one conversation."""

    session: Session

    async def ask(self, server: str, form: ServerForm) -> FormAnswer:
        """The user's answer; left where another process owns the conversation. Cancelling withdraws the question."""
        name = clean_line(server)
        return await self.put(ASKER.format(name=name), NOTE.format(name=name), name, form)

    async def put(self, asker: str, note: str, server: str, form: ServerForm) -> FormAnswer:
        """The user's answer to a question of `asker` while a call runs; `server` names it in lists."""
        session = self.session
        if session.read_only:
            return LEFT
        question = Question(
            ToolCall(f"ask-{session.ports.ids.new()}", f"mcp__{server}", "{}"),
            ToolRequest(note, questions=form.questions),
            "",
            "",
            asker,
            ToolClass.READ,
            session.ports.clock.monotonic(),
            server=server,
        )
        one = ServerQuestion(form, question, asyncio.get_running_loop().create_future())
        session.questions.of_servers.append(one)
        if session.ports.hooks:
            notify(session, "elicitation_dialog", question.request.summary)
        _show_next(session)
        try:
            return await one.answer
        finally:
            session.questions.of_servers.remove(one)
            if session.questions.open is question:
                session.questions.open = None
                session.publisher.publish(ApprovalAsked(None))
            _show_next(session)

    def announce(self, server: str) -> None:
        """Tell hooks that a host is asked in place of the user."""
        if self.session.ports.hooks:
            notify(self.session, "elicitation_dialog", NOTE.format(name=clean_line(server)))


def take_answer(session: Session, call_id: str, answer: ApprovalAnswer) -> Receipt:
    """Give the server an answer, or refuse one that does not fit: the question stays open."""
    one = next((one for one in session.questions.of_servers if one.question.call.id == call_id), None)
    if one is None or one.answer.done():
        return Refused(GONE)
    if answer.choice is ApprovalChoice.DENY:
        one.answer.set_result(LEFT if answer.is_left else FormAnswer())
    else:
        given = clean_answers(answer.answers)
        asked = one.form.questions
        own = (
            text
            for question, chosen in zip(asked, given, strict=False)
            for text in chosen
            if text not in question.labels
        )
        why = why_no_answers(asked, given) or one.form.why_not(given)
        why = why or next((why for text in own if (why := check_message(session, text))), "")
        if why:
            return Refused(why)
        one.answer.set_result(FormAnswer(given))
    return Accepted()


def end_question(session: Session) -> None:
    """Close the open question, unless it is a server's, which ends with its call."""
    if session.questions.open is not None and session.questions.open.server:
        return
    session.questions.open = None
    session.publisher.publish(ApprovalAsked(None))
    _show_next(session)


def _show_next(session: Session) -> None:
    if session.questions.open is None and session.questions.of_servers:
        session.questions.open = session.questions.of_servers[0].question
        session.publisher.publish(ApprovalAsked(session.questions.open))


PHOENIX: Final = "Phoenix"
NAME: Final = "changed files"
KEEP: Final = "Keep"
TAKE_BACK: Final = "Take back"
MOST_NAMED: Final = 12
"""Files that a question names; the others are counted."""
LONGEST_COMMAND: Final = 60


class ChangedFilesForm(Struct, frozen=True):
    """The question whether the changes of one command stay."""

    command: str
    changes: tuple[SelfStarting, ...]

    @property
    def questions(self) -> tuple[AskedQuestion, ...]:
        """One question with two answers."""
        changes = sorted(self.changes, key=lambda change: weigh(change.path))
        asked = f"{self.command} changed {name_files(changes)}. Agents, editors or shells load such files unasked."
        options = (
            AskedOption(KEEP, "they stay as the command left them"),
            AskedOption(TAKE_BACK, "they become as they were before; what the command wrote is kept elsewhere"),
        )
        rows = [f"{change.kind} {reveal_line(change.path)}" for change in changes[:MOST_NAMED]]
        rest = len(changes) - MOST_NAMED
        more = [f"and {rest} more, which the answer covers too"] if rest > 0 else []
        return (AskedQuestion(asked, "Changed files", options, only_options=True, details="\n".join([*rows, *more])),)

    def why_not(self, answers: Answers) -> str:
        """Reason why these answers do not do; empty where they do."""
        return "" if answers[0] and answers[0][0] in {KEEP, TAKE_BACK} else "Choose one of the two answers."


async def settle_changes(session: Session, summary: str, output: ToolOutput) -> ToolOutput:
    """The result of a command once its changes of self-starting files are kept or taken back."""
    if not output.self_starting:
        return output
    note = await settle(session, summary, output.self_starting)
    output = replace(output, self_starting=())
    if not note:
        return output
    display = output.display
    if isinstance(display, TerminalDisplay):
        display = replace(display, output=f"{display.output.rstrip()}\n[{note}]\n".lstrip())
    return replace(output, text=f"{output.text}\n[{note}]", display=display)


async def settle_stopped(session: Session, so_far: OutputSoFar) -> OutputSoFar:
    """The output of a stopped command, whose changes of self-starting files are taken back unasked."""
    captured = so_far.captured
    note = await settle(session, "", captured.changed, asks=False)
    return replace(so_far, captured=replace(captured, notes=(*captured.notes, *filter(None, (note,))), changed=()))


async def settle(session: Session, summary: str, changes: Sequence[SelfStarting], *, asks: bool = True) -> str:
    """A clause on how the changes of one command were settled; empty where they are the user's own history.

    Unattended, and where the question is left or cancelled, they are taken back.
    """
    probe, folder = session.ports.probe, session.record.cwd
    try:
        changes = await probe.sift_changes(folder, changes) if changes else ()
        if not changes:
            return ""
        kept = False
        if asks and session.settings.attended:
            form = ChangedFilesForm(both_ends(one_line(summary), LONGEST_COMMAND), tuple(changes))
            kept = is_kept(await ServerQuestions(session).put(PHOENIX, f"{PHOENIX} asks you", NAME, form))
        if not kept:
            said = " ".join(await probe.take_back(folder, changes))
            return (
                f"{name_files(changes)} taken back: such files are loaded unasked by agents, editors or shells. {said}"
            )
    except BaseException:
        session.background.start(_take_back(session, changes))
        raise
    since = await probe.keep_changes(folder, changes)
    return "; ".join((f"the user kept the changes of {name_files(changes)}", *since))


def is_kept(answer: FormAnswer) -> bool:
    """True for the answer that the changes stay."""
    return answer.answers is not None and answer.answers[0] == (KEEP,)


def name_files(changes: Sequence[SelfStarting]) -> str:
    """The paths as the end of a sentence, three at most."""
    names = [reveal_line(change.path) for change in changes[:3]]
    if len(changes) > 3:
        return f"{', '.join(names)} and {len(changes) - 3} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


async def _take_back(session: Session, changes: Sequence[SelfStarting]) -> None:
    await session.ports.probe.take_back(session.record.cwd, changes)


WAIT: Final = 60.0
"""Seconds that a connection waits for an answer."""
MOST_ASKED: Final = 20
"""Hosts that one call asks about; further ones are refused."""
LONGEST_ASKING: Final = 100
"""Characters of the command in the question."""
ONCE: Final = "Once"
CONVERSATION: Final = "In this conversation"
ALWAYS: Final = "Always in this project"
ANY: Final = "Any host, for this command"
NO: Final = "No"
HEADER: Final = "Network"
HOST_NOTE: Final = "A command wants to reach {host}"
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
        named = f"[{host}]" if ":" in host else host
        shown = named if port in PORTS else f"{named}:{port}"
        if rules.denies(host, port):
            return HostVerdict(allowed=False, why=DENIED.format(host=shown))
        is_usual = port in PORTS and not rules.may_deny(host)
        is_free = is_usual and (self.any_host or (limits.mode is PermissionMode.AUTO and limits.hosts is None))
        if is_free or rules.admits(host, port) or self.granted.admits(host, port):
            return HostVerdict(allowed=True)
        if (host, port) not in self.answers:
            may_ask = self.is_open and self.session.settings.attended and not self.session.read_only
            if not may_ask or limits.unattended:
                return HostVerdict(allowed=False, why=NOT_ALLOWED.format(host=shown))
            if len(self.answers) >= MOST_ASKED:
                return HostVerdict(allowed=False, why=TOO_MANY.format(host=shown))
            self.answers[host, port] = asyncio.create_task(self._ask(shown))
        answer = self.answers[host, port]
        await asyncio.wait({answer})
        if not answer.cancelled():
            return answer.result()
        if is_usual and self.any_host:
            return HostVerdict(allowed=True)
        return HostVerdict(allowed=False, why=NOT_ALLOWED.format(host=shown))  # the call is over

    def close(self) -> None:
        """Ask no more: the call is over."""
        self.is_open = False
        for answer in self.answers.values():
            answer.cancel()

    async def _ask(self, host: str) -> HostVerdict:
        """Ask the user, and keep the answer."""
        command = one_line(reveal(self.request.summary), LONGEST_ASKING)
        meanings = {
            ONCE: "",
            CONVERSATION: f"net({host})",
            ALWAYS: f"net({host})",
            ANY: "ports 80 and 443, until it ends; other commands ask again",
            NO: "",
        }
        options = tuple(AskedOption(label, meaning) for label, meaning in meanings.items())
        asked = AskedQuestion(ASKS.format(command=command, host=host), HEADER, options, only_options=True)
        try:
            async with asyncio.timeout(WAIT):
                questions, note = ServerQuestions(self.session), HOST_NOTE.format(host=host)
                given = await questions.put(self.session.asker, note, HEADER, HostForm((asked,)))
        except TimeoutError:
            return self._refuse(NOT_ANSWERED.format(host=host))
        label = given.answers[0][0] if given.answers and given.answers[0] else NO
        if label not in ALLOWED:
            return self._refuse(SAID_NO.format(host=host))
        if label == ANY:
            self.any_host = True
            mine = asyncio.current_task()
            for (_, port), answer in self.answers.items():
                if answer is not mine and port in PORTS:
                    answer.cancel()
        rule = Rule(NET, host)
        self.rows.append(self._keep(label, rule))
        return HostVerdict(allowed=True)

    def _refuse(self, why: str) -> HostVerdict:
        """Refuse a host, with a row below the call."""
        self.rows.append(why)
        return HostVerdict(allowed=False, why=why)

    def _keep(self, label: str, rule: Rule) -> str:
        """Keep the rule that an answer means; the row about it."""
        session, now = self.session, self.session.ports.clock.now()
        if label == CONVERSATION:
            session.grants.rules[rule] = now
        elif label == ALWAYS:
            try:
                session.ports.rules.add(KeptRule(str(rule), now, str(project_of(session.record.cwd))))
            except OSError as error:
                return f"{rule} could not be saved: {error.strerror or error}. It is allowed for this command."
        return ALLOWED[label].format(host=rule.pattern, rule=rule)


def select_granted_hosts(hosts: tuple[str, ...]) -> HostRules:
    """The hosts that a yes was for."""
    return HostRules(tuple(one for one in hosts if one != ANY_HOST))


PATIENCE: Final = 120.0
"""Seconds that an answer may take."""
MOST_SAMPLES: Final = 10
"""Requests about which the user is asked in one run."""
LONGEST_ANSWER: Final = 100_000
"""Characters."""
LEAST_SHOWN: Final = 0.0001
"""US dollars."""
STOPS: Final = {
    StopReason.MAX_TOKENS: "maxTokens",
    StopReason.STOP_SEQUENCE: "stopSequence",
    StopReason.REFUSAL: "refusal",
    StopReason.CONTENT_FILTER: "contentFilter",
}
"""Reasons as MCP names them; all others are `endTurn`."""
TOO_MANY_SAMPLES: Final = f"At most {MOST_SAMPLES} sampling requests are answered in one run."
DECLINED_SAMPLING: Final = "The user declined the sampling request."
NO_MODEL: Final = "No model can answer the sampling request."
NO_ANSWER: Final = "The model gave no answer to the sampling request."


class ServerSampling(Struct, frozen=True):
    """Answers requests of servers in the run of `calling`; `asking` is the conversation of its user."""

    asking: Session
    calling: Session

    async def answer(self, server: str, request: SampleRequest) -> SampleAnswer:
        """The answer of a model, after a yes. Cancelling withdraws the question, or ends the model's call.

        Raises:
            SampleRefused: there is none.
        """
        asking = self.asking
        if asking.read_only or run_of(self.calling.state) is None:
            raise SampleRefused(NOT_CALLED, DECLINED)
        if asking.run.samples >= MOST_SAMPLES:
            raise SampleRefused(TOO_MANY_SAMPLES, DECLINED)
        asking.run.samples += 1
        model = named_cheap_model(self.calling) or run_model(self.calling)
        prepared = await self._build_request(model, request)
        tokens = _count_input(prepared)
        usage = Usage(input_tokens=tokens, output_tokens=prepared.max_tokens or 0)
        price = await asyncio.to_thread(self.calling.ports.providers.price, model, usage)
        bound = "price unknown" if price is None else "free of charge"
        if price:
            bound = f"about ${max(price, LEAST_SHOWN):.4f} at most"
        form = SampleForm(request, model, f"~{tokens:,} to read, {bound}")
        if await ServerQuestions(asking).ask(server, form) != FormAnswer(((YES,),)):
            raise SampleRefused(DECLINED_SAMPLING, DECLINED)
        reply = await self._ask_model(server, model, prepared)
        text, stop = text_in(reply.blocks)[:LONGEST_ANSWER], STOPS.get(reply.stop, "endTurn")
        places = [place for one in request.stops if (place := text.find(one)) >= 0]
        if places:
            text, stop = text[: min(places)], "stopSequence"
        return SampleAnswer(text, reply.model, stop)

    async def _build_request(self, model: str, request: SampleRequest) -> ModelRequest:
        """The request to the model: texts and images of the server, and nothing else."""
        try:
            provider, name = self.calling.ports.providers.resolve(model)
        except ProviderError as error:
            raise SampleRefused(NO_MODEL, INTERNAL, error.message) from error
        info = provider.describe(name)
        if not info.summarizes:
            raise SampleRefused(NO_MODEL, INTERNAL, f"{model} does not answer questions")
        images: dict[str, ImageBytes] = {}
        messages = [
            ModelMessage(Role(one.role), tuple([await self._build_block(part, images) for part in one.parts]))
            for one in request.messages
        ]
        if images and info.vision is False:
            raise SampleRefused("The model reads no images.")
        made = ModelRequest(
            name,
            (request.system,) if request.system else (),
            tuple(messages),
            images=images,
            max_tokens=request.max_tokens,
        )
        if 0 < info.context_window < _count_input(made) + request.max_tokens:
            raise SampleRefused("The sampling request is longer than the window of the model.")
        return made

    async def _build_block(self, part: str | SampleImage, images: dict[str, ImageBytes]) -> Block:
        if isinstance(part, str):
            return TextBlock(part)
        try:
            image = await self.calling.ports.images.prepare(part.data)
        except ImageRejected as error:
            raise SampleRefused("An image of the sampling request cannot be read.", why=str(error)) from error
        key = self.calling.ports.ids.new()
        images[key] = ImageBytes(image.media_type, image.data)
        return ImageBlock(key, image.width, image.height)

    async def _ask_model(self, server: str, model: str, request: ModelRequest) -> ModelReply:
        session = self.calling
        try:
            check_budget(session)
            async with asyncio.timeout(PATIENCE):
                reply, _ = await ask_aside(session, CallPurpose.SAMPLING, model, request)
        except (ProviderError, StorageError) as error:
            why = str(error)
        except TimeoutError:
            why = f"{model} did not answer within {PATIENCE:.0f} s."
        else:
            return reply
        self.asking.publisher.publish(Noticed(f"MCP server {clean_line(server)} got no answer: {why}"))
        raise SampleRefused(NO_ANSWER, INTERNAL, why)


def _count_input(request: ModelRequest) -> int:
    return sum(map(text_tokens, request.system)) + sum(blocks_tokens(one.blocks) for one in request.messages)
