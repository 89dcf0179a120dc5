"""`make index`: every file of the source with the first sentence of its docstring, or those below one folder."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("phoenix_tui", "engine", "tools")
WIDTH: Final = 120


def main(places: Iterable[str]) -> int:
    """Print the index of some folders, of the whole source where none is named."""
    for place in places or PACKAGES:
        if not (ROOT / place).is_dir():
            print(f"{place} is not a folder of this repository.", file=sys.stderr)
            return 2
        print("\n".join(lines_of(place)))
    return 0


def lines_of(place: str) -> Iterator[str]:
    """The index of one folder: each folder below it as a heading, then its files."""
    folders = sorted({path.parent for path in (ROOT / place).rglob("*.py")})
    for folder in folders:
        package = folder / "__init__.py"
        says = f": {said_by(package)}" if package.exists() else ""
        yield from _wrapped(f"{folder.relative_to(ROOT)}/{says}", 2)
        for path in sorted(folder.glob("*.py")):
            if path != package:
                yield from _wrapped(f"  {path.name}: {said_by(path)}", 6)
        yield ""


def said_by(path: Path) -> str:
    """The first paragraph of a module's docstring on one line; empty where it has none."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent, drop_whitespace=True, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
