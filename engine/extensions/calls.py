"""Calls by the user: `/name arguments` at the beginning of a message."""

from __future__ import annotations

import re
from typing import Final

from engine.ports.extensions import Catalogue

CALL: Final = re.compile(r"/(?P<name>[A-Za-z0-9_][\w.:-]{0,199})(?:\s+(?P<arguments>.*))?", re.DOTALL)
UNTRUSTED: Final = "/{name} is a file of this project that is not trusted as it is now; /trust shows it."
BROKEN: Final = "/{name} cannot be used: {path}:{line}: {reason}"


def why_not_called(catalogue: Catalogue, name: str) -> str:
    """Reason why a file of this name cannot be called, in one sentence; empty where there is none."""
    if any(one.name == name for one in catalogue.waiting):
        return UNTRUSTED.format(name=name)
    for problem in catalogue.problems:
        if name.rpartition(":")[2] in {problem.path.stem, problem.path.parent.name}:
            return BROKEN.format(name=name, path=problem.path, line=problem.line or 1, reason=problem.reason)
    return ""
