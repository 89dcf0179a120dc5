"""The slash commands of the linear front end; their words are those of the screen's catalogue where both have them."""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from engine.executor.requests import EngineError, Refused
from engine.machine.states import is_busy
from engine.ports import ConversationChanges
from engine.records import ConversationQuery, ConversationSummary, PermissionMode
from engine.search import SearchSyntaxError, parse_search
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.features.export import export
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.features.sub_agents import views_of
from phoenix_tui.linear import (
    agents,
    approving,
    attaching,
    changing,
    confining,
    going_back,
    profiling,
    queueing,
    routing,
    ruling,
    side_questions,
    summarizing,
    window,
)
from phoenix_tui.linear.command import LinearCommand, open_conversation
from phoenix_tui.text.agent_text import cost_lines
from phoenix_tui.text.cost_text import call_lines
from phoenix_tui.text.job_text import RUNS_ON
from phoenix_tui.text.labels import MODE_MEANINGS, age, clock, money, tokens
from phoenix_tui.text.run_text import run_lines
from tools.clean import reveal
from tools.wording import counted

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront

MOST_LISTED: Final = 20
READ_BACK: Final = 4
OUTPUT_ROWS: Final = 200


async def run_linear(front: LinearFront, name: str, argument: str) -> None:
    """Do it; an unknown name is answered with the nearest one. Raises EngineError."""
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
        front.say(f"There is no /{name}.{f' Did you mean /{near[0]}?' if near else ' /help lists all.'}")
        return
    await command.run(front, argument)


async def _help(front: LinearFront, _: str) -> None:
    front.say("Commands:", *(f"/{name}: {command.meaning}." for name, command in COMMANDS.items()))
    front.say(
        "!COMMAND runs a command for you, and the model reads its output. !!COMMAND is for you alone.",
        "Up and Down bring back earlier lines. Ctrl+J begins a new line in a message.",
        "A question is answered y, s, a, n or r, then Enter. A message sent while the agent works is queued.",
        "The path of an image, alone on a line, attaches it.",
    )


async def _new(front: LinearFront, _: str) -> None:
    await front.talk.put_away("")
    front.say("New conversation.")


async def _resume(front: LinearFront, reference: str) -> None:
    engine = front.services.engine
    if reference:
        found = await engine.find(reference, partly=True)
    else:
        found = (await engine.list(ConversationQuery()))[:MOST_LISTED]
    if not found:
        front.say(f"No conversation is called {reference}." if reference else "There is no conversation yet.")
        return
    chosen = 0 if reference and len(found) == 1 else await front.choose("Conversations:", _rows(found))
    if chosen is not None:
        await front.open(found[chosen].id)


def _rows(found: Sequence[ConversationSummary]) -> list[str]:
    now = time.time()
    return [
        f"{row.title or 'new conversation'}, {counted(row.message_count, 'message')}, {age(now - row.updated_at)} ago"
        f"{', unread' if row.unread else ''}{', by a script' if row.scripted else ''}"
        for row in found
    ]


async def _rename(front: LinearFront, title: str) -> None:
    conversation = front.talk.conversation
    title = title or await front.ask_line("Title: ")
    if conversation is not None and title:
        await conversation.change(ConversationChanges(title=title))


async def _model(front: LinearFront, reference: str) -> None:
    if not reference:
        offered = await front.services.models()
        chosen = await front.choose("Models:", [one.reference for one in offered])
        if chosen is None:
            return
        reference = offered[chosen].reference
    front.talk.model = reference
    try:
        await front.services.onboarding.accept_server(reference)
    except EngineError as error:
        front.say(str(error))
    if front.talk.conversation is not None:
        await front.talk.attempt(front.talk.conversation.change(ConversationChanges(model=reference)))
    front.say(f"Model {reference}.")


async def _permissions(front: LinearFront, word: str) -> None:
    modes = list(PermissionMode)
    if not word:
        chosen = await front.choose("Modes:", [f"{mode.value}: {MODE_MEANINGS[mode]}" for mode in modes])
        word = modes[chosen].value if chosen is not None else ""
    if not word:
        return
    if word not in {mode.value for mode in modes}:
        front.say(f"Modes: {', '.join(mode.value for mode in modes)}.")
        return
    mode, conversation = PermissionMode(word), front.talk.conversation
    if conversation is None:
        front.talk.mode = mode
    elif not await front.talk.attempt(conversation.change(ConversationChanges(permission_mode=mode))):
        return
    front.say(f"Mode {word}: {MODE_MEANINGS[mode]}.")


async def _cost(front: LinearFront, _: str) -> None:
    if front.talk.conversation is None:
        front.say("Nothing was sent yet.")
        return
    conversation = front.talk.conversation
    totals = conversation.record.spent
    price = "unknown" if totals.cost_usd is None else money(totals.cost_usd) or "$0.00"
    front.say(f"Cost: {price}, {tokens(totals.input_tokens)} tokens in, {tokens(totals.output_tokens)} out.")
    for line in cost_lines(conversation.record, views_of(front.services.engine, conversation.id)):
        front.say(line)
    for line in call_lines(await front.services.library.calls(conversation.id)):
        front.say(line)
    for run in await front.services.library.runs(conversation.id, 1):
        front.say("Last run:", *run_lines(run))


async def _read(front: LinearFront, number: str) -> None:
    await front.talk.read(min(int(number), 100) if number.isdecimal() else READ_BACK)


async def _output(front: LinearFront, _: str) -> None:
    rows = front.talk.spoken.last_output.strip().splitlines()
    front.say(*(rows[:OUTPUT_ROWS] or ["No tool has said anything yet."]))
    if len(rows) > OUTPUT_ROWS:
        front.say(f"{len(rows) - OUTPUT_ROWS} more lines.")


async def _state(front: LinearFront, _: str) -> None:
    live = [one for one in front.services.engine.live() if is_busy(one.state)]
    busy = "Working." if front.talk.busy else "Ready."
    front.say(f"{busy} {counted(len(live), 'conversation')} at work in all.")


async def _now(front: LinearFront, text: str) -> None:
    if text:
        await front.talk.send(text, interrupt=True)


async def _fork(front: LinearFront, _: str) -> None:
    if front.talk.conversation is None:
        front.say("There is nothing to copy yet.")
        return
    copy = await front.services.engine.fork(front.talk.conversation.id)
    await front.open(copy.id)


async def _search(front: LinearFront, text: str) -> None:
    try:
        query = parse_search(text or await front.ask_line("Search for: "), cwd=front.launch.cwd)
    except SearchSyntaxError as error:
        front.say(f"Not searched: {error}")
        return
    hits = (await front.services.library.search(query, limit=MOST_LISTED)).hits
    if not hits:
        front.say("Nothing was found. Fewer words find more.")
        return
    rows = [f"{hit.title or 'new conversation'}, {hit.speaker.value}: {hit.snippet}" for hit in hits]
    chosen = await front.choose("Found:", rows)
    if chosen is not None:
        await front.open(hits[chosen].conversation_id)
        front.say("The message that was found:")
        await front.talk.read_at(hits[chosen].seq)


async def _find(front: LinearFront, text: str) -> None:
    conversation = open_conversation(front)
    text = text or (await front.ask_line("Find: ") if conversation is not None else "")
    if conversation is None or not text:
        return
    found = (await front.services.library.find(conversation.id, text))[-MOST_LISTED:]
    if not found:
        front.say("It does not stand in this conversation. /search looks everywhere.")
        return
    rows = [
        f"message {one.seq}{', output of a tool' if one.call_id else ''}, {counted(one.count, 'time')}" for one in found
    ]
    chosen = await front.choose("Found, the newest last:", rows)
    if chosen is not None:
        await front.talk.read_at(found[chosen].seq)


async def _export(front: LinearFront, name: str) -> None:
    conversation = open_conversation(front)
    if conversation is None:
        return
    try:
        front.say(f"Written to {await export(conversation, front.services, name)}.")
    except CommandError as error:
        front.say(f"Refused: {error.sentence}")


async def _jobs(front: LinearFront, _: str) -> None:
    conversation = open_conversation(front)
    running = [job for job in conversation.jobs.all() if job.running] if conversation is not None else []
    if conversation is None or not running:
        front.say("No background command runs.")
        return
    rows = [f"{reveal(job.command)}, for {clock(job.elapsed)}" for job in running]
    chosen = await front.choose("Running in the background. A number ends one:", rows)
    if chosen is not None:
        await conversation.jobs.kill(running[chosen].id)


async def _background(front: LinearFront, _: str) -> None:
    conversation = open_conversation(front)
    if conversation is not None:
        receipt = conversation.jobs.background()
        front.say(receipt.reason if isinstance(receipt, Refused) else RUNS_ON)


async def _config(front: LinearFront, text: str) -> None:
    name, _, value = text.partition(" ")
    settings = front.services.settings
    if value:
        settings.save(name, value.strip())
    found = [one for one in settings.all() if name in {"", one.name}]
    if not found:
        front.say(f"There is no setting {name}. /config lists all.")
    front.say(*(f"{one.name}: {one.value or 'not set'}, from {one.source}. It is {one.allowed}." for one in found))


async def _retry(front: LinearFront, _: str) -> None:
    conversation = front.talk.conversation
    if conversation is not None:
        await front.talk.attempt(conversation.retry(caps_for(front, conversation)))


async def _stop(front: LinearFront, _: str) -> None:
    if not front.talk.stop():
        front.say("Nothing runs.")


async def _stop_all(front: LinearFront, _: str) -> None:
    await front.services.engine.stop_all()


async def _delete(front: LinearFront, _: str) -> None:
    await _put_aside(front, ConversationChanges(deleted=True), "In the trash.")


async def _archive(front: LinearFront, _: str) -> None:
    await _put_aside(front, ConversationChanges(archived=True), "Archived.")


async def _put_aside(front: LinearFront, changes: ConversationChanges, words: str) -> None:
    conversation = front.talk.conversation
    if conversation is None or front.talk.busy:
        front.say("It is running: stop it first." if conversation is not None else "No conversation is open.")
        return
    await front.talk.put_away("")
    await front.services.engine.change(conversation.id, changes)
    await front.services.engine.forget(conversation.id)
    front.say(words)


async def _doctor(front: LinearFront, _: str) -> None:
    front.say(*(await front.services.doctor()).splitlines())


async def _quit(front: LinearFront, _: str) -> None:
    front.leave(0)


COMMANDS: Final[dict[str, LinearCommand]] = {
    "help": LinearCommand("this list", _help),
    "new": LinearCommand("new conversation", _new),
    "resume": LinearCommand("open another conversation, by title, id or number", _resume),
    "rename": LinearCommand("give this conversation a title", _rename),
    "read": LinearCommand("read the last messages again; /read 10 reads ten", _read),
    "output": LinearCommand("read the whole output of the last tool", _output),
    "state": LinearCommand("what happens now", _state),
    "now": LinearCommand("/now TEXT stops the run and sends the text", _now),
    **queueing.COMMANDS,
    **attaching.COMMANDS,
    **approving.COMMANDS,
    "background": LinearCommand("send the command that runs to the background", _background),
    "jobs": LinearCommand("background commands; end one", _jobs),
    "model": LinearCommand("choose the model", _model),
    **confining.COMMANDS,
    "permissions": LinearCommand("choose what runs without asking", _permissions),
    **ruling.COMMANDS,
    **profiling.COMMANDS,
    **agents.COMMANDS,
    **routing.COMMANDS,
    **side_questions.COMMANDS,
    **window.COMMANDS,
    **summarizing.COMMANDS,
    "cost": LinearCommand("tokens and cost of this conversation", _cost),
    "search": LinearCommand("search everything that was said, open what was found", _search),
    "config": LinearCommand("every setting; /config NAME VALUE changes one, mostly from the next start", _config),
    "find": LinearCommand("find in this conversation, and read what was found", _find),
    **changing.COMMANDS,
    **going_back.COMMANDS,
    "export": LinearCommand("write this conversation to a file: Markdown, or JSON for .json", _export),
    "fork": LinearCommand("continue in a copy", _fork),
    "retry": LinearCommand("try the last request again", _retry),
    "stop": LinearCommand("stop this conversation's run, as Esc does", _stop),
    "stopall": LinearCommand("stop every run of every conversation", _stop_all),
    "archive": LinearCommand("put this conversation away", _archive),
    "delete": LinearCommand("move this conversation to the trash", _delete),
    "doctor": LinearCommand("what works on this machine", _doctor),
    "quit": LinearCommand("leave Phoenix", _quit),
}
