"""The table `conversations`: rows as values, creation, lists, changes, sub-agents and compactions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final

from engine.codec import (
    decode_all_totals,
    decode_earlier,
    decode_omitted,
    decode_state,
    decode_totals,
    decode_usage,
    encode_earlier,
    encode_omitted,
    encode_state,
    encode_todos,
    encode_totals,
    encode_usage,
    storable,
)
from engine.machine.states import STATE_NAMES, AgentOutcome, AgentStatus, Completed, Failed, Idle, State, run_of
from engine.machine.views import CompactionCause, CompactionFacts, CompactionKind, ContextView
from engine.ports import ConversationChanges, NoConversation, RecordCompaction, SetContext, StorageError
from engine.ports.task_store import MessageTracking
from engine.records import (
    AgentFacts,
    AgentRow,
    ConversationQuery,
    ConversationSummary,
    NewConversation,
    PermissionMode,
    RunPriority,
    SpawnMode,
    StoredCompaction,
    StoredConversation,
    TitleBy,
)
from engine.records.runs import Totals
from engine.run_options import Effort
from engine.store.names import decode_names, encode_names, escape_like, give_slug
from engine.store.ownership import Instance
from engine.store.tasks import parse_choice, settle_tracking
from engine.store.tool_calls import read_todos
from tools.contract import SandboxMode

_LAST_WORDS = """SELECT text FROM messages WHERE conversation_id = ?1 AND role = 'assistant' AND TRIM(text) <> ''
    AND run_id IS (SELECT id FROM runs WHERE conversation_id = ?1 ORDER BY rowid DESC LIMIT 1)
    ORDER BY seq DESC LIMIT 1"""
_AGENTS = """SELECT c.*,
    (SELECT COUNT(*) FROM turns WHERE conversation_id = c.id) AS turn_count,
    (SELECT iterations FROM runs WHERE conversation_id = c.id ORDER BY rowid DESC LIMIT 1) AS run_iterations,
    (SELECT COUNT(DISTINCT assistant_message_id) FROM tool_calls WHERE conversation_id = c.id) AS tool_count,
    (SELECT started_at FROM runs WHERE conversation_id = c.id ORDER BY rowid DESC LIMIT 1) AS run_started,
    (SELECT ended_at FROM runs WHERE conversation_id = c.id ORDER BY rowid DESC LIMIT 1) AS run_ended
    FROM conversations AS c"""


def mark_subagent(connection: sqlite3.Connection, conversation_id: str, facts: AgentFacts) -> None:
    """Make a conversation that was just created a sub-agent."""
    connection.execute(
        """UPDATE conversations SET kind = 'subagent', user_initiated = 0, parent_id = ?, spawn_mode = ?,
            spawn_tool_use_id = ?, parent_context = ?, max_iterations = ?, priority = ?, agent_task = ?,
            agent_ordinal = ?, agent_timeout = ? WHERE id = ?""",
        (
            facts.parent_id,
            facts.mode,
            storable(facts.call_id),
            storable(facts.context),
            facts.max_turns,
            facts.priority,
            storable(facts.task),
            facts.ordinal,
            facts.timeout,
            conversation_id,
        ),
    )


def make_background_agent(connection: sqlite3.Connection, agent_id: str) -> None:
    """Make it a background agent: its parent no longer waits, and its end wakes the parent."""
    connection.execute(
        "UPDATE conversations SET spawn_mode = 'background', auto_wake = 1 WHERE id = ? AND kind = 'subagent'",
        (agent_id,),
    )


def suppress_agent_wakes(connection: sqlite3.Connection, parent_id: str) -> None:
    """Keep the ends of unfinished sub-agents from waking their parent."""
    connection.execute(
        """UPDATE conversations SET auto_wake = 0
            WHERE parent_id = ? AND kind = 'subagent' AND state NOT IN ('completed', 'failed')""",
        (parent_id,),
    )


def has_suppressed_wakes(connection: sqlite3.Connection, agent_id: str) -> bool:
    """True when the user stopped its parent while it worked."""
    row = connection.execute("SELECT auto_wake FROM conversations WHERE id = ?", (agent_id,)).fetchone()
    return row is not None and not row["auto_wake"]


def read_agent_facts(row: Any) -> AgentFacts | None:
    """Sub-agent facts in a row of `conversations`; None for the user's own."""
    if row["kind"] != "subagent":
        return None
    return AgentFacts(
        parent_id=row["parent_id"] or "",
        mode=SpawnMode(row["spawn_mode"] or SpawnMode.FAN_IN),
        call_id=row["spawn_tool_use_id"] or "",
        ordinal=row["agent_ordinal"] or 1,
        task=row["agent_task"] or row["title"],
        max_turns=row["max_iterations"] or 0,
        timeout=row["agent_timeout"] or 0.0,
        priority=RunPriority(row["priority"] or RunPriority.NORMAL),
        context=row["parent_context"] or "",
    )


def read_agents(connection: sqlite3.Connection, parent_id: str) -> list[AgentRow]:
    """Every sub-agent of a conversation, oldest first."""
    rows = connection.execute(f"{_AGENTS} WHERE c.parent_id = ? ORDER BY c.rowid", (parent_id,)).fetchall()
    return [found for row in rows if (found := _read_agent_row(row)) is not None]


def list_agent_ids(connection: sqlite3.Connection, parent_id: str) -> list[str]:
    """Ids of its sub-agents, oldest first."""
    rows = connection.execute("SELECT id FROM conversations WHERE parent_id = ? ORDER BY rowid", (parent_id,))
    return [str(row["id"]) for row in rows]


def read_agent(connection: sqlite3.Connection, agent_id: str) -> AgentRow | None:
    """One sub-agent, or None."""
    row = connection.execute(f"{_AGENTS} WHERE c.id = ?", (agent_id,)).fetchone()
    return _read_agent_row(row) if row is not None else None


def read_last_words(connection: sqlite3.Connection, agent_id: str) -> str:
    """The newest text of its last run, kept when it failed without a result."""
    row = connection.execute(_LAST_WORDS, (agent_id,)).fetchone()
    return str(row["text"]) if row is not None else ""


def _read_agent_row(row: Any) -> AgentRow | None:
    facts = read_agent_facts(row)
    if facts is None:
        return None
    state = decode_state(row["state_json"])
    run, outcome = run_of(state), None
    iterations = run.iteration if run is not None else row["run_iterations"] or 0
    if isinstance(state, Completed | Failed) and row["result_status"]:
        status = AgentStatus(row["result_status"])
        outcome = AgentOutcome(
            row["id"],
            status,
            row["result_text"] or "",
            row["result_error"] or "",
            turns=iterations,
            seconds=max((row["run_ended"] or 0.0) - (row["run_started"] or 0.0), 0.0),
        )
    return AgentRow(
        id=row["id"],
        facts=facts,
        profile=row["profile"],
        model=row["model"],
        state=state,
        outcome=outcome,
        totals=decode_totals(row["totals_json"]),
        iterations=iterations,
        tool_iterations=row["tool_count"],
        turns=row["turn_count"],
        started_at=row["run_started"] or 0.0,
        ended_at=row["run_ended"] or 0.0,
    )


MOST_COMPACTIONS = 100
"""Newest attempts that are listed."""


def add_compaction(connection: sqlite3.Connection, conversation_id: str, write: RecordCompaction, at: float) -> None:
    """Store one attempt; a summary that took effect counts in `conversations.compaction_count`."""
    facts = write.facts
    connection.execute(
        """INSERT INTO compactions (id, conversation_id, at, cause, kind, message_count, first_seq, start_seq, messages,
            tokens_before, tokens_after, problem) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            write.id,
            conversation_id,
            at,
            facts.cause.value,
            facts.kind.value,
            facts.message_count,
            facts.first_seq,
            facts.start_seq,
            facts.messages,
            facts.tokens_before,
            facts.tokens_after,
            storable(facts.problem),
        ),
    )
    if facts.kind is CompactionKind.SUMMARY:
        connection.execute(
            "UPDATE conversations SET compaction_count = compaction_count + 1 WHERE id = ?", (conversation_id,)
        )


def list_compactions(connection: sqlite3.Connection, conversation_id: str) -> list[StoredCompaction]:
    """The newest attempts, newest first."""
    rows = connection.execute(
        "SELECT * FROM compactions WHERE conversation_id = ? ORDER BY message_count DESC, rowid DESC LIMIT ?",
        (conversation_id, MOST_COMPACTIONS),
    )
    return [
        StoredCompaction(
            row["at"],
            CompactionFacts(
                CompactionCause(row["cause"]),
                CompactionKind(row["kind"]),
                row["message_count"],
                row["first_seq"],
                row["start_seq"],
                row["messages"],
                row["tokens_before"],
                row["tokens_after"],
                row["problem"],
            ),
        )
        for row in rows
    ]


NO_FOLDER: Final = Path("/dev/null/no folder")
"""A path below an existing file: every access fails visibly."""


_COUNTED = """(SELECT MAX(seq) FROM messages WHERE conversation_id = c.id) AS message_count,
    (SELECT status FROM runs WHERE conversation_id = c.id ORDER BY rowid DESC LIMIT 1) AS last_status,
    (SELECT json_group_array(json(totals_json)) FROM conversations WHERE parent_id = c.id) AS agents_totals"""
"""Columns that each take one step down an index, however long the conversation."""
_COMPACTED = "(SELECT max(message_count) FROM compactions WHERE conversation_id = c.id) AS compacted_at"
_CONVERSATIONS = f"SELECT c.*, {_COUNTED}, {_COMPACTED} FROM conversations AS c"
LISTED = f"""SELECT c.id, c.title, c.slug, c.cwd, c.model, c.state, c.context_tokens, c.context_window, c.totals_json,
    c.archived_at, c.deleted_at, c.unread, c.updated_at, c.owner_instance, c.pinned_at, c.draft <> '' AS has_draft,
    c.user_initiated, c.todos_json,
    {_COUNTED} FROM conversations AS c"""
"""Columns of a list without long ones: a summary or a state would be read for every row."""

NOT_SUPERSEDED = """NOT EXISTS (SELECT 1 FROM conversations AS head
    WHERE head.id = c.superseded_by AND head.deleted_at IS NULL)"""
"""A branch took its place (`/branches` shows both); once that one is in the trash, this one is back."""


def create_conversation(connection: sqlite3.Connection, new: NewConversation, at: float) -> None:
    """Insert a conversation in state idle.

    Raises:
        StorageError: there is one with this id, which stays as it is.
    """
    if connection.execute("SELECT 1 FROM conversations WHERE id = ?", (new.id,)).fetchone():
        raise StorageError(f"The conversation {new.id} already exists; open that one.")
    state = Idle(0)
    connection.execute(
        """INSERT INTO conversations (id, title, cwd, model, profile, permission_mode, system_prompt_static,
            append_system_prompt, state, state_json, gen, totals_json, created_at, updated_at, title_by, supervisor,
            sandbox, sandbox_required, user_initiated, effort)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            new.id,
            storable(new.title),
            storable(str(new.cwd)),
            new.model,
            new.profile,
            new.permission_mode,
            storable(new.system_prompt),
            storable(new.append_system_prompt),
            STATE_NAMES[Idle],
            encode_state(state),
            state.gen,
            encode_totals(Totals()),
            at,
            at,
            (TitleBy.USER if new.title else TitleBy.FIRST_MESSAGE).value,
            int(new.supervisor),
            new.sandbox.value,
            int(new.sandbox_required),
            int(not new.scripted),
            new.effort.value,
        ),
    )
    if new.agent is not None:
        mark_subagent(connection, new.id, new.agent)
    give_slug(connection, new.id)


def _parse_folder(text: str) -> Path:
    """The working directory that a row names; no folder at all where it names none, whatever wrote the database."""
    path = Path(text)
    return path if path.is_absolute() and ".." not in path.parts and "\0" not in text else NO_FOLDER


def read_conversation(
    connection: sqlite3.Connection, conversation_id: str, instance: Instance
) -> StoredConversation | None:
    """One conversation, or None."""
    row = connection.execute(f"{_CONVERSATIONS} WHERE c.id = ? AND c.partial IS NULL", (conversation_id,)).fetchone()
    if row is None:
        return None
    return _make_record(row, instance.living_pid(connection, row["owner_instance"]))


def _make_record(row: Any, owner_pid: int | None) -> StoredConversation:
    return StoredConversation(
        id=row["id"],
        title=row["title"],
        cwd=_parse_folder(row["cwd"]),
        model=row["model"],
        profile=row["profile"],
        permission_mode=PermissionMode(row["permission_mode"]),
        system_prompt=row["system_prompt_static"],
        append_system_prompt=row["append_system_prompt"],
        state=decode_state(row["state_json"]),
        context_window=row["context_window"],
        context_tokens=row["context_tokens"],
        context_estimated=bool(row["context_estimated"]),
        totals=decode_totals(row["totals_json"]),
        draft=row["draft"],
        scroll_seq=row["scroll_seq"],
        context_start_seq=row["context_start_seq"],
        summary=row["summary"],
        archived=row["archived_at"] is not None,
        deleted=row["deleted_at"] is not None,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        message_count=row["message_count"] or 0,
        owner_pid=owner_pid,
        title_by=TitleBy(row["title_by"]),
        pinned_at=row["pinned_at"] or 0.0,
        last_status=row["last_status"] or "",
        omitted=decode_omitted(row["context_omitted_json"]),
        earlier_views=decode_earlier(row["context_earlier_json"]),
        compact_percent=row["compact_percent"],
        compacted_at=row["compacted_at"] or 0,
        last_usage=decode_usage(row["last_usage_json"]) if row["last_usage_json"] else None,
        agent=read_agent_facts(row),
        agents_totals=decode_all_totals(row["agents_totals"]),
        supervisor=bool(row["supervisor"]),
        sandbox=SandboxMode(row["sandbox"]),
        sandbox_required=bool(row["sandbox_required"]),
        effort=Effort(row["effort"]),
        mcp_off=decode_names(row["mcp_off_json"]),
        mcp_loaded=decode_names(row["mcp_loaded_json"]),
        tracking=parse_choice(row),
        todos=read_todos(row["todos_json"]),
        plan=row["plan_text"],
        plan_at=row["plan_at"],
    )


def require_conversation(
    connection: sqlite3.Connection, conversation_id: str, instance: Instance
) -> StoredConversation:
    """One conversation that is there. Raises StorageError when it is not."""
    found = read_conversation(connection, conversation_id, instance)
    if found is None:
        raise NoConversation(conversation_id)
    return found


def list_conversations(
    connection: sqlite3.Connection, query: ConversationQuery, instance: Instance
) -> list[ConversationSummary]:
    """The user's conversations that match, newest first; removed ones by the time of removal.

    The trash contains archived and other ones.
    """
    conditions = ["c.kind = 'user'", "c.partial IS NULL", f"c.deleted_at IS {'NOT NULL' if query.deleted else 'NULL'}"]
    values: list[str | int] = []
    if not query.deleted:
        conditions.append(NOT_SUPERSEDED)
        conditions.append(f"c.archived_at IS {'NOT NULL' if query.archived else 'NULL'}")
    if query.cwd is not None:
        conditions.append("c.cwd = ?")
        values.append(storable(str(query.cwd)))
    if not query.scripted:
        conditions.append("c.user_initiated = 1")
    if query.title_contains:
        conditions.append("c.title LIKE ? ESCAPE '\\'")
        values.append(f"%{escape_like(storable(query.title_contains))}%")
    newest = "c.deleted_at" if query.deleted else "c.archived_at" if query.archived else "c.updated_at"
    rows = connection.execute(
        f"{LISTED} WHERE {' AND '.join(conditions)} ORDER BY {newest} DESC, c.rowid DESC LIMIT ? OFFSET ?",
        (*values, query.limit, query.offset),
    ).fetchall()
    return read_summaries(connection, rows, instance)


def change_conversation(
    connection: sqlite3.Connection, conversation_id: str, changes: ConversationChanges, at: float
) -> None:
    """Set the given fields. The order of the list stays unchanged: no message was added.

    What only a person does (name it, write in it, pin it, read it) makes a conversation of a script one of the list.
    """
    columns = _build_changed_columns(changes, at)
    if columns:
        connection.execute(
            f"UPDATE conversations SET {', '.join(f'{column} = ?' for column in columns)} WHERE id = ?",
            (*columns.values(), conversation_id),
        )
    if changes.tracking is False:
        for progress in (MessageTracking.PENDING, MessageTracking.RUNNING):
            settle_tracking(connection, conversation_id, progress, MessageTracking.DISABLED, at)
    if changes.compaction is not None:
        add_compaction(connection, conversation_id, changes.compaction, at)
    if changes.suggested_title:
        connection.execute(
            "UPDATE conversations SET title = ?, title_by = ? WHERE id = ? AND title_by = ''",
            (storable(changes.suggested_title), TitleBy.MODEL.value, conversation_id),
        )
    if changes.title or changes.suggested_title:
        give_slug(connection, conversation_id)


def _build_changed_columns(changes: ConversationChanges, at: float) -> dict[str, str | int | float | None]:
    columns: dict[str, str | int | float | None] = {
        column: storable(text)
        for column, text in (("title", changes.title), ("draft", changes.draft), ("model", changes.model))
        if text is not None
    }
    for column, number in (
        ("scroll_seq", changes.scroll_seq),
        ("unread", changes.unread),
        ("supervisor", changes.supervisor),
        ("compact_percent", changes.compact_percent),
        ("context_tokens", changes.context_tokens),
        ("track_tasks", changes.tracking),
        ("disable_task_tracking", None if changes.tracking is None else not changes.tracking),
    ):
        if number is not None:
            columns[column] = int(number)
    for column, set_now in (
        ("pinned_at", changes.pinned),
        ("archived_at", changes.archived),
        ("deleted_at", changes.deleted),
    ):
        if set_now is not None:
            columns[column] = at if set_now else None
    return columns | _build_implied_columns(changes)


def _build_implied_columns(changes: ConversationChanges) -> dict[str, str | int | float | None]:
    columns: dict[str, str | int | float | None] = {}
    for column, names in (("mcp_off_json", changes.mcp_off), ("mcp_loaded_json", changes.mcp_loaded)):
        columns |= {column: encode_names(names)} if names is not None else {}
    if changes.todos is not None:
        columns["todos_json"] = encode_todos(changes.todos)
    if changes.permission_mode is not None:
        columns["permission_mode"] = changes.permission_mode.value
    if changes.sandbox is not None:
        columns |= {"sandbox": changes.sandbox.value, "sandbox_required": 1}
    if changes.effort is not None:
        columns["effort"] = changes.effort.value
    if changes.title is not None:
        columns["title_by"] = TitleBy.USER.value
    if changes.title or changes.draft is not None or changes.pinned or changes.unread is False:
        columns["user_initiated"] = 1
    if changes.view is not None:
        columns |= _view_columns(changes.view)
    if changes.context_tokens is not None:
        columns["context_estimated"] = int(not changes.context_counted)
    return columns


def set_state(connection: sqlite3.Connection, conversation_id: str, state: State, at: float) -> None:
    """Write the state of the machine, and the result columns of a sub-agent that ended."""
    connection.execute(
        "UPDATE conversations SET state = ?, state_json = ?, gen = ?, updated_at = ? WHERE id = ?",
        (STATE_NAMES[type(state)], encode_state(state), state.gen, at, conversation_id),
    )
    match state:
        case Completed(result=result):
            _set_result(connection, conversation_id, "success", result, "")
        case Failed(kind=kind, error=error, partial=partial):
            status = kind if kind in {"cancelled", "timeout"} else "failure"
            words = partial or read_last_words(connection, conversation_id)
            _set_result(connection, conversation_id, status, words, error)
        case _:
            pass  # in every other state a conversation has no result


def set_context(connection: sqlite3.Connection, conversation_id: str, context: SetContext) -> None:
    """Write the meter."""
    connection.execute(
        """UPDATE conversations SET context_tokens = ?, context_window = ?, context_estimated = ?,
            last_usage_json = COALESCE(?, last_usage_json) WHERE id = ?""",
        (
            context.context_tokens,
            context.context_window,
            int(context.estimated),
            encode_usage(context.last_usage) if context.last_usage else None,
            conversation_id,
        ),
    )


def set_view(connection: sqlite3.Connection, conversation_id: str, view: ContextView) -> None:
    """Store the view made by a compaction."""
    columns = _view_columns(view)
    connection.execute(
        f"UPDATE conversations SET {', '.join(f'{column} = ?' for column in columns)} WHERE id = ?",
        (*columns.values(), conversation_id),
    )


def _view_columns(view: ContextView) -> dict[str, str | int | float | None]:
    return {
        "summary": storable(view.summary),
        "context_start_seq": view.start_seq,
        "context_omitted_json": encode_omitted(view.omitted),
        "context_earlier_json": encode_earlier(view.earlier),
    }


def read_summaries(connection: sqlite3.Connection, rows: list[Any], instance: Instance) -> list[ConversationSummary]:
    """Rows of `LISTED` as values."""
    owners = {row["owner_instance"] for row in rows}
    pids = {owner: instance.living_pid(connection, owner) for owner in owners}
    return [
        ConversationSummary(
            id=row["id"],
            title=row["title"],
            cwd=_parse_folder(row["cwd"]),
            model=row["model"],
            state_name=row["state"],
            context_tokens=row["context_tokens"],
            context_window=row["context_window"],
            totals=decode_totals(row["totals_json"]).plus(decode_all_totals(row["agents_totals"])),
            archived=row["archived_at"] is not None,
            unread=bool(row["unread"]),
            updated_at=row["updated_at"],
            message_count=row["message_count"] or 0,
            owner_pid=pids[row["owner_instance"]],
            pinned_at=row["pinned_at"] or 0.0,
            last_status=row["last_status"] or "",
            has_draft=bool(row["has_draft"]),
            put_away_at=row["deleted_at"] or row["archived_at"] or 0.0,
            scripted=not row["user_initiated"],
            slug=row["slug"] or "",
            progress=todos.progress if (todos := read_todos(row["todos_json"])).is_open else "",
        )
        for row in rows
    ]


def _set_result(connection: sqlite3.Connection, conversation_id: str, status: str, text: str, error: str) -> None:
    connection.execute(
        "UPDATE conversations SET result_status = ?, result_text = ?, result_error = ? WHERE id = ?",
        (status, storable(text), storable(error), conversation_id),
    )
