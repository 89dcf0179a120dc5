"""An image that a model refused is left out of every later request: it must not make one more of them fail."""

from __future__ import annotations

from msgspec.structs import replace

from engine.context import omissions
from engine.executor.session import Session, with_view
from engine.executor.window import tokens_after
from engine.machine.messages import Role
from engine.ports import ConversationChanges, ProviderError

REFUSED = "refused_image"
"""The kind of such a failure."""
LEFT_OUT = "{what} left out from now on: Enter tries again without, /context puts back"


async def without_images(session: Session, error: ProviderError) -> ProviderError:
    """Leave out the images that came last, or all where none did; returns the error that says so.

    Raises:
        StorageError: it cannot be stored.
    """
    view, rows = session.record.view, await session.rows()
    shown = omissions.apply(rows, view.omitted)
    answered = max((row.seq for row in rows if row.role is Role.ASSISTANT), default=0)
    newest = omissions.images([row for row in shown if row.seq > answered])
    refused = newest or omissions.images(shown)
    if not refused:
        return error
    after = replace(view, omitted=omissions.joined(view.omitted, refused))
    tokens = tokens_after(session, rows, after)
    changes = ConversationChanges(view=after, context_tokens=tokens)
    await session.ports.store.change(session.record.id, changes, session.ports.clock.now())
    session.record = with_view(session.record, after, tokens)
    what = "It is" if len(refused) == 1 else f"Its {len(refused)} images are"
    message = f"{error.message.rstrip('.')}. {LEFT_OUT.format(what=what)}."
    return ProviderError(message, kind=error.kind, retryable=error.retryable)
