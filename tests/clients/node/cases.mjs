// What the scripts share.
//
// Usage of each script: NAME_cases.mjs GATEWAY_URL ENGINE_URL. Prints one line a case; any failure ends with
// status 1.

import assert from "node:assert/strict";

export const [gateway, engine] = process.argv.slice(2);

async function stats() {
  return (await fetch(engine + "/sim/stats")).json();
}

// What is done makes the simulated engine stop one request, at once.
export async function stoppedAfter(act) {
  const before = (await stats()).aborted;
  await act();
  const deadline = Date.now() + 10_000;
  for (let now = await stats(); now.aborted !== before + 1 || now.running !== 0; now = await stats()) {
    assert(Date.now() < deadline, JSON.stringify(now));
  }
  assert.equal((await stats()).tokens_after_close, 0);
}

// The error that is thrown by what is done.
export async function thrown(act) {
  try {
    await act();
  } catch (error) {
    return error;
  }
  throw new assert.AssertionError({ message: "nothing was thrown" });
}

export function words(text) {
  return text.match(/tok\d+/g) ?? [];
}

export function tokens(count) {
  return Array.from({ length: count }, (_, n) => `tok${n}`);
}

export async function run(cases) {
  for (const [name, act] of Object.entries(cases)) {
    try {
      await act();
      console.log(`ok: ${name}`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`failed: ${name}: ${error?.stack ?? error}`);
    }
  }
}
