// The npm package openai: whole, streamed, stored, and over a WebSocket. Arguments: address, key, model.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [folder, url, key, model] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const OpenAI = require("openai").default;
const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });

const made = await client.responses.create({ model, input: "Say hello." });
assert.equal(made.output_text, "Hello.");
assert.ok(Number.isInteger(made.created_at));
let text = "";
for await (const event of await client.responses.create({ model, input: "Say hello.", stream: true })) {
  if (event.type === "response.output_text.delta") text += event.delta;
}
assert.equal(text, "Hello.");
assert.equal((await client.responses.retrieve(made.id)).output_text, "Hello.");
assert.equal((await client.responses.inputItems.list(made.id)).data[0].content[0].text, "Say hello.");
await client.responses.delete(made.id);
await assert.rejects(client.responses.retrieve(made.id), /not found/);
const background = await client.responses.create({ model, input: "Say hello.", background: true });
assert.equal((await client.responses.cancel(background.id)).id, background.id);

const { ResponsesWS } = require("openai/resources/responses/ws");
const socket = new ResponsesWS(client);
const ended = new Promise((resolve, reject) => {
  socket.on("response.completed", (event) => resolve(event.response));
  socket.on("error", reject);
});
await socket.send({ type: "response.create", model, input: "Say hello." });
assert.equal((await ended).output[0].content[0].text, "Hello.");
socket.close();
