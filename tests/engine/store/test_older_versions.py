"""A database of an older version, copied while its engine ran: every value is read, every conversation goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias, cast

import pytest

from engine import codec
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted
from engine.machine.effects import Strategy
from engine.machine.messages import (
    ImageBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    text_in,
)
from engine.machine.states import (
    STATE_NAMES,
    AgentOutcome,
    AgentRun,
    AgentStatus,
    AgentTask,
    AwaitingApproval,
    AwaitingLlm,
    AwaitingSubagents,
    BrokenText,
    Cancelling,
    Compacting,
    CompactingContext,
    Completed,
    Errored,
    Failed,
    Idle,
    Requesting,
    RetryWait,
    Routing,
    Run,
    State,
    ToolExecuting,
    ToolRound,
)
from engine.machine.views import EarlierView, Omission, OmissionKind
from engine.ports.files import FileKind
from engine.records import ConversationQuery, QueuedMessage
from engine.records.runs import Totals
from engine.search import parse_search
from engine.store import StorePaths, open_store
from tests.support.engine import engine_harness
from tests.support.fates import faults_of, unanswered
from tests.support.scripted_provider import Reply, Text
from tests.support.storage import dump, query
from tools.contract import (
    AgentsDisplay,
    DiffDisplay,
    Display,
    ImageDisplay,
    JsonValue,
    PlainDisplay,
    TerminalDisplay,
)

FIXTURES = Path(__file__).with_name("fixtures")
OLD, NEW = "1d632f5", "2088f7d"
VERSIONS = (OLD, NEW)
LAST = ("ba6be456", "da796878")
"""Commits that already had the present schema."""
Reread: TypeAlias = Callable[[str], str | None]


def restored(home: Path, version: str) -> StorePaths:
    """The database of a version below `home`, as it was when its process was killed."""
    paths = StorePaths.under(home)
    paths.database.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(paths.database)
    connection.executescript((FIXTURES / f"{version}.sql").read_text().replace("@HOME@", str(home)))
    connection.close()
    return paths


def id_of(paths: StorePaths, title: str) -> str:
    """The newest conversation of a title: a rewind leaves a branch of the same."""
    ((found,),) = query(
        paths.database, "SELECT id FROM conversations WHERE title = ? ORDER BY rowid DESC LIMIT 1", title
    )
    return str(found)


def run_of(paths: StorePaths, title: str) -> str:
    """The run of a conversation that was under way, or the last one."""
    ((found,),) = query(
        paths.database,
        "SELECT id FROM runs WHERE conversation_id = ? ORDER BY status = 'running' DESC, rowid DESC LIMIT 1",
        id_of(paths, title),
    )
    return str(found)


def asked_of(paths: StorePaths, title: str) -> str:
    """The message with which a model asked for tools."""
    ((found,),) = query(
        paths.database,
        "SELECT id FROM messages WHERE conversation_id = ? AND role = 'assistant' ORDER BY seq DESC LIMIT 1",
        id_of(paths, title),
    )
    return str(found)


def spawned_by(paths: StorePaths, title: str) -> str:
    """The message that put sub-agents to work."""
    ((found,),) = query(
        paths.database,
        "SELECT assistant_message_id FROM tool_calls WHERE conversation_id = ? AND name = 'spawn_agents'",
        id_of(paths, title),
    )
    return str(found)


def expected_states(paths: StorePaths, version: str) -> dict[str, State]:
    """The state of every conversation that was not idle, by title."""
    waits = json.loads(
        cast("str", query(paths.database, "SELECT state_json FROM conversations WHERE title='waits'")[0][0])
    )
    broken = BrokenText("before it broke", "Overloaded.", waits["broken"]["message_id"]) if version == NEW else None
    ask = "in mode ask commands need your yes"
    if version == NEW:
        ask += "; this system cannot enforce the sandbox, so it would run without one"
    tasks = json.dumps({"tasks": [{"task": "TASK-C look into c"}, {"task": "TASK-D look into d"}]})
    agents = tuple(AgentTask(id_of(paths, title), title) for title in ("TASK-C look into c", "TASK-D look into d"))

    def run(title: str, **more: object) -> Run:
        return Run(run_of(paths, title), 250, **more)  # type: ignore[arg-type]  # fields of a Run by name

    def round_(title: str, call: ToolCall, *queue: ToolCall) -> ToolRound:
        return ToolRound(asked_of(paths, title), call, queue)

    return {
        "asks": AwaitingApproval(
            9,
            run("asks", iteration=2),
            round_("asks", ToolCall("k3", "bash", '{"command": "rm -r build"}')),
            ask,
        ),
        "busy": AwaitingLlm(1, run("busy"), Requesting()),
        "TASK-A look into a": Completed(4, "a is fine"),
        "TASK-B look into b": Failed(3, "invalid_request", "The server says no."),
        "TASK-C look into c": Completed(2, "c is fine"),
        "TASK-D look into d": AwaitingLlm(
            1, Run(run_of(paths, "TASK-D look into d"), 20, agent=AgentRun()), Requesting()
        ),
        "TASK-F look": Completed(2, "f is fine"),
        "find": Completed(2, "g is found"),
        "look": AwaitingLlm(1, Run(run_of(paths, "look"), 20, agent=AgentRun()), Requesting()),
        "fan-wait": AwaitingSubagents(
            3,
            run("fan-wait"),
            round_("fan-wait", ToolCall("s2", "spawn_agents", tasks)),
            agents,
            (
                AgentOutcome(
                    agents[0].id, AgentStatus.SUCCESS, "c is fine", turns=1, seconds=1.5 if version == OLD else 1.75
                ),
            ),
        ),
        "squeezing": Compacting(9),
        "squeezing before": AwaitingLlm(9, run("squeezing before", compaction_failed=True), CompactingContext()),
        "failed": Errored(2, "auth", "Your key was refused.", False, run_of(paths, "failed")),
        "cut": Errored(2, "network", "The connection broke.", False, run_of(paths, "cut")),
        "waits": AwaitingLlm(2, run("waits"), RetryWait(25.0, "Overloaded."), attempt=1, broken=broken),
        "tool runs": ToolExecuting(
            2,
            run("tool runs"),
            round_(
                "tool runs",
                ToolCall("w1", "slow", '{"command": "sleep 1000"}'),
                ToolCall("w2", "bash", '{"command": "true"}'),
            ),
        ),
        "continued": AwaitingLlm(
            3, run("continued", iteration=3), Requesting(), continuations=2, partial=(TextBlock("part one part two "),)
        ),
        "routing": AwaitingLlm(1, run("routing"), Routing()),
        "dying": Cancelling(3, run("dying"), round_("dying", ToolCall("y1", "dying", '{"command": "trap"}'))),
    }


COLUMNS: Mapping[str, Reread] = {
    "conversations.state_json": lambda text: codec.encode_state(codec.decode_state(text)),
    "conversations.totals_json": lambda text: codec.encode_totals(codec.decode_totals(text)),
    "conversations.context_omitted_json": lambda text: codec.encode_omitted(codec.decode_omitted(text)),
    "conversations.context_earlier_json": lambda text: codec.encode_earlier(codec.decode_earlier(text)),
    "messages.content_json": lambda text: codec.encode_blocks(codec.decode_blocks(text)),
    "messages.usage_json": lambda text: codec.encode_usage(codec.decode_usage(text)),
    "messages.flags_json": lambda text: codec.encode_flags(codec.decode_flags(text)),
    "tool_calls.output_json": lambda text: codec.encode_blocks(codec.decode_blocks(text)),
    "tool_calls.display_json": lambda text: codec.encode_display(cast("Display", codec.decode_display(text))),
    "inbox.content_json": lambda text: codec.encode_blocks(codec.decode_blocks(text)),
    "runs.usage_json": lambda text: codec.encode_usage(codec.decode_usage(text)),
}
"""Each column that holds a value of the codec, and how it is read and written."""
UNUSED = {(OLD, "messages.flags_json")}
"""No row of these versions has one."""


def keeps(stored: JsonValue, written: JsonValue) -> bool:
    """True where everything stored is written again; fields of later versions may stand beside it."""
    if isinstance(stored, dict) and isinstance(written, dict):
        return all(name in written and keeps(value, written[name]) for name, value in stored.items())
    if isinstance(stored, list) and isinstance(written, list):
        return len(stored) == len(written) and all(map(keeps, stored, written))
    return stored == written and type(stored) is type(written)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_stored_value_is_written_again_as_it_was(tmp_path: Path, version: str, column: str) -> None:
    table, name = column.split(".")
    rows = query(restored(tmp_path, version).database, f"SELECT {name} FROM {table} WHERE {name} != ''")
    assert rows or (version, column) in UNUSED
    for (text,) in rows:
        assert isinstance(text, str)
        written = COLUMNS[column](text)
        assert written is not None
        assert keeps(json.loads(text), json.loads(written)), text


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_state_is_the_one_that_was_stored(tmp_path: Path, version: str) -> None:
    paths = restored(tmp_path, version)
    expected = expected_states(paths, version)
    store = await open_store(paths)
    try:
        for found, title in query(paths.database, "SELECT id, title FROM conversations"):
            record = await store.conversation(str(found))
            assert record is not None
            state = record.state
            assert state == expected.get(str(title), Idle(state.gen)), title
    finally:
        await store.close()
    assert {type(state) for state in expected.values()} | {Idle} == set(STATE_NAMES)


@pytest.mark.parametrize("version", VERSIONS)
async def test_messages_tools_images_and_usage_are_read_as_they_were_said(tmp_path: Path, version: str) -> None:
    paths = restored(tmp_path, version)
    store = await open_store(paths)
    try:
        conversation_id = id_of(paths, "tools")
        record = await store.conversation(conversation_id)
        rows = await store.messages(conversation_id)
        calls = await store.tool_calls(conversation_id, [row.id for row in rows])
        (sent, shown) = (
            str(found)
            for (found,) in query(
                paths.database, "SELECT id FROM attachments WHERE conversation_id = ? ORDER BY rowid", conversation_id
            )
        )
    finally:
        await store.close()
    assert record is not None
    assert (record.cwd, record.model, record.message_count) == (tmp_path / "project", "scripted/main", 8)
    assert record.totals == Totals(2300, 150, 300, 1500, cost_usd=0.04)
    assert [row.turn_number for row in rows] == [0, 0, 0, 0, 0, 0, 1, 1]
    assert rows[0].blocks == (ImageBlock(sent, 1, 1), TextBlock("[tools] Look at this \u2603"))
    assert rows[1].blocks == (
        ThinkingBlock("I think \u00fcber it", "sig=="),
        TextBlock("First **look**."),
        *(
            ToolUseBlock(f"t{n}", "show", f'{{"what": "{what}"}}')
            for n, what in enumerate(("terminal", "diff", "image"), 1)
        ),
    )
    assert rows[1].usage == Usage(1000, 50, 300, 200)
    assert rows[2].blocks == (
        ToolResultBlock("t1", (TextBlock("3 passed"),)),
        ToolResultBlock("t2", (TextBlock("edited"),)),
        ToolResultBlock("t3", (TextBlock("an image"), ImageBlock(shown, 1, 1))),
    )
    assert [block.is_error for block in rows[4].blocks if isinstance(block, ToolResultBlock)] == [
        True,
        False,
        False,
        False,
    ]
    assert rows[5].blocks == (ThinkingBlock("", "opaque"), TextBlock("All done \U0001f600."))
    assert {call.tool_use_id: codec.decode_display(call.display_json) for call in calls} == {
        "t1": TerminalDisplay("3 passed\n\u00e9\u4f60", 0, ended=("sleep",)),
        "t2": DiffDisplay("a.py", "@@ -1 +1 @@\n-a\n+b\n", 1, 1, created=True),
        "t3": ImageDisplay("p.png", 1, 1),
        "t4": TerminalDisplay("partly", None, timed_out=True),
        "t5": None,
        "t6": None,
        "t7": PlainDisplay("shown"),
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_queue_draft_views_agents_and_steps_of_files_are_read_as_they_were(tmp_path: Path, version: str) -> None:
    paths = restored(tmp_path, version)
    store = await open_store(paths)
    try:
        busy = await store.conversation(id_of(paths, "busy"))
        queue = await store.queue.read_queue(id_of(paths, "busy"))
        squeezed = await store.conversation(id_of(paths, "squeezed"))
        stripped = await store.conversation(id_of(paths, "images out"))
        kept = await store.conversation(id_of(paths, "kept away"))
        told = await store.conversation(id_of(paths, "never begun"))
    finally:
        await store.close()
    assert busy is not None
    assert (busy.draft, busy.scroll_seq) == ("an unsent \u201cdraft\u201d\nof two lines", 1)
    assert queue == (QueuedMessage(queue[0].id, "next one"), QueuedMessage(queue[1].id, "[kept] and then this"))
    assert squeezed is not None
    first, second = squeezed.earlier_views
    assert first == EarlierView("", 0, 120, estimated=False)
    assert (second.start_seq, second.summary.partition("\n")[0]) == (7, "the plan is kept")
    assert (squeezed.context_start_seq, squeezed.context_tokens) == (14, 109)
    assert squeezed.summary.startswith("the second summary\n\nThe user's own words, newest first:\n- [squeeze] again 0")
    assert stripped is not None
    assert stripped.omitted == (Omission(1, 0, OmissionKind.IMAGE),)
    assert kept is not None
    assert (kept.pinned_at > 0, kept.compact_percent) == (True, 60)
    assert told is not None
    assert (told.system_prompt, told.append_system_prompt) == ("You are terse.", "Say so.")


@pytest.mark.parametrize("version", VERSIONS)
async def test_agents_runs_branches_and_changed_files_are_read_as_they_were(tmp_path: Path, version: str) -> None:
    paths = restored(tmp_path, version)
    store = await open_store(paths)
    try:
        ended = await store.agents.rows(id_of(paths, "fan-in"))
        (call,) = await store.tool_calls(id_of(paths, "fan-in"), [spawned_by(paths, "fan-in")])
        turn, branch = await store.turn_log.steps(id_of(paths, "files"))
        family = await store.turn_log.family(id_of(paths, "files"))
        ((alone,), (routed,)) = [
            await store.library.runs(id_of(paths, title), 1) for title in ("routed alone", "routed")
        ]
    finally:
        await store.close()
    assert [row.facts.task for row in ended] == ["TASK-A look into a", "TASK-B look into b"]
    assert [row.totals.output_tokens for row in ended] == [40, 20]
    assert [row.outcome and (row.outcome.status, row.outcome.text, row.outcome.reason) for row in ended] == [
        (AgentStatus.SUCCESS, "a is fine", ""),
        (AgentStatus.FAILURE, "b in words", "The server says no."),
    ]
    display = codec.decode_display(call.display_json)
    assert isinstance(display, AgentsDisplay)
    assert [(one.id, one.task, one.status, one.reason, one.turns) for one in display.agents] == [
        (ended[0].id, "TASK-A look into a", "success", "", 2),
        (ended[1].id, "TASK-B look into b", "failure", "The server says no.", 2),
    ]
    ((written,), (taken_back,)) = turn.changes, branch.changes
    assert (written.path, written.before, written.after and written.after.kind) == (b"one.txt", None, FileKind.FILE)
    assert (taken_back.path, taken_back.after, branch.target_seq) == (b"two.txt", None, 5)
    assert [(row.branch_seq, row.message_count, row.newest_prompt) for row in family] == [
        (0, 8, "[files] two"),
        (4, 6, "[files2] otherwise"),
    ]
    assert [(run.strategy, run.status, run.usage, run.cost_usd) for run in (alone, routed)] == [
        (Strategy.SINGLE, "success", Usage(200, 40), 0.02),
        (Strategy.DELEGATE, "success", Usage(200, 40), 0.02),
    ]


ENDED = {"TASK-A look into a", "TASK-B look into b", "TASK-C look into c", "TASK-D look into d", "TASK-F look"}
ENDED |= {"look", "find"}
"""Sub-agents: no message of a user goes there."""


@pytest.mark.parametrize("commit", LAST)
async def test_a_database_of_a_last_commit_keeps_every_row_and_shows_it(tmp_path: Path, commit: str) -> None:
    paths = restored(tmp_path, commit)
    before = dump(paths.database)
    await (await open_store(paths)).close()
    assert dump(paths.database) == before
    assert not list(paths.backups.iterdir()), "nothing was migrated"
    store = await open_store(paths)
    try:
        listed = await store.conversations(ConversationQuery())
        archived = await store.conversations(ConversationQuery(archived=True))
        files = id_of(paths, "Files")
        texts = [text_in(one.blocks, "") for one in await store.messages(files)]
        (asked,) = [one.id for one in await store.messages(files) if one.seq == 2]
        (call,) = await store.tool_calls(files, [asked])
        board = await store.tasks.board(files)
        queued = await store.queue.read_queue(id_of(paths, "Cut off"))
        sums = await store.library.calls(id_of(paths, "Answers"))
        found = await store.library.search(parse_search("answer", cwd=Path("/")), seconds=60)
        (recovered,) = await store.recover_all()
    finally:
        await store.close()
    assert [(one.title, one.state_name, one.message_count, one.has_draft, one.pinned_at) for one in listed] == [
        ("Cut off", "awaiting_llm", 1, False, 0.0),
        ("(2) Answers", "idle", 4, False, 0.0),
        ("Files", "idle", 4, False, 0.0),
        ("Answers", "idle", 2, True, 5.0),
    ]
    assert [one.title for one in archived] == ["Old"]
    assert texts == ["Which files are there?", "Let me look.", "", "There are two files."]
    assert (call.tool_use_id, call.name, call.output_text) == ("call_one", "bash", "ran ls")
    assert [(one.description, one.progresses, one.message_seqs) for one in board.tasks] == [
        ("List the files", ("Listed",), (1,))
    ]
    assert [one.text for one in queued] == ["and then this"]
    assert [(one.purpose.value, one.calls, one.totals.cost_usd) for one in sums] == [("reply", 1, 0.01)]
    assert {(one.title, one.seq) for one in found.hits} == {
        (title, seq) for title in ("Answers", "(2) Answers") for seq in (1, 2)
    }
    assert recovered.conversation_id == id_of(paths, "Cut off")


@pytest.mark.parametrize("version", [*VERSIONS, *LAST])
async def test_every_conversation_goes_on_with_the_next_message(tmp_path: Path, version: str) -> None:
    paths = restored(tmp_path, version)
    answer = Reply((Text("On again."),), always=True)
    async with engine_harness(tmp_path, answer, settings=EngineSettings(auto_title=False)) as harness:
        for number, (found, title) in enumerate(
            query(paths.database, "SELECT id, title FROM conversations WHERE deleted_at IS NULL")
        ):
            if title in ENDED:
                continue
            conversation = await harness.engine.open(str(found))
            before = len(await harness.store.messages(conversation.id))
            assert isinstance(await conversation.say(f"go on {number}"), Accepted), title
            state = await conversation.wait_idle()
            assert isinstance(state, Idle), (title, state)
            added = [(row.role, row.blocks[-1]) for row in (await harness.store.messages(conversation.id))[before:]]
            assert (Role.USER, TextBlock(f"go on {number}")) in added, title
            assert (Role.ASSISTANT, TextBlock("On again.")) in added, title
            assert faults_of(harness.provider.requests[-1].messages) == [], title
            assert unanswered(await harness.store.messages(conversation.id)) == [], title
            await harness.engine.forget(conversation.id)
