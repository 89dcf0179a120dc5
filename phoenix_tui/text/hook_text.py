"""Words about hooks and their runs."""

from __future__ import annotations

import time
from typing import Final

from engine.extensions.hooks.definitions import Hook
from engine.extensions.hooks.file_hooks import HookRun
from engine.ports.extensions import HookOutcome, HookReply
from tools.clean import clean, reveal, reveal_line

OUTCOMES: Final = {
    HookOutcome.SUCCESS: "ok",
    HookOutcome.BLOCKED: "blocked",
    HookOutcome.FAILED: "failed",
    HookOutcome.TIMED_OUT: "no answer",
}
NOTHING: Final = "(nothing)"


def hook_words(hook: Hook) -> str:
    matcher = f" {reveal_line(hook.matcher)}" if hook.matcher else ""
    return f"{hook.event.value}{matcher}: {reveal_line(hook.shown)}"


def hook_facts(hook: Hook) -> str:
    own = "yours" if hook.is_users else "project, sandboxed"
    extra = [name for name, applies in (("async", hook.is_async), ("once", hook.once)) if applies]
    return " · ".join((own, *extra))


def hook_details(hook: Hook) -> str:
    lines = [
        f"event: {hook.event.value}",
        f"matcher: {reveal_line(hook.matcher) or 'everything'}",
        f"if: {reveal_line(hook.condition)}" if hook.condition else "",
        f"timeout: {hook.seconds:g} s",
        f"shown as: {reveal_line(hook.status)}" if hook.status else "",
        f"from: {hook.source}:{hook.line}, {hook_facts(hook)}",
        "",
        reveal(hook.shown),
    ]
    return "\n".join(line for place, line in enumerate(lines) if line or place == len(lines) - 2)


def reply_words(reply: HookReply) -> str:
    code = f" · exit {reply.exit_code}" if reply.exit_code else ""
    return f"{reply.name} · {reply.event.value} · {OUTCOMES[reply.outcome]}{code} · {reply.seconds:.1f} s"


def run_words(run: HookRun) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(run.at))} {reply_words(run.reply)}"


def reply_details(reply: HookReply) -> str:
    verdict = reply.verdict
    parts = [
        reply_words(reply),
        reveal(reply.command),
        f"reason: {verdict.reason}" if verdict.reason else "",
        f"note: {verdict.warning}" if verdict.warning else "",
        f"stdin:\n{clean(reply.stdin).strip() or NOTHING}",
        f"stdout:\n{clean(reply.stdout).strip() or NOTHING}",
        f"stderr:\n{clean(reply.stderr).strip() or NOTHING}",
    ]
    return "\n\n".join(filter(None, parts))
