"""An MCP server of the SDK with a tool for each kind of result; `python -m tests.support.mcp_kinds [http PORT]`."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from typing import Any

import mcp_types as types
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.support.mcp_raw import PIXEL

WEATHER = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}
SHAPES: dict[str, dict[str, Any]] = {
    "weather": {"output_schema": WEATHER},
    "wrong_weather": {"output_schema": WEATHER},
    "no_weather": {"output_schema": WEATHER},
    "reader": {"annotations": types.ToolAnnotations(read_only_hint=True, title="Reads")},
    "dotted.name and more": {},
}
PLAIN = ["echo", "image", "audio", "blob", "resource", "link", "mixed", "user_only", "empty", "fails", "breaks"]
BUSY = ["big", "slow", "progress", "env", "log", "grow"]
ASKING = ["form", "roots", "sample"]
EXTRA: list[str] = []
BUS = InMemorySubscriptionBus()


def _text(text: str, **more: Any) -> types.TextContent:
    return types.TextContent(type="text", text=text, **more)


def _result(*content: Any, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=list(content), **more)


def _simple(name: str, arguments: dict[str, Any]) -> types.CallToolResult | None:
    audio = base64.b64encode(b"RIFFsound").decode()
    resource = types.TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="inside")
    blob = types.BlobResourceContents(uri="file:///a.zip", mime_type="application/zip", blob=audio)
    link = types.ResourceLink(type="resource_link", name="a", uri="file:///a.txt", description="A file.")
    pixel = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
    for_user = types.Annotations(audience=["user"])
    results = {
        "echo": _result(_text(str(arguments.get("text", "")))),
        "image": _result(pixel),
        "audio": _result(types.AudioContent(type="audio", data=audio, mime_type="audio/wav")),
        "resource": _result(types.EmbeddedResource(type="resource", resource=resource)),
        "blob": _result(types.EmbeddedResource(type="resource", resource=blob)),
        "link": _result(link),
        "mixed": _result(
            _text("one"), types.ImageContent(type="image", data=PIXEL, mime_type="image/png"), _text("two")
        ),
        "user_only": _result(_text("for the eye", annotations=for_user)),
        "empty": _result(),
        "fails": _result(_text("it failed"), is_error=True),
        "big": _result(_text("a" * int(arguments.get("size", 400_000)))),
        "weather": _result(_text("warm"), structured_content={"degrees": 21.5}),
        "wrong_weather": _result(_text("warm"), structured_content={"degrees": "warm"}),
        "no_weather": _result(_text("warm")),
        "reader": _result(_text("read")),
        "dotted.name and more": _result(_text("odd")),
        "env": _result(_text(" ".join(sorted(os.environ)))),
    }
    return results.get(name)


def _modern_form(params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    """The form as the newer era has it: the result asks, and the call comes again with the answer."""
    answer = (params.input_responses or {}).get("name")
    if isinstance(answer, types.ElicitResult):
        return _result(_text(f"{answer.action} {answer.content}"))
    schema: Any = {"type": "object", "properties": {"name": {"type": "string"}}}
    form = types.ElicitRequestFormParams(message="Your name?", requested_schema=schema)
    return types.InputRequiredResult(input_requests={"name": types.ElicitRequest(params=form)})


async def _asking(ctx: ServerRequestContext[Any], name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    match name:
        case "form":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            answer = await ctx.session.elicit_form("Your name?", schema, related_request_id=ctx.request_id)
            return _result(_text(f"{answer.action} {answer.content}"))
        case "roots":
            roots = await ctx.session.list_roots()
            return _result(_text(" ".join(str(root.uri) for root in roots.roots)))
        case _:
            texts = [await _sample(ctx, arguments) for _ in range(int(arguments.get("times", 1)))]
            return _result(_text("\n".join(texts)))


async def _sample(ctx: ServerRequestContext[Any], arguments: dict[str, Any]) -> str:
    """The answer of a model as JSON, or the error in its place."""
    asked = _sampled(arguments)
    try:
        sampled = await ctx.session.create_message(
            asked.messages,
            max_tokens=asked.max_tokens,
            system_prompt=asked.system_prompt,
            stop_sequences=asked.stop_sequences,
            related_request_id=ctx.request_id,
        )
    except MCPError as error:
        return f"error {error.error.code}: {error.error.message}"
    return sampled.model_dump_json(by_alias=True, exclude_none=True)


def _sampled(arguments: dict[str, Any]) -> types.CreateMessageRequestParams:
    """A request for an answer, as the arguments of the call want it."""
    text = str(arguments.get("text", "Say hi")) * int(arguments.get("repeat", 1))
    content: Any = [_text(text)]
    if arguments.get("image"):
        content.append(types.ImageContent(type="image", data=PIXEL, mime_type="image/png"))
    return types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=content if len(content) > 1 else content[0])],
        max_tokens=arguments.get("max_tokens", 10),
        system_prompt=arguments.get("system"),
        stop_sequences=arguments.get("stops"),
    )


def _modern_sample(params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    """Samples as the newer era has them: `times` in all, `each` at once."""
    arguments = params.arguments or {}
    answers = (params.input_responses or {}).values()
    done: list[str] = json.loads(params.request_state or "[]")
    done += [answer.model_dump_json(by_alias=True, exclude_none=True) for answer in answers]
    left = int(arguments.get("times", 1)) - len(done)
    if left <= 0:
        return _result(_text("\n".join(done)))
    asked = types.CreateMessageRequest(params=_sampled(arguments))
    at_once = min(left, int(arguments.get("each", 1)))
    requests: Any = {f"sample{len(done) + number}": asked for number in range(at_once)}
    return types.InputRequiredResult(input_requests=requests, request_state=json.dumps(done))


MODERN = {"form": _modern_form, "sample": _modern_sample}


async def call_tool(
    ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """Run one of the tools."""
    name, arguments = params.name, params.arguments or {}
    if (simple := _simple(name, arguments)) is not None:
        return simple
    if name in MODERN and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return MODERN[name](params)
    if name in ASKING:
        return await _asking(ctx, name, arguments)
    match name:
        case "breaks":
            os._exit(3)
        case "slow":
            await asyncio.Event().wait()
        case "progress":
            for done in range(3):
                await ctx.session.report_progress(done, 3.0, f"step {done}")
        case "log":
            await ctx.session.send_log_message("warning", "a line of the log", related_request_id=ctx.request_id)
        case "grow":
            EXTRA.append(f"extra{len(EXTRA)}")
            await ctx.session.send_tool_list_changed()
            await BUS.publish(ToolsListChanged())
        case _:
            pass
    return _result(_text("done"))


async def list_tools(_ctx: object, _params: object) -> types.ListToolsResult:
    """All tools."""
    names = [*SHAPES, *PLAIN, *BUSY, *ASKING, *EXTRA]
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": "Any \x1b[31mtext."}}}
    tools = [
        types.Tool(name=name, description=f"Tool {name}.", input_schema=schema, **SHAPES.get(name, {}))
        for name in names
    ]
    return types.ListToolsResult(tools=tools)


async def list_prompts(_ctx: object, _params: object) -> types.ListPromptsResult:
    """One prompt."""
    arguments = [types.PromptArgument(name="tone", required=True)]
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", description="Greets.", arguments=arguments)])


async def get_prompt(_ctx: object, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """The prompt with its argument."""
    content = _text(f"Greet in a {(params.arguments or {}).get('tone')} tone")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def list_resources(_ctx: object, _params: object) -> types.ListResourcesResult:
    """One resource."""
    return types.ListResourcesResult(resources=[types.Resource(name="a", uri="file:///a.txt", size=6)])


async def list_templates(_ctx: object, _params: object) -> types.ListResourceTemplatesResult:
    """One template."""
    template = types.ResourceTemplate(name="files", uri_template="file:///{path}")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(_ctx: object, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """The content of any resource."""
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="inside")])


async def complete(_ctx: object, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Values that begin with what was typed."""
    values = [value for value in ("warm", "wary", "cold") if value.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values))


def server() -> Server[Any]:
    """The server."""
    return Server(
        "kinds",
        version="1.0",
        instructions="Use with care.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(BUS),
    )


async def main() -> None:
    """Serve over stdio, or over HTTP on the port given."""
    made = server()
    if sys.argv[1:2] == ["http"]:
        import uvicorn  # noqa: PLC0415 - over stdio it would cost a second

        app = made.streamable_http_app(json_response="json" in sys.argv)
        config = uvicorn.Config(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="critical")
        await uvicorn.Server(config).serve()
        return
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options(NotificationOptions(tools_changed=True)))


if __name__ == "__main__":
    asyncio.run(main())
