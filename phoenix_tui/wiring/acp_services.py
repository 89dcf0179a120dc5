"""Services of `phoenix acp`: conversations, and facts about folders and models."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.engine import ConversationOptions, Engine
from engine.executor.requests import RunCaps
from engine.ports import ModelInfo, ProviderError
from engine.ports.mcp import ServerOrigin, ServerState, ServerView
from engine.records import ConversationRecord, PermissionMode
from engine.run_options import Effort
from engine.updates import Unsubscribe, Update
from phoenix_tui.acp.services import AgentFollower, NewSession
from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.faults import end_quietly
from phoenix_tui.cli.setup import Setup, prepare
from phoenix_tui.config.rules import SessionFolders, session_rules
from phoenix_tui.config.sources.report import report_of
from phoenix_tui.config.sources.server_definitions import DefinitionPlace, parse_definition
from phoenix_tui.config.sources.server_files import MOST_SERVERS
from phoenix_tui.features.custom_commands import CustomCommand, CustomCommands
from phoenix_tui.text.labels import money, tokens
from phoenix_tui.text.statistics_text import call_lines
from phoenix_tui.text.trust_text import warn_untrusted
from phoenix_tui.wiring.backend import Backend
from phoenix_tui.wiring.boards import project_sources
from phoenix_tui.wiring.mcp import UNATTENDED_WAIT
from phoenix_tui.wiring.models import choose
from phoenix_tui.wiring.start_facts import caps_of, caps_with, choose_sandbox
from tools.clean import clean_line

CLIENT: Final = "the editor"
"""Source of the MCP servers of a client."""


class AcpServices(Struct, eq=False):
    """Opened services of one process."""

    setup: Setup
    arguments: RunArguments
    backend: Backend
    folders: SessionFolders
    _setups: dict[Path, Setup] = field(default_factory=dict[Path, Setup])

    @property
    def engine(self) -> Engine:
        """Conversations."""
        return self.backend.engine

    async def begin(self, cwd: Path) -> NewSession:
        """Options of a new conversation in a folder, and what is said about it."""
        setup = await self._prepare_folder(cwd)
        settings = setup.settings
        try:
            choice = await choose(setup, os.environ, self.backend.models, self.backend.providers)
        except ProviderError as error:
            raise CommandError(error.message) from error
        sandbox, required = choose_sandbox(settings, setup.cwd)
        options = ConversationOptions(
            cwd=setup.cwd,
            model=choice.reference,
            permission_mode=PermissionMode(settings.text("permission_mode") or PermissionMode.ASK),
            profile=settings.text("profile"),
            append_system_prompt=settings.text("append_system_prompt"),
            supervisor=settings.flag("route"),
            sandbox=sandbox,
            sandbox_required=required,
            effort=Effort(settings.text("effort")),
        )
        said = (self.engine.warning, self.backend.notice, choice.sentence, choice.waiting, *await self.notices(cwd))
        return NewSession(options, tuple(filter(None, said)))

    async def notices(self, cwd: Path) -> tuple[str, ...]:
        """Sentences about a folder, and about its files that are left out."""
        setup = await self._prepare_folder(cwd)
        sources = project_sources(setup)
        try:
            found = await asyncio.to_thread(sources.look, setup.cwd)
        except OSError as error:
            raise CommandError(f"{cwd} cannot be read: {error.strerror or error}.") from error
        waiting = warn_untrusted(await asyncio.to_thread(report_of, found, setup.cwd)) if found.waiting else ""
        return tuple(filter(None, (*setup.notices(), waiting)))

    async def models(self) -> Sequence[ModelInfo]:
        """Models of every provider that answers."""
        return await self.backend.providers.models()

    def caps(self, record: ConversationRecord) -> RunCaps:
        """Limits of its profile, or of the folder's settings."""
        setup = self._setups.get(record.cwd, self.setup)
        return caps_with(setup, record.profile, record.cwd) or caps_of(setup.settings)

    async def custom_commands(self, cwd: Path) -> Sequence[CustomCommand]:
        """Skills and command files of a folder, the first of many."""
        await self.backend.invocables.look(cwd)
        return CustomCommands(self.backend.invocables.catalogue(cwd)).matching("")

    async def use_folders(self, record: ConversationRecord, folders: Sequence[str]) -> list[str]:
        """Let these folders be read in the session of a conversation."""
        rules, troubles = await asyncio.to_thread(session_rules, record.cwd, folders)
        self.folders.keep(record.id, rules)
        return troubles

    def leave_folders(self, conversation_id: str) -> None:
        """Forget the folders of a session."""
        self.folders.forget(conversation_id)

    def use_servers(self, record: ConversationRecord, tables: Mapping[str, object]) -> None:
        """Give a conversation the servers of its client, which start without a question: it is the user's program."""
        place = DefinitionPlace(ServerOrigin.FLAG, CLIENT, record.cwd, is_literal=True)
        made = [parse_definition(name, table, place)[0] for name, table in list(tables.items())[:MOST_SERVERS]]
        self.backend.mcp.give(record.id, made)

    async def start_servers(self, record: ConversationRecord) -> list[str]:
        """Start the servers of a conversation and wait a while for them."""
        servers = self.backend.mcp
        await servers.settle(record, UNATTENDED_WAIT)
        views = [one for one in await servers.views(record) if one.origin is ServerOrigin.FLAG]
        failed = (one for one in views if one.state in {ServerState.FAILED, ServerState.NEEDS_AUTH})
        return [_unusable(one) for one in failed]

    async def cost(self, conversation: Conversation) -> list[str]:
        """Tokens and cost, in all and by purpose."""
        spent = conversation.record.spent
        price = "price unknown" if spent.cost_usd is None else money(spent.cost_usd) or "$0.00"
        total = f"{price}, {tokens(spent.input_tokens)} tokens in, {tokens(spent.output_tokens)} out"
        return [total, *call_lines(await self.backend.library.calls(conversation.id))]

    def follow_agents(self, follower: AgentFollower) -> Unsubscribe:
        """Tell about sub-agents with their facts."""

        def follow(agent: Conversation, update: Update) -> None:
            if (facts := agent.record.agent) is not None:
                follower(agent, facts, update)

        return self.engine.follow_agents(follow)

    async def close(self) -> None:
        """Close everything."""
        await end_quietly(self.backend.close())

    async def _prepare_folder(self, cwd: Path) -> Setup:
        """Settings and trust of a folder, read again for each session."""
        setup = await asyncio.to_thread(prepare, replace(self.arguments, cwd=str(cwd)), os.environ)
        self._setups[setup.cwd] = setup
        return setup


def _unusable(view: ServerView) -> str:
    text = clean_line(view.text or view.state.value).rstrip(".")
    return (
        f"{text}." if f"'{view.name}'" in text else f"The MCP server '{clean_line(view.name)}' cannot be used: {text}."
    )
