// The official openai package against the gateway: chat and completions, and Responses.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { gateway, run, stoppedAfter, thrown, tokens, words } from "./cases.mjs";

const client = new OpenAI({ baseURL: gateway + "/v1", apiKey: "k1", maxRetries: 0, timeout: 30_000 });
const messages = [{ role: "user", content: "hi" }];
const tools = [
  {
    type: "function",
    function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
  },
];

function chat(stream, extra = {}, fault = "") {
  const headers = fault ? { "x-sim-fault": fault } : {};
  return client.chat.completions.create({ model: "sim-model", messages, stream, ...extra }, { headers });
}

async function all(stream, chunks = []) {
  for await (const chunk of await stream) chunks.push(chunk);
  return chunks;
}

function text(chunks) {
  return chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
}

function respond(model, stream = true) {
  return client.responses.create({ model, input: "hi", stream });
}

async function errorDuring(fault, code) {
  const chunks = [];
  const error = await thrown(() => all(chat(true, { max_tokens: 50 }, fault), chunks));
  assert(error instanceof OpenAI.APIError);
  assert.equal(error.code, code);
  assert.deepEqual(words(text(chunks)), tokens(3));
}

await run({
  async stream() {
    const chunks = await all(chat(true, { max_tokens: 8 }));
    assert.deepEqual(words(text(chunks)), tokens(8));
    assert.equal(chunks.at(-1).choices[0].finish_reason, "length");
  },

  async "whole answer"() {
    const answer = await chat(false, { max_tokens: 4 });
    assert.match(answer.choices[0].message.content, /^tok0 /);
    assert.equal(answer.usage.completion_tokens, 4);
  },

  async usage() {
    const asked = await all(chat(true, { max_tokens: 5, stream_options: { include_usage: true } }));
    assert.deepEqual([asked.at(-1).choices, asked.at(-1).usage.completion_tokens], [[], 5]);
    assert((await all(chat(true, { max_tokens: 5 }))).every((chunk) => !chunk.usage));
  },

  async "tool call"() {
    const whole = (await chat(false, { tools })).choices[0].message.tool_calls[0].function;
    const pieces = (await all(chat(true, { tools }))).flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
    assert.equal(pieces[0].function.name, "weather");
    const args = pieces.map((piece) => piece.function.arguments ?? "").join("");
    assert.deepEqual(JSON.parse(args), JSON.parse(whole.arguments));
  },

  async "cancel mid-way"() {
    await stoppedAfter(async () => {
      let seen = 0;
      for await (const _ of await chat(true, { max_tokens: 5000 })) if (++seen === 4) break;
    });
  },

  async "error before the stream"() {
    const limited = await thrown(() => chat(true, {}, "status=429;retry_after=7"));
    assert(limited instanceof OpenAI.RateLimitError);
    assert.equal(limited.headers.get("retry-after"), "7");
    const unknown = await thrown(() => chat(true, { model: "no-such-model" }));
    assert.deepEqual([unknown.status, unknown.code], [404, "model_not_found"]);
  },

  async "error during the stream"() {
    await errorDuring("reset_at=3", "upstream_disconnected");
    await errorDuring("stall_at=3", "idle_timeout");
  },

  async responses() {
    const events = await all(respond("vllm-responses"));
    const deltas = events.filter((event) => event.type === "response.output_text.delta");
    assert.equal(deltas.map((event) => event.delta).join(""), "Hello there!");
    assert.equal(events.at(-1).response.usage.total_tokens, 13);
    assert.equal((await respond("vllm-responses", false)).output_text, "Hello there!");
  },

  async "responses cancel"() {
    let seen = 0;
    for await (const _ of await respond("vllm-responses@endless=9")) if (++seen === 20) break;
  },

  async "responses failed"() {
    const last = (await all(respond("vllm-responses@cut=10"))).at(-1);
    assert.deepEqual([last.type, last.sequence_number], ["response.failed", 10]);
    assert.deepEqual([last.response.id, last.response.error.code], ["resp_a1", "upstream_disconnected"]);
    const unknown = await thrown(() => respond("unknown"));
    assert.deepEqual([unknown.status, unknown.code], [404, "model_not_found"]);
  },
});
