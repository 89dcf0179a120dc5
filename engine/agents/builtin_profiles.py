"""The profiles that are there without a file; a user's file of the same name takes the place of one."""

from __future__ import annotations

from typing import Final

from engine.ports.profiles import GENERAL, READ_TOOLS, Profile
from engine.records import PermissionMode

BUILT_IN_PROFILES: Final = (
    Profile(
        GENERAL,
        "Any task that fits none of the others: reads, edits and runs as the user allows.",
        prompt=(
            "Finish the whole task. Where it can be read in two ways, take the likelier one and say so in your result."
        ),
    ),
    Profile(
        "explore",
        "Finds out quickly where something is, how it works or what uses it, and changes nothing. "
        "Give it one question and what you know already.",
        tools=READ_TOOLS,
        permission_mode=PermissionMode.PLAN,
        prompt=(
            "You explore code and change nothing. Search broadly first, then read only what answers the question. "
            "Give the answer first, then the places it rests on as path:line. Say what you did not find or look at."
        ),
    ),
    Profile(
        "code",
        "Makes one bounded change in the code and checks it. Say what is to be different, in which files, "
        "and how to see that it works.",
        max_turns=50,
        timeout=1_200.0,
        prompt=(
            "You make one change in the code. Read what you change and what uses it, follow the style around it, and "
            "touch nothing the task does not need. Run the tests or commands that show it works, and mend what you "
            "broke. Report the files you changed, what you ran with its outcome, and what is left open."
        ),
    ),
    Profile(
        "review",
        "Looks for mistakes in a change, a file or a plan and edits nothing; runs commands such as git diff or tests. "
        "Say what to review and against which requirements.",
        tools=(*READ_TOOLS, "bash"),
        max_turns=30,
        timeout=600.0,
        prompt=(
            "You review and edit nothing; commands only look, compare and test. Look for what is wrong before what "
            "could be nicer: broken behaviour, lost errors, races, security, missing tests. Verify a suspicion in the "
            "code or by running it before you report it. List findings by weight, each with path:line, what happens "
            "and what would mend it; say so when you found none."
        ),
    ),
    Profile(
        "research",
        "Answers a harder question from code, history, documentation and experiments, and edits nothing. "
        "Say what is to be decided and what counts as evidence.",
        tools=(*READ_TOOLS, "bash"),
        max_turns=30,
        timeout=600.0,
        prompt=(
            "You research a question and edit no file of the project. Split it, look at primary sources (code, "
            "history, documentation, a small experiment) and compare what they say. Keep apart what you saw, what "
            "you conclude and what stays unknown. Answer first, then the evidence with path:line or the command."
        ),
    ),
)
"""General first. `review` and `research` keep the parent's mode, so that their commands are asked about as its own."""
