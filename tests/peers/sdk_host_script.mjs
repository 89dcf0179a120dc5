// Runs in Node: one scenario of `@anthropic-ai/claude-agent-sdk` with Phoenix as its program.
//
// Arguments: the folder of the package, the scenario, the program, the working directory. Prints one JSON line of what
// the SDK gave its caller.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, scenario, program, folder] = process.argv.slice(2);
const found = { seen: [], errors: [] };
const from = createRequire(pathToFileURL(`${packages}/`));
const sdk = await import(pathToFileURL(from.resolve("@anthropic-ai/claude-agent-sdk")));
const common = {
  pathToClaudeCodeExecutable: program,
  cwd: folder,
  stderr: (text) => found.errors.push(text),
};

async function* prompts(...texts) {
  for (const content of texts) {
    yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null };
  }
}

async function read(messages) {
  let result = null;
  try {
    for await (const message of messages) {
      found.seen.push(message.type);
      if (message.type === "result") {
        result = message;
        Object.assign(found, { result: message.result, subtype: message.subtype, is_error: message.is_error });
      }
    }
  } catch (error) {
    found.raised = String(error.message ?? error);
  }
  return result;
}

const one = (options = {}, prompt = "Go") => read(sdk.query({ prompt, options: { ...common, ...options } }));

/** Messages that the scenario sends while it reads. */
class Line {
  #waiting = [];
  #wake = () => {};
  #ended = false;

  say(content) {
    this.#waiting.push(content);
    this.#wake();
  }

  end() {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    while (true) {
      while (this.#waiting.length) yield* prompts(this.#waiting.shift());
      if (this.#ended) return;
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }
}

async function until(stream, wanted) {
  while (true) {
    const { value, done } = await stream.next();
    if (done) throw new Error("the stream has ended");
    found.seen.push(value.type);
    if (wanted(value)) return value;
  }
}

/** The messages, with the text of the newest tool result noted. */
async function* noting(messages) {
  for await (const message of messages) {
    const content = message.type === "user" ? message.message.content : [];
    const results = Array.isArray(content) ? content.filter((block) => block.type === "tool_result") : [];
    for (const { content } of results) found.told = typeof content === "string" ? content : content[0].text;
    yield message;
  }
}

const isResult = (message) => message.type === "result";

const SCENARIOS = {
  query: () => one(),

  failure: () => one(),

  prompt: () => one({ systemPrompt: "You are a pirate.", title: "Pirates" }),

  async agents() {
    const reviewer = { description: "Reviews code", prompt: "You review.", tools: ["Read"], model: "haiku" };
    await one({ agents: { reviewer } });
  },

  async streaming() {
    const results = [];
    for await (const message of sdk.query({ prompt: prompts("one", "two"), options: common })) {
      if (isResult(message)) results.push(message.result);
    }
    found.results = results;
  },

  async partials() {
    await one({ includePartialMessages: true });
    found.has_partials = found.seen.includes("stream_event");
  },

  async permission() {
    const asked = [];
    const canUseTool = async (tool, input) => {
      asked.push([tool, input.command]);
      return { behavior: "allow", updatedInput: { ...input, command: "echo changed > made.txt" } };
    };
    await one({ canUseTool }, prompts("Go"));
    found.asked = asked;
  },

  async refusal() {
    const canUseTool = async () => ({ behavior: "deny", message: "not today", interrupt: true });
    const result = await one({ canUseTool }, prompts("Go"));
    found.stopped = result?.terminal_reason;
  },

  async hooks() {
    const calls = [];
    const note = async (input) => {
      calls.push(`${input.hook_event_name} ${input.tool_name}`);
      return input.hook_event_name === "PreToolUse"
        ? { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow" } }
        : {};
    };
    const hooks = Object.fromEntries(
      ["PreToolUse", "PostToolUse"].map((event) => [event, [{ matcher: "Bash", hooks: [note] }]]),
    );
    await one({ hooks }, prompts("Go"));
    found.calls = calls;
  },

  async server() {
    const zod = await import(pathToFileURL(from.resolve("zod")));
    const { z } = zod;
    const add = sdk.tool("add", "Add two numbers", { a: z.number(), b: z.number() }, async (args) => {
      found.args = args;
      return { content: [{ type: "text", text: `sum ${args.a + args.b}` }] };
    });
    const calc = sdk.createSdkMcpServer({ name: "calc", tools: [add] });
    await one({ mcpServers: { calc }, allowedTools: ["mcp__calc__add"] }, prompts("Go"));
  },

  async launch() {
    const mcpServers = { kinds: JSON.parse(process.env.MCP_SERVER) };
    const deliveries = ["mcpServersDelivery", "settingsDelivery", "disallowedToolsDelivery"];
    const by = Object.fromEntries(deliveries.map((name) => [name, "initialize"]));
    const settings = { permissions: { deny: ["Bash(rm:*)"] } };
    const options = { ...common, ...by, mcpServers, settings, disallowedTools: ["Write"] };
    const query = sdk.query({ prompt: prompts("Go"), options });
    const answer = query.initializationResult();
    const init = await until(query, (message) => message.subtype === "init");
    found.writes = init.tools.includes("Write");
    found.servers = init.mcp_servers.map((one) => [one.name, one.status]);
    await read(query);
    const told = await answer;
    found.applied = [told.mcp_servers_applied, told.settings_applied, told.disallowed_tools_applied];
  },

  async elicitation() {
    const mcpServers = { kinds: JSON.parse(process.env.MCP_SERVER) };
    const onElicitation = async (request) => ({ action: "accept", content: { name: `${request.message && "Ada"}` } });
    const options = { mcpServers, onElicitation, allowedTools: ["mcp__kinds__form"] };
    await read(noting(sdk.query({ prompt: prompts("Go"), options: { ...common, ...options } })));
  },

  async structured() {
    const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const result = await one({ outputFormat: { type: "json_schema", schema } });
    found.structured = result?.structured_output;
  },

  async client() {
    const line = new Line();
    const query = sdk.query({ prompt: line, options: common });
    const commands = await query.supportedCommands();
    const models = await query.supportedModels();
    line.say("one");
    found.first = (await until(query, isResult)).result;
    await query.setPermissionMode("acceptEdits");
    await query.setModel("claude-haiku-5-5");
    found.servers = await query.mcpServerStatus();
    found.model = (await query.getContextUsage()).model;
    line.say("two");
    const second = await until(query, isResult);
    Object.assign(found, { result: second.result, subtype: second.subtype, is_error: second.is_error });
    found.lists = Array.isArray(commands) && models.length > 0;
    line.end();
    await read(query);
  },

  async interruption() {
    const line = new Line();
    const query = sdk.query({ prompt: line, options: { ...common, includePartialMessages: true } });
    line.say("a long story");
    await until(query, (message) => message.type === "stream_event");
    await query.interrupt();
    found.stopped = (await until(query, isResult)).terminal_reason;
    line.say("and now?");
    const second = await until(query, isResult);
    Object.assign(found, { result: second.result, subtype: second.subtype, is_error: second.is_error });
    line.end();
    await read(query);
  },
};

await SCENARIOS[scenario]();
console.log(JSON.stringify(found));
