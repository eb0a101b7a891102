// Made by Outlast for one process of pi, and loaded with --extension. It offers the tools of the run, which `outlast mcp`
// serves on its standard streams. The server inherits the environment, so no token is in this file.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const SERVER = {};
const PREFIX = "outlast_";
// pi starts without the tools rather than wait for longer.
const START_MS = 10_000;

let link;

/** The server, started again if it has ended: it keeps nothing, and finds all in the journal. */
function server() {
  if (link && !link.isGone) return link;
  const child = spawn(SERVER.command, SERVER.args, { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  const mine = (link = { child, waiting, last: 0, isGone: false });
  const gone = (why) => {
    mine.isGone = true;
    for (const { reject } of waiting.values()) reject(new Error(why));
    waiting.clear();
  };
  child.on("error", (error) => gone(`the server of the run's tools cannot be started: ${error.message}`));
  child.on("exit", () => gone("the server of the run's tools has ended; what became of the call is not known"));
  // A server that does not read has ended, and its exit says so.
  child.stdin.on("error", () => {});
  createInterface({ input: child.stdout }).on("line", (line) => {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return console.error(`outlast: the server of the run's tools said ${line.slice(0, 200)}`);
    }
    const asked = waiting.get(message.id);
    if (!asked) return;
    waiting.delete(message.id);
    if (message.error) asked.reject(new Error(message.error.message));
    else asked.resolve(message.result);
  });
  return mine;
}

/** pi ends when its input does, whether the server lives or not. While pi starts, only the server keeps it from ending. */
function release() {
  for (const it of [link.child, link.child.stdin, link.child.stdout]) it.unref?.();
}

function request(method, params, signal) {
  const mine = server();
  const { child, waiting } = mine;
  const id = ++mine.last;
  const say = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    const giveUp = () => {
      if (!waiting.delete(id)) return;
      say({ method: "notifications/cancelled", params: { requestId: id } });
      reject(new Error("the call was given up"));
    };
    if (signal?.aborted) return giveUp();
    signal?.addEventListener("abort", giveUp, { once: true });
    say({ id, method, params });
  });
}

async function call(name, input, signal) {
  const asked = request("tools/call", { name, arguments: input }, signal);
  release();
  const result = await asked;
  const content = result.content ?? [];
  // pi takes what is thrown for a failed call.
  if (result.isError) throw new Error(content.map((part) => part.text).join("\n"));
  return { content, details: undefined };
}

export default async function (pi) {
  const started = AbortSignal.timeout(START_MS);
  let hello, tools;
  try {
    const about = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "pi", version: "0" } };
    hello = await request("initialize", about, started);
    ({ tools } = await request("tools/list", {}, started));
  } catch (error) {
    link.child.stdin.end();
    console.error(`outlast: pi goes without the tools of the run: ${error.message}`);
    return;
  } finally {
    release();
  }
  for (const tool of tools) {
    pi.registerTool({
      name: PREFIX + tool.name,
      label: tool.annotations?.title ?? tool.name,
      description: tool.description,
      parameters: tool.inputSchema,
      promptGuidelines: tool.name === "report_done" ? [hello.instructions] : undefined,
      execute: (_id, input, signal) => call(tool.name, input, signal),
    });
  }
  pi.on("session_shutdown", () => link?.child.stdin.end());
}
