"""Conformance of the engine, and of the fakes of the tests, to the interfaces of the screens."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from engine.agents.manager import SubAgents
from engine.api.conversation import (
    ContextApi,
    ConversationApi,
    JobsApi,
    QueueApi,
    RoutingApi,
    SideQuestionsApi,
    TodosApi,
)
from engine.api.engine import AgentsApi, BulkApi, EngineApi, LibraryApi, RewindApi
from engine.conversation import Conversation
from engine.engine import ConversationBulk, Engine
from engine.executor.context_manager import ContextManager
from engine.executor.effect_runner import BackgroundJobs
from engine.executor.message_queue import MessageQueue
from engine.executor.routing import RoutingControl
from engine.executor.side_questions import SideQuestions
from engine.executor.todo_lists import TodoEdits
from engine.rewind.rewind import Rewinding
from engine.store.library import Library
from phoenix_tui.features.service_interfaces import Onboarding, ProfilesApi, SettingsApi
from phoenix_tui.wiring.model_board import ModelOffers
from phoenix_tui.wiring.profiles import ProfileBoard
from phoenix_tui.wiring.settings_board import SettingsBoard
from tests.support.fake_agents import FakeSubAgents
from tests.support.fake_context import FakeContext
from tests.support.fake_engine import (
    FakeBulk,
    FakeConversation,
    FakeEngine,
    FakeOnboarding,
    FakeSettings,
)
from tests.support.fake_jobs import FakeJobs
from tests.support.fake_library import FakeLibrary
from tests.support.fake_profiles import FakeProfiles
from tests.support.fake_queue import FakeQueue
from tests.support.fake_rewinding import FakeRewinding
from tests.support.fake_routing import FakeRouting
from tests.support.fake_side import FakeSide
from tests.support.fake_todos import FakeTodos

PAIRS: list[tuple[Any, Any]] = [
    (EngineApi, Engine),
    (EngineApi, FakeEngine),
    (ConversationApi, Conversation),
    (ConversationApi, FakeConversation),
    (BulkApi, ConversationBulk),
    (BulkApi, FakeBulk),
    (Onboarding, ModelOffers),
    (Onboarding, FakeOnboarding),
    (SettingsApi, SettingsBoard),
    (SettingsApi, FakeSettings),
    (SideQuestionsApi, SideQuestions),
    (SideQuestionsApi, FakeSide),
    (TodosApi, TodoEdits),
    (TodosApi, FakeTodos),
    (AgentsApi, SubAgents),
    (AgentsApi, FakeSubAgents),
    (ContextApi, ContextManager),
    (ContextApi, FakeContext),
    (JobsApi, BackgroundJobs),
    (JobsApi, FakeJobs),
    (LibraryApi, Library),
    (LibraryApi, FakeLibrary),
    (ProfilesApi, ProfileBoard),
    (ProfilesApi, FakeProfiles),
    (QueueApi, MessageQueue),
    (QueueApi, FakeQueue),
    (RewindApi, Rewinding),
    (RewindApi, FakeRewinding),
    (RoutingApi, RoutingControl),
    (RoutingApi, FakeRouting),
]


def takes(function: Any) -> list[tuple[str, Any, bool]]:
    """Name, kind and whether it may be left out, of every parameter but `self` and the connection that a store adds."""
    first = 2 if hasattr(function, "__wrapped__") else 1
    parameters = list(inspect.signature(function).parameters.values())[first:]
    return [(one.name, one.kind, one.default is not one.empty) for one in parameters]


@pytest.mark.parametrize(("promised", "kept"), PAIRS, ids=lambda one: one.__name__)
def test_every_method_takes_what_was_promised(promised: Any, kept: Any) -> None:
    methods = {name: one for name, one in inspect.getmembers(promised, inspect.isfunction) if not name.startswith("_")}
    assert methods
    missing = [name for name in methods if not callable(getattr(kept, name, None))]
    other = {
        name: (takes(one), takes(getattr(kept, name)))
        for name, one in methods.items()
        if name not in missing and takes(one) != takes(getattr(kept, name))
    }
    assert (missing, other) == ([], {})
