// The AI SDK against the gateway: any OpenAI-compatible server, and Responses.

import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, tool } from "ai";
import { z } from "zod";
import { gateway, run, stoppedAfter, thrown, tokens, words } from "./cases.mjs";

const options = { baseURL: gateway + "/v1", apiKey: "k1" };
const compatible = createOpenAICompatible({ name: "gateway", ...options });
const usual = createOpenAICompatible({ name: "gateway", includeUsage: true, ...options });
const openai = createOpenAI(options);
const weather = tool({ description: "The weather", inputSchema: z.object({ city: z.string() }).partial() });

function ask(model, extra = {}, fault = "") {
  const headers = fault ? { "x-sim-fault": fault } : {};
  return { model, prompt: "hi", maxRetries: 0, headers, ...extra };
}

// Every part of a stream, and its text. An error is a part, so it need not be printed as well.
async function parts(request) {
  const all = [];
  for await (const part of streamText({ ...request, onError() {} }).fullStream) all.push(part);
  const text = all.filter((part) => part.type === "text-delta").map((part) => part.text).join("");
  return { all, text, error: all.find((part) => part.type === "error")?.error };
}

async function errorDuring(fault, code) {
  const { text, error } = await parts(ask(compatible("sim-model"), { maxOutputTokens: 50 }, fault));
  assert.deepEqual(words(text), tokens(3));
  assert.equal(error.code, code);
}

await run({
  async stream() {
    const { text, all } = await parts(ask(compatible("sim-model"), { maxOutputTokens: 8 }));
    assert.deepEqual(words(text), tokens(8));
    assert.equal(all.at(-1).finishReason, "length");
  },

  async "whole answer"() {
    const answer = await generateText(ask(compatible("sim-model"), { maxOutputTokens: 4 }));
    assert.match(answer.text, /^tok0 /);
    assert.equal(answer.usage.outputTokens, 4);
  },

  async usage() {
    const used = async (model) =>
      (await parts(ask(model, { maxOutputTokens: 5 }))).all.at(-1).totalUsage.outputTokens;
    assert.equal(await used(usual("sim-model")), 5);
    assert.equal(await used(compatible("sim-model")), undefined, "usage that nobody asked for");
  },

  async "tool call"() {
    const request = ask(compatible("sim-model"), { tools: { weather } });
    const [whole] = (await generateText(request)).toolCalls;
    const call = (await parts(request)).all.find((part) => part.type === "tool-call");
    assert.deepEqual([call.toolName, call.input], ["weather", whole.input]);
  },

  async "cancel mid-way"() {
    await stoppedAfter(async () => {
      const leaving = new AbortController();
      const request = ask(compatible("sim-model"), { maxOutputTokens: 5000, abortSignal: leaving.signal });
      let seen = 0;
      for await (const part of streamText(request).fullStream) {
        if (part.type === "text-delta" && ++seen === 4) leaving.abort();
      }
    });
  },

  async "error before the stream"() {
    const limited = (await parts(ask(compatible("sim-model"), {}, "status=429"))).error;
    assert.equal(limited.statusCode, 429);
    const unknown = await thrown(() => generateText(ask(compatible("no-such-model"))));
    assert.deepEqual([unknown.statusCode, unknown.data.error.code], [404, "model_not_found"]);
  },

  async "error during the stream"() {
    await errorDuring("reset_at=3", "upstream_disconnected");
    await errorDuring("stall_at=3", "idle_timeout");
  },

  async responses() {
    const { text, all } = await parts(ask(openai.responses("vllm-responses")));
    assert.equal(text, "Hello there!");
    assert.deepEqual([all.at(-1).totalUsage.inputTokens, all.at(-1).totalUsage.outputTokens], [7, 6]);
    assert.equal((await generateText(ask(openai.responses("vllm-responses")))).text, "Hello there!");
  },

  async "responses tool call"() {
    const { all } = await parts(ask(openai.responses("vllm-responses-tool-call"), { tools: { weather } }));
    const call = all.find((part) => part.type === "tool-call");
    assert.deepEqual([call.toolName, call.input], ["weather", { city: "Paris" }]);
  },

  async "responses cancel"() {
    const leaving = new AbortController();
    const request = ask(openai.responses("vllm-responses@endless=9"), { abortSignal: leaving.signal });
    for await (const part of streamText(request).fullStream) if (part.type === "text-delta") leaving.abort();
  },

  async "responses failed"() {
    const { text, error } = await parts(ask(openai.responses("vllm-responses@cut=10")));
    assert.equal(text, "Hello there");
    assert.equal(error.code, "upstream_disconnected");
  },
});
