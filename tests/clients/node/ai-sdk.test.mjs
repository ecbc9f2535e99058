// The Vercel AI SDK, through its OpenAI provider and through its Open Responses provider.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { apiKey, baseURL, model, story, weather } from "./scripted.mjs";

const providers = {
  "@ai-sdk/openai": createOpenAI({ baseURL, apiKey }).responses(model),
  "@ai-sdk/open-responses": createOpenResponses({ name: "antiphon", url: `${baseURL}/responses`, apiKey })(model),
};
const getWeather = tool({
  description: "The weather in a city, now.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => weather[city],
});

for (const [name, languageModel] of Object.entries(providers)) {
  describe(name, () => {
    const common = { model: languageModel, maxRetries: 0 };

    test("text", async () => {
      const { text, finishReason, usage } = await generateText({ ...common, prompt: "Say hello." });
      assert.equal(text, "Hello from the script.");
      assert.equal(finishReason, "stop");
      assert.ok(usage.totalTokens > 0);
    });

    test("stream", async () => {
      const pieces = [];
      for await (const piece of streamText({ ...common, prompt: "Tell a story." }).textStream) pieces.push(piece);
      assert.equal(pieces.join(""), story);
      assert.ok(pieces.length > 1);
    });

    for (const way of ["whole", "streamed"]) {
      test(`function loop, ${way}`, async () => {
        const request = { ...common, prompt: "Compare the weather in Oslo and Rome.", tools: { get_weather: getWeather }, stopWhen: stepCountIs(3) };
        const result = way === "whole" ? await generateText(request) : streamText(request);
        assert.equal(await result.text, "Rome is warmer than Oslo.");
        const steps = await result.steps;
        assert.deepEqual(steps[0].toolResults.map((result) => result.output), [weather.Oslo, weather.Rome]);
        assert.equal(steps.length, 2);
      });
    }

    test("structured output", async () => {
      const schema = z.object({ name: z.string(), born: z.number() });
      const { output } = await generateText({ ...common, prompt: "Extract the person.", output: Output.object({ schema }) });
      assert.deepEqual(output, { name: "Ada Lovelace", born: 1815 });
    });

    test("a refusal of the model is an error with its status", async () => {
      await assert.rejects(generateText({ ...common, prompt: "Be refused." }), (error) => error.statusCode === 429);
    });
  });
}

test("raw reasoning is shown by the Open Responses provider, a summary by the OpenAI one", async () => {
  const raw = await generateText({ model: providers["@ai-sdk/open-responses"], prompt: "Think it over." });
  assert.equal(raw.reasoningText, "Both sides have a point.");
  const summed = await generateText({
    model: providers["@ai-sdk/openai"],
    prompt: "Think it over.",
    providerOptions: { openai: { reasoningSummary: "auto", forceReasoning: true } },
  });
  assert.equal(summed.reasoningText, "Both sides have a point.");
  assert.equal(summed.text, "The coin stays on its edge.");
});
