"""Points to go back to: prompts and commands of the user, not the output of a command."""

from __future__ import annotations

from engine.machine.effects import FinishRun, RunStatus, StartRun
from engine.machine.messages import Block, NewMessage, Origin, Role, TextBlock, ToolUseBlock
from engine.ports import AppendMessage
from engine.store import Store
from tests.support.storage import move, new_conversation, new_id


def row(role: Role, origin: Origin, block: Block, run_id: str) -> AppendMessage:
    return AppendMessage(NewMessage(new_id(), role, origin, (block,)), run_id)


def command(run_id: str) -> AppendMessage:
    return row(Role.SYSTEM, Origin.NOTICE, ToolUseBlock("shell_1", "bash", '{"command": "ls"}'), run_id)


def notice(run_id: str) -> AppendMessage:
    return row(Role.SYSTEM, Origin.NOTICE, TextBlock("3 processes ended late"), run_id)


def said(text: str, run_id: str) -> AppendMessage:
    return row(Role.USER, Origin.HUMAN, TextBlock(text), run_id)


async def test_a_command_is_one_of_them_its_output_is_not_wherever_it_stands(store: Store) -> None:
    conversation = (await store.create(new_conversation(), 1.0)).id
    runs = {
        "r1": (command("r1"), notice("r1"), said("$ ls\nREADME", "r1")),
        "r2": (command("r2"),),
        "r3": (said("$ 5 is too much", "r3"),),
    }
    for run_id, rows in runs.items():
        await store.commit(move(conversation, StartRun(run_id), *rows, FinishRun(run_id, RunStatus.SUCCESS, 0)))
    found = await store.turn_log.prompts(conversation, 10)
    assert [prompt.text for prompt in found] == ["$ 5 is too much", "! ls", "! ls"]
