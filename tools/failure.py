"""Failures of tools: one sentence that the model can act on."""

from __future__ import annotations

import errno

from tools.clean import reveal_name
from tools.contract import ToolOutput


class ToolFailure(Exception):
    """The call cannot be done; the message is written for the model."""


_SENTENCES = {
    errno.ENOENT: "{name} does not exist.",
    errno.ENOTDIR: "A part of the path {name} is not a folder.",
    errno.EISDIR: "{name} is a folder, not a file.",
    errno.EACCES: "No permission to open {name}.",
    errno.EPERM: "No permission to change {name}.",
    errno.EROFS: "{name} is on a read-only file system.",
    errno.ENOSPC: "The disk is full: {name} is unchanged.",
    errno.EDQUOT: "The disk quota is used up: {name} is unchanged.",
    errno.ENAMETOOLONG: "The name {name} is too long for this file system.",
    errno.ENXIO: "{name} is not a regular file but a pipe, device or socket.",
    errno.ELOOP: "{name} is, or runs through, a symbolic link that changed while it was opened.",
}


def explain(error: OSError, name: str) -> str:
    """One sentence for a system error about the file `name`."""
    name = reveal_name(name)  # a name that overwrites itself would show another file
    sentence = _SENTENCES.get(error.errno or 0)
    return sentence.format(name=name) if sentence else f"{name}: {error.strerror or error}."


def failed(sentence: str) -> ToolOutput:
    """The output of a call that failed."""
    return ToolOutput(text=sentence, is_error=True)
