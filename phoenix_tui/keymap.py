"""Every key in one table: bindings, the help overlay and `keymap.toml` are made from it (CONTRACT 7)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct
from textual.binding import Binding, BindingType


class Scope(StrEnum):
    """Where a key counts; the value heads its group in the help."""

    APP = "Always"
    WORKSPACE = "Everywhere"
    COMPOSER = "Writing"
    LIST = "Conversation list"
    QUESTION = "A question"


class Key(Struct, frozen=True):
    """One action and the keys that do it. `id` is its name in `keymap.toml`."""

    id: str
    keys: str
    action: str
    meaning: str
    scope: Scope
    priority: bool = True


A, W, C, L, Q = Scope.APP, Scope.WORKSPACE, Scope.COMPOSER, Scope.LIST, Scope.QUESTION
KEYS: Final[tuple[Key, ...]] = (
    Key("quit", "ctrl+q", "leave", "quit", A),
    Key("interrupt", "ctrl+c", "interrupt", "copy a selection, else stop, clear the draft, press again to quit", A),
    Key("suspend", "ctrl+z", "suspend_process", "suspend to the shell", A),
    Key("stop", "escape", "stop", "close what is open, else stop the run; twice clears a draft", W),
    Key("new", "ctrl+n", "command('new')", "new conversation", W),
    Key("list", "ctrl+l", "list", "conversation list", W),
    Key("palette", "ctrl+p", "palette", "all commands", W),
    Key("mode", "shift+tab", "cycle_mode", "next permission mode", W),
    Key("send_now", "ctrl+s", "send_now", "stop the run and send", W),
    Key("details", "ctrl+o", "view('details')", "open or close details", W),
    Key("help", "f1", "command('help')", "this help (also ? on an empty line)", W),
    Key("help_outside", "question_mark", "command('help')", "this help, outside the text", W, priority=False),
    Key("page_up", "pageup", "view('page_up')", "scroll the conversation up", W),
    Key("page_down", "pagedown", "view('page_down')", "scroll the conversation down", W),
    Key("top", "ctrl+home", "view('top')", "to the first message", W),
    Key("bottom", "ctrl+end", "view('bottom')", "to the newest message", W),
    *(Key(f"go_{n}", f"alt+{n}", f"go({n})", f"conversation {n} of the list", W) for n in range(1, 10)),
    Key("send", "enter", "send", "send; accept a completion", C),
    Key("newline", "ctrl+j,shift+enter,alt+enter", "newline", "new line", C),
    Key("older", "up", "older", "up; at the first line older prompts", C),
    Key("newer", "down", "newer", "down; at the last line newer prompts", C),
    Key("complete", "tab", "complete", "accept a completion", C),
    Key("paste", "ctrl+v,alt+v", "screen.paste_clipboard", "paste an image or text", C),
    Key("editor", "ctrl+g", "screen.editor", "write in $EDITOR", C),
    Key("undo", "ctrl+underscore", "undo", "undo", C),
    Key("leave", "ctrl+d", "leave", "on an empty line: quit", C),
    Key("row_up", "up,k", "row(-1)", "up", L, priority=False),
    Key("row_down", "down,j", "row(1)", "down", L, priority=False),
    Key("open", "enter", "open", "open", L, priority=False),
    Key("rename", "ctrl+r", "want('rename')", "rename", L, priority=False),
    Key("archive", "a", "want('archive')", "archive", L, priority=False),
    Key("delete", "d,delete", "want('delete')", "delete; u brings it back", L, priority=False),
    Key("restore", "u", "want('restore')", "undo the last delete or archive", L, priority=False),
    Key("answer_once", "y", "answer('y')", "yes, once", Q, priority=False),
    Key("answer_conversation", "s", "answer('s')", "yes, for this conversation", Q, priority=False),
    Key("answer_always", "a", "answer('a')", "yes, always: shows the rule first", Q, priority=False),
    Key("answer_no", "n", "answer('n')", "no", Q, priority=False),
    Key("answer_reason", "r", "answer('r')", "no, with a reason", Q, priority=False),
)
KEYS_BY_ID: Final[dict[str, Key]] = {key.id: key for key in KEYS}
WORDS: Final[dict[str, str]] = {
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "question_mark": "?",
    "underscore": "_",
    "delete": "Del",
}


def bindings(scope: Scope) -> list[BindingType]:
    """What a widget or screen of this scope binds."""
    return [
        Binding(
            key.keys, key.action, key.meaning, show=False, priority=key.priority, id=f"{scope.name.lower()}.{key.id}"
        )
        for key in KEYS
        if key.scope is scope
    ]


def to_textual(keymap: Mapping[str, str]) -> dict[str, str]:
    """The same keys under the binding ids that Textual knows."""
    return {f"{KEYS_BY_ID[name].scope.name.lower()}.{name}": keys for name, keys in keymap.items()}


def key_names(keys: str) -> str:
    """Keys as people write them: `Ctrl+J, Shift+Enter`."""
    return ", ".join(
        "+".join(WORDS.get(part, part.capitalize()) for part in key.strip().split("+")) for key in keys.split(",")
    )


def help_rows(keymap: Mapping[str, str]) -> list[tuple[Scope, str, str]]:
    """Scope, keys and meaning of every action, with the user's own keys in place."""
    rows = [
        (key.scope, key_names(keymap.get(key.id, key.keys)), key.meaning)
        for key in KEYS
        if not key.id.startswith("go_")
    ]
    rows.insert(0, (W, "Alt+1 … Alt+9", "conversation 1 to 9 of the list"))
    return rows
