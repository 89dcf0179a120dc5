"""A line of the user as a script for bash that begins in the folder of the line before and names the one it ends in."""

from __future__ import annotations

import secrets
import shlex
from typing import Final

from msgspec import Struct

from tools.clean import reveal_name

GONE: Final = (
    "Nothing was run: the folder {} of your last line cannot be entered any more. "
    "Your next line runs in the folder of the conversation."
)
_NAME_BYTES: Final = 12
_END: Final = (
    "_phoenix_end() { local LC_ALL=C path number place; "
    "path=$(builtin pwd -P; builtin printf .) path=${path%??}; builtin printf '\\033]%s' MARK; "
    "for ((place = 0; place < ${#path}; place++)); do "
    """builtin printf -v number %d "'${path:place:1}"; builtin printf %02x $((number & 255)); """
    "done; builtin printf '\\007'; }; _phoenix_end >/dev/tty 2>/dev/null"
)
"""One line, as the next: a message of bash about the user's own names the number of its line."""
_ENTER: Final = "builtin cd -P -- FOLDER 2>/dev/null || { builtin printf '%s\\n' SENTENCE >&2; builtin exit 1; }; "


class FolderScript(Struct, frozen=True):
    """A script, and the beginning of the system command (OSC) with which it names its last folder."""

    script: str
    mark: str


def folder_script(command: str, folder: str) -> FolderScript:
    """Run `command` in `folder`, where it is not empty; a folder that is gone runs nothing.

    The name of the folder goes to the terminal in hexadecimal bytes behind a random word, in a sequence that is never
    shown. A program could repeat it: the folder counts for nothing but the user's next line, which shows it.
    """
    mark = f"7;{secrets.token_hex(_NAME_BYTES)};"
    end, enter = _END.replace("MARK", shlex.quote(mark)), ""
    if folder:
        sentence = shlex.quote(GONE.format(reveal_name(folder)))
        enter = _ENTER.replace("SENTENCE", sentence).replace("FOLDER", _quoted(folder))
    return FolderScript(f"trap {shlex.quote(end)} EXIT; {enter}eval -- {shlex.quote(command)}", mark)


def _quoted(folder: str) -> str:
    """A word for bash; a name that is no UTF-8 is spelled byte by byte."""
    try:
        folder.encode()
    except UnicodeEncodeError:
        return "$'" + "".join(f"\\x{byte:02x}" for byte in folder.encode("utf-8", "surrogateescape")) + "'"
    return shlex.quote(folder)
