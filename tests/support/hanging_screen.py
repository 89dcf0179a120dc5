"""Phoenix in which laying out an answer never ends while its home has a file named `hang`.

usage: python -m tests.support.hanging_screen ARGUMENTS
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from phoenix_tui.__main__ import main
from phoenix_tui.markdown.stream import MarkdownStream

_begin = MarkdownStream.begin


def _hang(stream: MarkdownStream, text: str) -> None:
    while (Path(os.environ["PHOENIX_HOME"]) / "hang").exists():
        pass
    _begin(stream, text)


if __name__ == "__main__":
    setattr(MarkdownStream, "begin", _hang)  # noqa: B010 - a type checker refuses to replace a method
    sys.exit(main())
