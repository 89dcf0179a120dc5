"""The version and the names of the sub-commands; imports nothing."""

from __future__ import annotations

VERSION = "0.1.0"
"""Version of pyproject.toml; reading it from the installed metadata would cost 20 ms at every start."""

COMMANDS = (
    "conversations",
    "runs",
    "events",
    "trace",
    "stats",
    "tasks",
    "review",
    "mcp",
    "memory",
    "models",
    "model",
    "config",
    "doctor",
    "update",
    "serve",
    "acp",
    "completion",
    "man",
)

ELSEWHERE = {
    "resume": "`phoenix -r` opens an earlier conversation, `phoenix -c` the latest one of this folder",
    "login": "`/key` in Phoenix stores a key, and ANTHROPIC_API_KEY or OPENAI_API_KEY sets one",
}
"""Words that are commands of other agents and no prompts, and what does the same here."""

LOOK_UP = "__complete"
"""First argument by which a completion script of a shell asks for values; no command for people."""

INPUT_FORMAT = "--input-format"
"""Flag by which a host drives Phoenix over stdin."""


def wants_control(argv: list[str]) -> bool:
    """Return True for a command line by which a host drives Phoenix."""
    return any(one == INPUT_FORMAT or one.startswith(f"{INPUT_FORMAT}=") for one in argv)


SERVED = "PHOENIX_SERVED"
"""Environment variable that marks a Phoenix in a browser's tab."""
