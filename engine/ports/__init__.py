"""What the engine needs from outside, as Protocols, with the values that cross them."""

from __future__ import annotations

from engine.ports.models import (
    ImageBytes,
    ModelInfo,
    ModelMessage,
    ModelReply,
    ModelRequest,
    Provider,
    ProviderError,
    Providers,
    StreamItem,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from engine.ports.profiles import Profile, ProfileError, Profiles
from engine.ports.queueing import QueueStore
from engine.ports.storage import (
    AppendMessage,
    Committed,
    ConversationChanges,
    DrainInboxRows,
    Library,
    Move,
    OwnedElsewhere,
    RecordEvent,
    RecordSpan,
    RemoveQueued,
    SetContext,
    SetView,
    StorageError,
    Store,
    Write,
)
from engine.ports.system import (
    Clock,
    Ids,
)

__all__ = [
    "AppendMessage",
    "Clock",
    "Committed",
    "ConversationChanges",
    "DrainInboxRows",
    "Ids",
    "ImageBytes",
    "Library",
    "ModelInfo",
    "ModelMessage",
    "ModelReply",
    "ModelRequest",
    "Move",
    "OwnedElsewhere",
    "Profile",
    "ProfileError",
    "Profiles",
    "Provider",
    "ProviderError",
    "Providers",
    "QueueStore",
    "RecordEvent",
    "RecordSpan",
    "RemoveQueued",
    "SetContext",
    "SetView",
    "StorageError",
    "Store",
    "StreamItem",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "Write",
]
