"""Places where keys apply, and the form of a key."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Scope(StrEnum):
    """Place where a key applies; the value heads its group in the help."""

    APP = "Always"
    WORKSPACE = "Everywhere"
    COMPOSER = "Writing"
    LIST = "Conversation list"
    QUESTION = "Approval question"
    ASK = "Questions of the agent"
    QUEUE = "Message queue"
    BLOCKS = "Blocks of the conversation"
    ROWS = "Sheets with rows"
    TYPED = "Sheets with a search line"
    PEEK = "Preview of a conversation"
    APPROVALS = "Pending approvals"
    RULES = "Permission rules"
    CONTEXT = "The context window"
    SUMMARY = "Proposed summary"
    REWIND = "Rewind"
    CHANGES = "File changes"
    HISTORY = "Prompt history"
    FIND = "Find in this conversation"
    SEARCH = "Search"
    HIT = "Search result"
    IMAGES = "Attached images"
    PASTE = "Pasted text"
    SETTINGS = "Settings"
    PROFILES = "Agent profiles"
    NOTES = "Notes"
    MODELS = "Models"
    TRUST = "Extensions of a folder"
    MCP = "MCP servers"
    STATISTICS = "Statistics"
    TASKS = "Task board"
    AGENTS = "Sub-agents"
    JOBS = "Background commands"
    TRACES = "Traces"
    ROUTE = "Supervisor's decision"
    TODO = "Todo list"
    SIDE = "Side question"
    READING = "Text viewer"


class Key(Struct, frozen=True):
    """One action and the keys that do it. `id` is its name in `keymap.toml`."""

    id: str
    keys: str
    action: str
    meaning: str
    scope: Scope
    priority: bool = True
