"""Background commands of a conversation, as hooks at the end of an answer read them."""

from __future__ import annotations

from engine.executor.session import Session
from tools.contract import JsonValue


def background_tasks(session: Session) -> list[JsonValue]:
    """Commands that still run."""
    return [
        {"id": job.id, "type": "shell", "status": "running", "description": job.command, "command": job.command}
        for job in session.ports.jobs.jobs(session.record.id)
        if job.running
    ]
