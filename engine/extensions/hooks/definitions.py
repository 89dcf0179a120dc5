"""Hooks as they stand in files, and the set of those that hold in a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from engine.ports.extensions import HookEvent
from tools.clean import clean_line

LIMITS: Final[Mapping[HookEvent, float]] = {HookEvent.USER_PROMPT_SUBMIT: 30.0, HookEvent.SESSION_END: 5.0}
"""Seconds of one hook where its file names none; 600 for other events."""
USUAL: Final = 600.0
LONGEST: Final = 3_600.0
LONGEST_NAME: Final = 40
_BETWEEN: Final = re.compile(r"[\s;|&()<>{}\"'`$=]+")
_SCRIPT: Final = re.compile(r"[\w.+@-]+\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|php|lua)")
MOST_HOOKS: Final = 200
"""Hooks of one folder."""


class Hook(Struct, frozen=True):
    """One command of a hook file."""

    event: HookEvent
    command: str
    args: tuple[str, ...] | None = None
    """Arguments: the command is a program that is started without a shell; None: a line for bash."""
    matcher: str = ""
    condition: str = ""
    """A permission rule that the call has to match; empty: none."""
    seconds: float = USUAL
    is_async: bool = False
    """True: nothing waits for it, so it decides nothing."""
    once: bool = False
    """True: it runs once in a conversation."""
    goes_on: bool = False
    """True: without an opinion in time the call goes on."""
    status: str = ""
    """Text beside its name while it runs."""
    is_users: bool = True
    source: str = ""
    """Path of its file."""
    line: int = 1

    @property
    def shown(self) -> str:
        """The command to the letter, with its arguments."""
        return self.command if self.args is None else " ".join((self.command, *self.args))

    @property
    def name(self) -> str:
        """A short name: that of the script, else the first word."""
        words = [word.rpartition("/")[2] for word in _BETWEEN.split(clean_line(self.shown)) if word]
        scripts = (word for word in words if _SCRIPT.fullmatch(word))
        return next(scripts, words[0] if words else "hook")[:LONGEST_NAME] or "hook"

    @property
    def identity(self) -> tuple[object, ...]:
        """Hooks with equal identities are one."""
        return self.event, self.command, self.args, self.matcher, self.condition


class HookProblem(Struct, frozen=True):
    """A part of a hook file that is not used."""

    source: str
    line: int
    why: str
    """A clause."""

    @property
    def sentence(self) -> str:
        """The whole sentence, with file and line."""
        return f"{self.source}:{self.line}: {self.why}."


class HookFile(Struct, frozen=True):
    """One hook file: what it holds, and what in it is not used."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[HookProblem, ...] = ()
    disables_all: bool = False
    """True where it switches every hook off."""


class HookSet(Struct, frozen=True):
    """All hooks of a folder by event."""

    by_event: Mapping[HookEvent, tuple[Hook, ...]] = field(default_factory=dict[HookEvent, tuple[Hook, ...]])
    problems: tuple[HookProblem, ...] = ()
    waiting: tuple[str, ...] = ()
    """Files whose hooks wait for trust."""
    off: str = ""
    """Reason why none runs; empty where they do."""

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """All of them, by event."""
        return tuple(hook for hooks in self.by_event.values() for hook in hooks)


NO_HOOKS: Final = HookSet()


def joined_files(files: tuple[HookFile, ...], waiting: tuple[str, ...] = (), *, is_off: str = "") -> HookSet:
    """The hooks of several files, in their order; equal commands count once."""
    problems = [problem for file in files for problem in file.problems]
    disabled = any(file.disables_all for file in files)
    off = is_off or ("a hook file has disableAllHooks" if disabled else "")
    found: dict[tuple[object, ...], Hook] = {}
    for hook in (hook for file in files for hook in file.hooks):
        if hook.identity not in found and len(found) >= MOST_HOOKS:
            problems.append(HookProblem(hook.source, hook.line, f"a folder has at most {MOST_HOOKS} hooks"))
            break
        found.setdefault(hook.identity, hook)
    by_event: dict[HookEvent, tuple[Hook, ...]] = {}
    for hook in () if off else found.values():
        by_event[hook.event] = (*by_event.get(hook.event, ()), hook)
    return HookSet(by_event, tuple(problems), waiting, off)
