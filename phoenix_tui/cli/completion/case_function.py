"""A function of bash and zsh that is one `case` over its arguments."""

from __future__ import annotations


def case_function(name: str, subject: str, lines: list[str], otherwise: str) -> str:
    """The function `name`: `lines` are the branches on `subject`, `otherwise` is done where none fits."""
    return "\n".join((
        f"{name}() {{",
        f"    case {subject} in",
        *lines,
        f"        *) {otherwise} ;;",
        "    esac",
        "}\n",
    ))
