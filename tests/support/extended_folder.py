"""A repository whose files extend Phoenix: hooks with a script, a server, a skill, a command."""

from __future__ import annotations

import json
from pathlib import Path

from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.features.trust_board import TrustBoard
from tests.support.git_repositories import empty_repository

KEY = "sk-ant-planted-0123456789"
LINT = "python3 scripts/lint.py --all"
HOOKS = {
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": LINT}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "echo done"}]}],
    }
}
SERVERS = {"mcpServers": {"files": {"command": "npx", "args": ["-y", "files server"], "env": {"KEY": KEY}}}}


def write(path: Path, text: str) -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def extended(folder: Path) -> Path:
    """Fill a folder; 2 hooks, 1 server, 1 skill and 1 command."""
    empty_repository(folder)
    write(folder / ".claude/settings.json", json.dumps(HOOKS))
    write(folder / "scripts/lint.py", "print('fine')\n")
    write(folder / ".mcp.json", json.dumps(SERVERS))
    write(folder / ".claude/skills/web/SKILL.md", "Browse.\n")
    write(folder / ".claude/commands/git/commit.md", "Commit.\n")
    return folder


def board(home: Path) -> TrustBoard:
    """The trust of a user whose folders are empty."""
    return TrustBoard(ProjectSources(home / "config", home / "user", TrustFile(home / "trust.json")))
