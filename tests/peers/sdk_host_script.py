"""Runs in the environment of the SDK: one scenario of `claude-agent-sdk` with Phoenix as its program.

Arguments: the scenario, the program, the working directory. Prints one JSON line of what the SDK gave its caller.
"""
# No type of the SDK is known to the checks of this repository.
# mypy: ignore-errors

import asyncio
import importlib
import json
import os
import pathlib
import sys
from typing import Any

sdk: Any = importlib.import_module("claude_agent_sdk") if __name__ == "__main__" else None


class Caller:
    """A program that uses the SDK; notes what it gets."""

    def __init__(self, program: str, folder: str) -> None:
        self.found: dict[str, Any] = {"seen": [], "errors": []}
        self.common = {"cli_path": program, "cwd": folder, "stderr": self.found["errors"].append}

    async def read(self, messages: Any) -> Any:
        """Read a whole answer and note its result."""
        result = None
        async for message in messages:
            self.found["seen"].append(type(message).__name__)
            if isinstance(message, sdk.ResultMessage):
                result = message
                self.found |= {"result": result.result, "subtype": result.subtype, "is_error": result.is_error}
        return result

    async def one(self, prompt: Any = "Go", **options: Any) -> Any:
        """One question by `query`."""
        try:
            return await self.read(sdk.query(prompt=prompt, options=self.options(**options)))
        except sdk.ResultError as error:
            self.found["raised"] = error.data["subtype"]

    def options(self, **options: Any) -> Any:
        """Options of a connection."""
        return sdk.ClaudeAgentOptions(**self.common, **options)


async def prompts() -> Any:
    yield {"type": "user", "message": {"role": "user", "content": "Go"}, "parent_tool_use_id": None}


async def query(caller: Caller) -> None:
    await caller.one()


failure = query


async def partials(caller: Caller) -> None:
    await caller.one(include_partial_messages=True)
    caller.found["has_partials"] = "StreamEvent" in caller.found["seen"]


async def permission(caller: Caller) -> None:
    asked: list[Any] = []

    async def can_use_tool(tool: str, given: dict[str, Any], context: Any) -> Any:
        asked.append([tool, given.get("command")])
        return sdk.PermissionResultAllow(updated_input={**given, "command": "echo changed > made.txt"})

    await caller.one(prompts(), can_use_tool=can_use_tool)
    caller.found["asked"] = asked


async def prompt_tool(caller: Caller) -> None:
    @sdk.tool("approve", "Decides about calls", {"tool_name": str, "input": dict, "tool_use_id": str})
    async def approve(args: dict[str, Any]) -> dict[str, Any]:
        changed = {**args["input"], "command": "echo changed > made.txt"}
        verdict = {"behavior": "allow", "updatedInput": changed}
        return {"content": [{"type": "text", "text": json.dumps(verdict)}]}

    servers = {"auth": sdk.create_sdk_mcp_server("auth", tools=[approve])}
    await caller.one(prompts(), mcp_servers=servers, permission_prompt_tool_name="mcp__auth__approve")


async def plan(caller: Caller) -> None:
    caller.found["asked"] = []

    async def can_use_tool(tool: str, given: dict[str, Any], context: Any) -> Any:
        caller.found["asked"].append(tool)
        edits = sdk.PermissionUpdate(type="setMode", mode="acceptEdits", destination="session")
        return sdk.PermissionResultAllow(updated_permissions=[edits])

    await caller.one(prompts(), can_use_tool=can_use_tool, permission_mode="plan")


async def refusal(caller: Caller) -> None:
    async def no(tool: str, given: dict[str, Any], context: Any) -> Any:
        return sdk.PermissionResultDeny(message="not today", interrupt=True)

    await caller.one(prompts(), can_use_tool=no)


async def hooks(caller: Caller) -> None:
    calls: list[str] = []

    async def before(given: Any, tool_use_id: Any, context: Any) -> Any:
        calls.append(f"{given['hook_event_name']} {given['tool_name']}")
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}

    async def after(given: Any, tool_use_id: Any, context: Any) -> Any:
        calls.append(f"{given['hook_event_name']} {given['tool_name']}")
        return {}

    callbacks = {"PreToolUse": before, "PostToolUse": after}
    matchers = {event: [sdk.HookMatcher(matcher="Bash", hooks=[one])] for event, one in callbacks.items()}
    await caller.one(prompts(), hooks=matchers)
    caller.found["calls"] = calls


async def server(caller: Caller) -> None:
    @sdk.tool("add", "Add two numbers", {"a": float, "b": float})
    async def add(args: dict[str, Any]) -> dict[str, Any]:
        caller.found["args"] = args
        return {"content": [{"type": "text", "text": f"sum {args['a'] + args['b']}"}]}

    calc = sdk.create_sdk_mcp_server("calc", tools=[add])
    await caller.one(prompts(), mcp_servers={"calc": calc}, allowed_tools=["mcp__calc__add"])


async def elicitation(caller: Caller) -> None:
    servers = {"kinds": json.loads(os.environ["MCP_SERVER"])}
    options = caller.options(mcp_servers=servers, allowed_tools=["mcp__kinds__form"])
    async with sdk.ClaudeSDKClient(options) as connected:
        await connected.query("Go")
        async for message in connected.receive_response():
            for block in getattr(message, "content", ()):
                if isinstance(block, sdk.ToolResultBlock):
                    caller.found["told"] = block.content if isinstance(block.content, str) else block.content[0]["text"]
            if isinstance(message, sdk.ResultMessage):
                caller.found |= {"result": message.result, "subtype": message.subtype, "is_error": message.is_error}


async def structured(caller: Caller) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    result = await caller.one(output_format={"type": "json_schema", "schema": schema})
    caller.found["structured"] = result.structured_output


async def agents(caller: Caller) -> None:
    reviewer = sdk.AgentDefinition(description="Reviews code", prompt="You review.", tools=["Read"], model="haiku")
    await caller.one(agents={"reviewer": reviewer})


def write_agent(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True)
    (folder / "any.md").write_text("---\nname: test-agent\ndescription: Tests\ntools: Read\n---\nYou test.\n")


async def agent_files(caller: Caller) -> None:
    write_agent(pathlib.Path(caller.common["cwd"], ".claude", "agents"))
    caller.found["agents"] = []
    for sources in (["project"], ["user"]):
        async with sdk.ClaudeSDKClient(caller.options(setting_sources=sources)) as connected:
            await connected.query("Say hello in exactly 3 words")
            async for message in connected.receive_messages():
                if isinstance(message, sdk.SystemMessage) and message.subtype == "init":
                    caller.found["agents"].append("test-agent" in message.data["agents"])
                if isinstance(message, sdk.ResultMessage):
                    caller.found |= {"result": message.result, "subtype": message.subtype, "is_error": message.is_error}
                    break


async def client(caller: Caller) -> None:
    async with sdk.ClaudeSDKClient(caller.options()) as connected:
        info = await connected.get_server_info()
        await connected.query("one")
        first = await caller.read(connected.receive_response())
        await connected.set_permission_mode("acceptEdits")
        await connected.set_model("claude-haiku-5-5")
        usage = await connected.get_context_usage()
        await connected.query("two")
        await caller.read(connected.receive_response())
    caller.found |= {"first": first.result, "models": len(info["models"]), "model": usage["model"]}


async def interruption(caller: Caller) -> None:
    async with sdk.ClaudeSDKClient(caller.options(include_partial_messages=True)) as connected:
        await connected.query("a long story")
        async for message in connected.receive_messages():
            if isinstance(message, sdk.StreamEvent):
                break
        await connected.interrupt()
        stopped = await caller.read(connected.receive_response())
        await connected.query("and now?")
        await caller.read(connected.receive_response())
    caller.found["stopped"] = stopped.terminal_reason


if __name__ == "__main__":
    asked_for = Caller(*sys.argv[2:])
    asyncio.run(globals()[sys.argv[1]](asked_for))
    print(json.dumps(asked_for.found))  # noqa: T201 - read by the caller
