"""Conformance of the tests' fakes to the classes of the engine that they take the place of."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from engine.agents.manager import SubAgents
from engine.conversation import Conversation
from engine.engine import ConversationBulk, Engine
from engine.executor.context_manager import ContextManager
from engine.executor.effect_runner import BackgroundJobs
from engine.executor.message_queue import MessageQueue
from engine.executor.routing import RoutingControl
from engine.executor.side_questions import SideQuestions
from engine.executor.todo_lists import TodoEdits
from engine.executor.tool_call import UserTerminal
from engine.rewind.rewind import Rewinding
from engine.store.library import Library
from engine.store.statistics import StatisticsStore
from engine.tracking.tracker import TaskBoards
from phoenix_tui.features.service_interfaces import Onboarding, ProfilesApi, SettingsApi
from phoenix_tui.wiring.boards import SettingsBoard
from phoenix_tui.wiring.models import ModelOffers
from phoenix_tui.wiring.profiles import ProfileBoard
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
from tests.support.fake_statistics import FakeStatistics
from tests.support.fake_tasks import FakeTasks
from tests.support.fake_terminal import FakeTerminal
from tests.support.fake_todos import FakeTodos

PAIRS: list[tuple[Any, Any]] = [
    (Engine, FakeEngine),
    (Conversation, FakeConversation),
    (ConversationBulk, FakeBulk),
    (Onboarding, ModelOffers),
    (Onboarding, FakeOnboarding),
    (SettingsApi, SettingsBoard),
    (SettingsApi, FakeSettings),
    (SideQuestions, FakeSide),
    (TaskBoards, FakeTasks),
    (TodoEdits, FakeTodos),
    (SubAgents, FakeSubAgents),
    (ContextManager, FakeContext),
    (BackgroundJobs, FakeJobs),
    (Library, FakeLibrary),
    (ProfilesApi, ProfileBoard),
    (ProfilesApi, FakeProfiles),
    (MessageQueue, FakeQueue),
    (Rewinding, FakeRewinding),
    (RoutingControl, FakeRouting),
    (StatisticsStore, FakeStatistics),
    (UserTerminal, FakeTerminal),
]


def takes(function: Any) -> list[tuple[str, Any, bool]]:
    """Name, kind and whether it may be left out, of every parameter but `self` and the connection that a store adds."""
    first = 2 if hasattr(function, "__wrapped__") else 1
    parameters = list(inspect.signature(function).parameters.values())[first:]
    return [(one.name, one.kind, one.default is not one.empty) for one in parameters]


@pytest.mark.parametrize(("real", "fake"), PAIRS, ids=lambda one: one.__name__)
def test_methods_of_both_take_the_same(real: Any, fake: Any) -> None:
    own = {name: one for name, one in inspect.getmembers(fake, inspect.isfunction) if not name.startswith("_")}
    shared = {name: one for name, one in own.items() if hasattr(real, name)}
    assert shared
    assert {name: takes(one) for name, one in shared.items()} == {name: takes(getattr(real, name)) for name in shared}
