"""Engine update -> transcript: the single match."""

from __future__ import annotations

from typing import assert_never

from engine.updates import (
    AgentsChanged,
    AnswerEnded,
    ApprovalAsked,
    BackgroundSummary,
    CallEnded,
    ContextChanged,
    ConversationChanged,
    HookEnded,
    HookStarted,
    JobsChanged,
    LiveTextDropped,
    MessageSaved,
    Noticed,
    Paced,
    QueueChanged,
    RetryScheduled,
    Routed,
    RunEnded,
    Snapshot,
    StateChanged,
    TasksChanged,
    TextArrived,
    ThinkingArrived,
    ToolDrafted,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    Update,
    ViewersLeft,
)
from phoenix_tui.widgets.transcript.model import TranscriptModel


def follow(update: Update, model: TranscriptModel) -> None:  # noqa: C901, PLR0912 - one case per update, no logic
    """Update `model`; updates without a visible effect change nothing."""
    match update:
        case Snapshot():
            model.show(update)
        case MessageSaved(message=message):
            model.save(message)
        case TextArrived(text=text):
            model.add_text(text)
        case ThinkingArrived(text=text):
            model.add_thinking(text)
        case ToolDrafted(name=name, characters=characters):
            model.draft_call(name, characters)
        case LiveTextDropped(cancelled=cancelled):
            model.drop_live(cancelled=cancelled)
        case ToolStarted(call=call, request=request):
            model.start_call(call, request)
        case ToolProgressed(call_id=call_id, progress=progress):
            model.progress(call_id, progress)
        case ToolEnded(result=result, duration=duration, ended_processes=ended_processes):
            model.end_call(result, duration, ended_processes)
        case StateChanged(state=state, since=since):
            model.change_state(state, since)
        case RunEnded(status=status):
            model.end_run(status)
        case Noticed(text=text):
            model.add_notice(text)
        case ConversationChanged(conversation=conversation):
            model.conversation = conversation
            model.dirty.add(model.count)
        case (
            ApprovalAsked()
            | ContextChanged()
            | CallEnded()
            | RetryScheduled()
            | Paced()
            | JobsChanged()
            | QueueChanged()
            | AgentsChanged()
            | Routed()
            | AnswerEnded()
            | BackgroundSummary()
            | TasksChanged()
            | HookStarted()
            | HookEnded()
            | ViewersLeft()
        ):
            pass  # status line, meter, question, queue and the rows of sub-agents show these
        case _:
            assert_never(update)
