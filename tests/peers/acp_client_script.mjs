// Runs in Node: one scenario of the client side of `@agentclientprotocol/sdk` with `phoenix acp` as the agent.
//
// Arguments: the folder of the package, the scenario, the program, the working directory. Prints one JSON line of what
// the client saw. The package checks every message against the schema of its version.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [packages, scenario, program, folder] = process.argv.slice(2);
const from = createRequire(pathToFileURL(`${packages}/`));
const acp = await import(pathToFileURL(from.resolve("@agentclientprotocol/sdk")));
const { methods } = acp;
const found = { text: "", kinds: [], asked: 0, read: 0 };
const choice = { approve: "allow_once", deny: "reject_once" }[scenario] ?? "allow_once";

const agent = spawn(program, [], { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const editor = acp
  .client({ name: "tests" })
  .onRequest(methods.client.session.requestPermission, (request) => {
    found.asked += 1;
    const { options } = request.params ?? request;
    return { outcome: { outcome: "selected", optionId: options.find((one) => one.kind === choice).optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, () => {
    found.read += 1;
    return { content: "unsaved\n" };
  })
  .onNotification(methods.client.session.update, (notification) => {
    const { update } = notification.params ?? notification;
    found.kinds.push(update.sessionUpdate);
    if (update.sessionUpdate === "agent_message_chunk") found.text += update.content.text;
  });

await editor.connectWith(stream, async (ctx) => {
  const fs = { readTextFile: true, writeTextFile: false };
  const info = await ctx.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: { fs } });
  const begun = await ctx.request(methods.agent.session.new, { cwd: folder, mcpServers: [] });
  const { sessionId } = begun;
  const prompt = { sessionId, prompt: [{ type: "text", text: "Go" }] };
  const answer = ctx.request(methods.agent.session.prompt, prompt);
  if (scenario === "cancel") {
    while (!found.text) await new Promise((resolve) => setTimeout(resolve, 20));
    await ctx.notify(methods.agent.session.cancel, { sessionId });
  }
  found.stopped = (await answer).stopReason;
  found.version = info.protocolVersion;
  if (scenario === "mode") {
    await ctx.request(methods.agent.session.setMode, { sessionId, modeId: "plan" });
    const { configOptions } = await ctx.request(methods.agent.session.setConfigOption, {
      sessionId,
      configId: "mode",
      value: "accept-edits",
    });
    found.mode = configOptions.find((one) => one.id === "mode").currentValue;
    await ctx.request(methods.agent.session.load, { sessionId, cwd: folder, mcpServers: [] });
    const { sessions } = await ctx.request(methods.agent.session.list, {});
    found.listed = sessions.some((one) => one.sessionId === sessionId);
  }
});
const ended = new Promise((resolve) => agent.once("exit", resolve));
agent.stdin.end();
await ended;
found.kinds = [...new Set(found.kinds)].sort();
console.log(JSON.stringify(found));
process.exit(0);
