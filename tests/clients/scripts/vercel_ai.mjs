// A text, a stream and a tool through the Vercel AI SDK's Responses provider.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, url, key, model] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { generateText, isStepCount, jsonSchema, stepCountIs, streamText, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");

const served = createOpenAI({ baseURL: url, apiKey: key }).responses(model);

const whole = await generateText({ model: served, prompt: "Hi." });
assert.equal(whole.text, "Hello.");
assert.equal(whole.finishReason, "stop");

const streamed = streamText({ model: served, prompt: "Hi." });
let text = "";
for await (const delta of streamed.textStream) text += delta;
assert.equal(text, "Hello.");

let path = "";
const read_file = tool({
  description: "Reads a file.",
  inputSchema: jsonSchema({
    type: "object",
    properties: { path: { type: "string" } },
    required: ["path"],
    additionalProperties: false,
  }),
  execute: async (input) => {
    path = input.path;
    return "print(1)";
  },
});
const worked = await generateText({
  model: served,
  prompt: "What does a.py print?",
  tools: { read_file },
  stopWhen: (isStepCount ?? stepCountIs)(3),
});
assert.equal(path, "a.py");
assert.equal(worked.text, "It prints 1.");
