// What an agent does with the tools of its run, by the official SDK of TypeScript.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const kept = {};

async function connected(story) {
  const client = new Client({ name: "story", version: "1" });
  const env = { ...process.env };
  await client.connect(new StdioClientTransport({ command: process.env.OUTLAST, args: ["mcp"], env }));
  const call = async (name, args = {}, options = {}) => {
    const result = await client.callTool({ name, arguments: args }, undefined, options);
    assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
    return result.structuredContent;
  };
  await story(client, call);
  await client.close();
}

const lines = "for i in 1 2 3; do echo line $i; sleep 0.2; done; sleep 1; exit 4";

await connected(async (client, call) => {
  assert.match(client.getInstructions(), /report_done/);
  const { tools } = await client.listTools();
  for (const tool of tools) {
    assert.equal(tool.inputSchema.type, "object");
    assert.ok(tool.description && tool.annotations, tool.name);
  }
  const started = await call("proc_start", { name: "three", key: "three", command: lines });
  kept.three = started.id;
  let [text, cursor] = ["", 0];
  while (text.split("\n").length < 3) {
    const read = await call("proc_read", { id: started.id, cursor });
    [text, cursor] = [text + read.text, read.cursor];
  }
  [kept.text, kept.cursor] = [text, cursor];
  kept.child = (await call("run_spawn", { key: "child", command: "echo from the child" })).id;
  const made = await call("call", { key: "once", command: "echo made >>$SCRATCH/made; echo result" });
  assert.equal(made.stdout, "result\n");
  // The connection is lost here.
});

await connected(async (client, call) => {
  const again = await call("proc_start", { name: "three", key: "three", command: lines });
  assert.deepEqual([again.id, again.existed], [kept.three, true]);
  const waited = await call("proc_wait", { id: "three", cursor: kept.cursor });
  assert.deepEqual(waited.exit, { code: 4 });
  assert.equal(kept.text + waited.text, "line 1\nline 2\nline 3\n");
  assert.equal((await call("run_wait", { id: "child" })).state, "completed");
  assert.equal((await call("run_result", { id: kept.child })).last_output, "from the child\n");
  const made = await call("call", { key: "once", command: "echo made >>$SCRATCH/made; echo result" });
  assert.deepEqual([made.stored, made.stdout], [true, "result\n"]);
  assert.equal(readFileSync(`${process.env.SCRATCH}/made`, "utf8"), "made\n");
  const refused = await client.callTool({ name: "call", arguments: { key: "once", command: "echo other" } });
  assert.ok(refused.isError && refused.content[0].text.includes("key_conflict"));
  // A client that hears of progress gives the call its whole time again.
  const slow = await call("proc_start", { name: "slow", command: "sleep 12" });
  let heard = 0;
  const options = { timeout: 11000, resetTimeoutOnProgress: true, onprogress: () => { heard += 1; } };
  const end = await call("proc_wait", { id: slow.id }, options);
  assert.ok(!end.timed_out && heard >= 1, JSON.stringify([end, heard]));
  await call("report_done", { summary: "all is done" });
});
console.log("the story is told");
