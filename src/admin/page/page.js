
// What a frame looks like.

const WORDS = {
  out: "out", draining: "draining", drained: "drained", drain_in_file: "drained by the file", removed: "removed",
};

function show(view) {
  gateway(view);
  verdict(view);
  tiles(view);
  clusters(view);
  routes(view);
  failures(view);
}

function gateway({ gateway }) {
  const parts = [gateway.state, "up " + span(gateway.uptime_seconds), "generation " + gateway.generation,
    plural(gateway.connections, "connection"), "version " + gateway.version];
  say(byId("gateway"), parts.join("  ·  "));
  const last = gateway.last_reload;
  const when = span(gateway.unix_ms / 1e3 - last.unix_seconds) + " ago";
  const read = last.cause === "start" ? "read at the start, " + when : "last read " + when + " (" + last.cause + "): " + last.result;
  say(byId("file"), (gateway.file ?? "the demonstration's own configuration") + "  ·  " + read);
}

function verdict({ problems, totals, clusters }) {
  const bad = problems.filter((problem) => problem.level !== "notice");
  const level = bad.length ? bad[0].level : "ok";
  mark(document.body, "level", level);
  const headline = bad.length ? plural(bad.length, "problem") : clusters.length ? "All well" : "Fixed answers only";
  say(byId("headline"), headline);
  document.title = (bad.length ? headline : "ok") + " · streamgate";
  const sum = (figure) => clusters.reduce((sum, cluster) => sum + cluster[figure], 0);
  const failed = totals.failed ? count(totals.failed) + " failed" : "nothing failed";
  const serving = clusters.length ? `${sum("up")} of ${plural(sum("of"), "backend")} serving` : "no engines are configured";
  say(byId("gist"), `${serving}, ${failed} in the last ${span(totals.window_seconds)}`);
  each(byId("problems"), problems, (problem) => problem.what + "\n" + problem.why,
    () => make("li", "", make("i", "dot"), make("b"), make("span")),
    (row, problem) => {
      mark(row, "level", problem.level);
      say(row.children[1], problem.what);
      say(row.children[2], problem.why);
    });
}

function tiles({ totals, history, clusters }) {
  const share = totals.requests ? (100 * totals.failed) / totals.requests : 0;
  const inFlight = clusters.reduce((sum, cluster) => sum + cluster.in_flight, 0);
  const list = [
    ["Streams", count(totals.streams), plural(inFlight, "attempt") + " in flight"],
    ["Tokens a second", count(totals.tokens_per_second), "", history.tokens_per_second],
    ["Requests a second", count(totals.requests_per_second), "", history.requests_per_second],
    ["Failed", count(totals.failed), `of ${count(totals.requests)} in ${span(totals.window_seconds)}`,
      history.failed_per_second, share >= 20 ? "critical" : totals.failed ? "warning" : "ok"],
    ["First token, p50", time(totals.first_token.p50), "p99 " + time(totals.first_token.p99)],
    ["Between tokens, p50", time(totals.gap.p50), "p99 " + time(totals.gap.p99)],
    ["Waiting for a slot", count(totals.waiting), totals.refused ? count(totals.refused) + " refused" : "none refused", null,
      totals.waiting ? "warning" : "ok"],
    ["Left early", count(totals.cancels), "≈ " + count(totals.tokens_saved) + " tokens saved"],
  ];
  each(byId("tiles"), list, ([name]) => name,
    ([name, , , series]) => {
      const tile = make("div", "tile" + (name === "Failed" ? " bad" : ""), make("h3", "", name), make("p", "value"), make("p", "more"));
      if (series) tile.prepend(spark());
      return tile;
    },
    (tile, [, value, more, series, level]) => {
      mark(tile, "level", level ?? "ok");
      say(tile.querySelector(".value"), value);
      say(tile.querySelector(".more"), more);
      if (series) draw(tile.querySelector("svg"), series);
    });
}

function clusters({ clusters }) {
  const all = clusters.reduce((sum, cluster) => sum + cluster.backends.length, 0);
  byId("find").hidden = all < 9;
  each(byId("list"), clusters, (cluster) => cluster.name, newCluster, showCluster);
}

function newCluster(cluster) {
  const heads = [["Backend"], ["State", "state"], ["In flight", "load"], ["Tokens/s", "rate"], ["First token", "first"],
    ["Gap", "gap"], ["Engine", "engine"], ["", "action"]];
  const head = make("tr", "", ...heads.map(([text, name]) => {
    const cell = make("th", name ?? "", text);
    cell.scope = "col";
    return cell;
  }));
  return make("section", "panel cluster",
    make("h2", "", make("b", "", cluster.name), make("span", "up"), make("span", "sum")),
    make("div", "strip"), make("table", "", make("thead", "", head), make("tbody")), make("p", "quiet"));
}

function showCluster(panel, cluster) {
  const up = panel.querySelector(".up");
  say(up, `${cluster.up} of ${cluster.of} serving`);
  mark(up, "level", cluster.up === 0 ? "critical" : cluster.up < cluster.of ? "warning" : "ok");
  const facts = [count(cluster.in_flight) + " in flight", count(cluster.tokens_per_second) + " tokens/s"];
  if (cluster.waiting) facts.push(count(cluster.waiting) + " waiting");
  if (cluster.discover) facts.push("found by " + cluster.discover);
  say(panel.querySelector(".sum"), facts.join("  ·  "));
  const many = cluster.backends.length > 8;
  panel.querySelector(".strip").hidden = !many;
  each(panel.querySelector(".strip"), many ? cluster.backends : [], (backend) => backend.name,
    () => make("i"), (cell, backend) => {
      mark(cell, "level", backend.level);
      cell.title = backend.name + ": " + backend.state;
    });
  const wanted = byId("filter").value.trim().toLowerCase();
  const rows = cluster.backends.filter((backend) =>
    `${backend.name} ${backend.address} ${backend.state}`.toLowerCase().includes(wanted));
  const widest = Math.max(1, ...cluster.backends.map((backend) => backend.in_flight));
  each(panel.querySelector("tbody"), rows, (backend) => backend.name,
    (backend) => newBackend(cluster, backend), (row, backend) => showBackend(row, backend, cluster, widest));
  const hidden = cluster.of - cluster.backends.length;
  say(panel.querySelector("p"), hidden > 0 ? `${count(hidden)} more that serve are not shown` : "");
}

function newBackend(cluster, backend) {
  const button = make("button", "small");
  button.type = "button";
  button.addEventListener("click", () => drain(cluster.name, backend.name, button));
  const cells = [make("td", "name", make("i", "dot"), make("b", "", backend.name), make("span", "dim at")), make("td", "state"),
    make("td", "load", make("span", "meter", make("i")), make("span", "of")), make("td"), pair(), pair("gap"),
    make("td", "engine"), make("td", "action", button)];
  return make("tr", "", ...cells);
}

const pair = (name) => make("td", name, make("span"), make("span", "dim p99"));

function showBackend(row, backend, cluster, widest) {
  const [name, state, load, tokens, first, gap, engine, action] = row.children;
  mark(row, "level", backend.level);
  mark(name, "level", backend.level);
  say(name.lastChild, backend.address === backend.name ? "" : backend.address);
  name.lastChild.title = backend.address;
  say(state, stateOf(backend));
  state.title = backend.health;
  const of = backend.max_inflight ?? widest;
  load.firstChild.firstChild.style.width = Math.min(100, (100 * backend.in_flight) / of) + "%";
  load.firstChild.classList.toggle("full", backend.max_inflight !== null && backend.in_flight >= backend.max_inflight);
  say(load.lastChild, count(backend.in_flight) + (backend.max_inflight === null ? "" : " / " + backend.max_inflight));
  say(tokens, count(backend.tokens_per_second));
  showPair(first, backend.first_token, cluster.first_token);
  showPair(gap, backend.gap, cluster.gap);
  say(engine, backend.engine ? figuresOf(backend.engine) : NONE);
  engine.classList.toggle("dim", backend.engine?.is_old ?? true);
  const button = action.firstChild;
  button.hidden = !canAct() || ["removed", "drain_in_file"].includes(backend.state);
  say(button, backend.drained ? "Undrain" : "Drain");
  button.setAttribute("aria-label", button.textContent + " " + cluster.name + "/" + backend.name);
  mark(button, "inFlight", String(backend.in_flight));
}

// What is old may not be so any more.
function figuresOf({ running, waiting, kv_usage: kv, age_seconds: age, is_old: old }) {
  const figures = [running + " run", waiting ? waiting + " wait" : "", kv === null ? "" : `KV ${Math.round(kv * 100)}%`, old ? span(age) + " ago" : ""];
  return figures.filter(Boolean).join(" · ");
}

// One that is much slower than its neighbours stands out.
function showPair(cell, own, all) {
  say(cell.firstChild, time(own.p50));
  cell.firstChild.classList.toggle("slow", own.p50 !== null && all.p50 !== null && own.p50 > 2.5 * all.p50);
  say(cell.lastChild, own.p99 === null ? "" : " / " + time(own.p99));
}

function stateOf(backend) {
  // The whole of it stands among the problems.
  if (backend.state === "out") return backend.health.split(":")[0];
  if (backend.state !== "serving") return WORDS[backend.state] ?? backend.state;
  if (backend.rests_seconds !== null) return "rests for " + span(backend.rests_seconds);
  if (backend.level !== "ok") return backend.health.split(":")[0];
  return backend.share < 1 ? `back, at ${Math.round(backend.share * 100)}%` : "serving";
}

function routes({ routes, cancels }) {
  const busy = routes.filter((route) => route.requests || route.streams);
  each(byId("routes"), busy.length ? busy : routes, (route) => route.name,
    (route) => make("tr", "", make("td", "", route.name), make("td"), make("td"), make("td"), pair(), pair()),
    (row, route) => {
      const [, streams, rate, failed, first, gap] = row.children;
      say(streams, count(route.streams));
      say(rate, count(route.requests_per_second));
      say(failed, count(route.failed));
      failed.className = route.failed ? "wrong" : "";
      showPair(first, route.first_token, route.first_token);
      showPair(gap, route.gap, route.gap);
    });
  const left = cancels.map(({ phase, count: number }) => `${count(number)} in ${phase}`);
  say(byId("cancels"), left.length ? "Clients left: " + left.join(", ") : "");
}

function failures({ failures, gateway }) {
  const theirs = failures.filter((failure) => failure.side === "client");
  const ours = failures.filter((failure) => failure.side !== "client");
  byId("no-failures").hidden = ours.length > 0;
  listFailures(byId("failures"), ours, gateway.unix_ms);
  const refused = byId("refused");
  refused.hidden = theirs.length === 0;
  const times = theirs.reduce((sum, failure) => sum + failure.times, 0);
  say(refused.firstChild, plural(times, "exchange") + " ended by what clients did");
  listFailures(refused.lastChild, theirs, gateway.unix_ms);
}

function listFailures(list, items, now) {
  each(list, items, (one) => [one.route, one.cluster, one.backend, one.status, one.outcome, one.code].join("\n"),
    () => make("li", "", make("i", "dot"), make("span", "why"), make("span", "when"), make("span", "facts", make("b"), make("span"))),
    (row, one) => {
      // What is long over is no alarm any more.
      mark(row, "level", now - one.unix_ms > 120_000 ? "notice" : one.side === "client" ? "notice" : "critical");
      say(row.children[1], one.why ?? one.code ?? one.outcome);
      say(row.children[2], span((now - one.unix_ms) / 1e3) + " ago" + (one.times > 1 ? ", ×" + count(one.times) : ""));
      const [where, rest] = row.children[3].children;
      say(where, one.backend ? one.cluster + "/" + one.backend : one.cluster ?? one.route ?? "gateway");
      say(rest, [" ", one.status || "no status", one.code ?? one.outcome, one.route ?? "no route", one.request_id].join("  ·  ").slice(2));
    });
}
