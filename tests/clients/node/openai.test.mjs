// The official Node SDK: what it streams, parses, pages and throws.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { apiKey, baseURL, model, story, weather } from "./scripted.mjs";

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 30_000 });
const Person = z.object({ name: z.string(), born: z.number() });
const ada = { name: "Ada Lovelace", born: 1815 };
const getWeather = {
  type: "function",
  name: "get_weather",
  description: "The weather in a city, now.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
  strict: true,
};

test("text", async () => {
  const response = await client.responses.create({ model, input: "Say hello." });
  assert.equal(response.output_text, "Hello from the script.");
  assert.equal(response.status, "completed");
  assert.ok(response.usage.total_tokens > 0);
  assert.ok(response._request_id);
});

test("stream", async () => {
  const events = [];
  for await (const event of await client.responses.create({ model, input: "Tell a story.", stream: true })) events.push(event);
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, index) => index));
  const deltas = events.filter((event) => event.type === "response.output_text.delta").map((event) => event.delta);
  assert.equal(deltas.join(""), story);
  assert.ok(deltas.length > 1);
  assert.equal(events.at(-1).type, "response.completed");
});

test("stream helper", async () => {
  const stream = client.responses.stream({ model, input: "Tell a story." });
  let heard = "";
  stream.on("response.output_text.delta", (event) => (heard += event.delta));
  const final = await stream.finalResponse();
  assert.equal(final.output_text, story);
  assert.equal(heard, story);
});

test("stream helper with reasoning, raw and summed up", async () => {
  for (const reasoning of [undefined, { summary: "auto" }]) {
    const final = await client.responses.stream({ model, input: "Think it over.", reasoning }).finalResponse();
    assert.deepEqual(final.output.map((item) => item.type), ["reasoning", "message"]);
    const [thought] = final.output;
    assert.equal((reasoning ? thought.summary : thought.content)[0].text, "Both sides have a point.");
  }
});

test("parse", async () => {
  const text = { format: zodTextFormat(Person, "person") };
  const response = await client.responses.parse({ model, input: "Extract the person.", text });
  assert.deepEqual(response.output_parsed, ada);
  const streamed = await client.responses.stream({ model, input: "Extract the person.", text }).finalResponse();
  assert.deepEqual(streamed.output_parsed, ada);
});

test("function loop", async () => {
  const input = [{ role: "user", content: "Compare the weather in Oslo and Rome." }];
  const first = await client.responses.stream({ model, input, tools: [getWeather] }).finalResponse();
  const calls = first.output.filter((item) => item.type === "function_call");
  assert.deepEqual(calls.map((call) => JSON.parse(call.arguments).city), ["Oslo", "Rome"]);
  const outputs = calls.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: weather[JSON.parse(call.arguments).city] }));
  const chained = await client.responses.create({ model, previous_response_id: first.id, input: outputs, tools: [getWeather] });
  assert.equal(chained.output_text, "Rome is warmer than Oslo.");
  const byHand = await client.responses.create({ model, input: [...input, ...first.output, ...outputs], tools: [getWeather], store: false });
  assert.equal(byHand.output_text, "Rome is warmer than Oslo.");
});

test("retrieve, input items, delete", async () => {
  const said = ["one", "two", "three"];
  const made = await client.responses.create({ model, input: said.map((content) => ({ role: "user", content })) });
  assert.equal((await client.responses.retrieve(made.id)).output_text, made.output_text);
  const texts = [];
  for await (const item of client.responses.inputItems.list(made.id, { order: "asc", limit: 2 })) texts.push(item.content[0].text);
  assert.deepEqual(texts, said);
  await client.responses.delete(made.id);
  await assert.rejects(client.responses.retrieve(made.id), OpenAI.NotFoundError);
});

test("conversation", async () => {
  const talk = await client.conversations.create({ metadata: { topic: "hello" } });
  await client.responses.create({ model, conversation: talk.id, input: "Say hello." });
  const roles = [];
  for await (const item of client.conversations.items.list(talk.id, { order: "asc", limit: 1 })) roles.push(item.role);
  assert.deepEqual(roles, ["user", "assistant"]);
  await client.conversations.delete(talk.id);
  await assert.rejects(client.conversations.retrieve(talk.id), OpenAI.NotFoundError);
});

test("what goes wrong", async () => {
  await assert.rejects(client.responses.create({ model, input: "Say hello.", temperature: 3 }), (error) => error instanceof OpenAI.BadRequestError && error.param === "temperature");
  await assert.rejects(client.responses.create({ model, input: "Be refused." }), OpenAI.RateLimitError);
  await assert.rejects(client.responses.stream({ model, input: "Break off." }).finalResponse(), OpenAI.APIError);
  const cut = await client.responses.create({ model, input: "Run out of tokens." });
  assert.equal(cut.incomplete_details.reason, "max_output_tokens");
});
