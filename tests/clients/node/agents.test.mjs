// The OpenAI Agents SDK for JavaScript.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { apiKey, baseURL, model, story, weather } from "./scripted.mjs";

setTracingDisabled(true);
const scripted = new OpenAIResponsesModel(new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 30_000 }), model);

test("text", async () => {
  const result = await run(new Agent({ name: "greeter", instructions: "Be kind.", model: scripted }), "Say hello.");
  assert.equal(result.finalOutput, "Hello from the script.");
});

test("stream", async () => {
  const result = await run(new Agent({ name: "teller", model: scripted }), "Tell a story.", { stream: true });
  let heard = "";
  for await (const piece of result.toTextStream()) heard += piece;
  await result.completed;
  assert.equal(heard, story);
  assert.equal(result.finalOutput, story);
});

test("function loop", async () => {
  const asked = [];
  const getWeather = tool({
    name: "get_weather",
    description: "The weather in a city, now.",
    parameters: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      asked.push(city);
      return weather[city];
    },
  });
  const agent = new Agent({ name: "forecaster", model: scripted, tools: [getWeather] });
  const result = await run(agent, "Compare the weather in Oslo and Rome.");
  assert.deepEqual(asked.sort(), ["Oslo", "Rome"]);
  assert.equal(result.finalOutput, "Rome is warmer than Oslo.");
  const again = await run(agent, [...result.history, { role: "user", content: "Say hello." }]);
  assert.equal(again.finalOutput, "Hello from the script.");
});

test("output type", async () => {
  const agent = new Agent({ name: "reader", model: scripted, outputType: z.object({ name: z.string(), born: z.number() }) });
  const result = await run(agent, "Extract the person.");
  assert.deepEqual(result.finalOutput, { name: "Ada Lovelace", born: 1815 });
});
