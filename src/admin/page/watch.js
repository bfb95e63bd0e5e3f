
// The connection, the token, and what an operator does.

const LATE_MS = 3_500;
let token = sessionStorage.getItem("token") ?? "";
let last = null;
let heard = 0;
let reading = null;

const canAct = () => Boolean(token && last && last.gateway.acts);
const authorization = () => (token ? { authorization: "Bearer " + token } : {});

// Reads events until the gateway ends them; says why it will not send any.
async function watch(signal) {
  const answer = await fetch("/live/events", { headers: authorization(), signal, cache: "no-store" });
  if (answer.status === 401) return wantToken(token ? "That was not it." : "");
  if (!answer.ok) return say(byId("said"), "The gateway refuses: " + (await answer.text()).trim());
  const chunks = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { done, value } = await chunks.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    const newest = events.pop();
    if (newest) frame(JSON.parse(newest.replace(/^data: /, "")));
  }
}

function frame(view) {
  last = view;
  heard = performance.now();
  byId("token").hidden = !view.gateway.acts;
  say(byId("token"), token ? "Forget token" : "Give token");
  byId("reload").hidden = !canAct();
  fresh();
  show(view);
}

async function keepWatching() {
  for (let wait = 500; ; wait = Math.min(wait * 2, 5_000)) {
    const before = heard;
    reading = new AbortController();
    try {
      await watch(reading.signal);
    } catch (error) {
      console.debug("the events ended:", error);
    }
    if (heard !== before) wait = 500;
    await new Promise((over) => setTimeout(over, wait));
  }
}

// Old figures must not pass for new ones.
function fresh() {
  const late = performance.now() - heard;
  const stale = last !== null && late > LATE_MS;
  if (stale) say(byId("said"), `No word from the gateway for ${span(late / 1e3)}: what is below is as it was then.`);
  else if (document.body.classList.contains("stale")) say(byId("said"), "");
  document.body.classList.toggle("stale", stale);
}
setInterval(fresh, 1_000);

function wantToken(why) {
  if (byId("ask").open || byId("ask").dataset.refused === "yes") return;
  say(byId("ask-why"), why);
  byId("ask-token").value = "";
  byId("ask").returnValue = "no";
  byId("ask").showModal();
}

// Not a button of the form: the first of these is what Enter in its field means.
byId("ask-no").addEventListener("click", () => byId("ask").close("no"));
byId("ask").addEventListener("close", () => {
  const given = byId("ask").returnValue === "yes" ? byId("ask-token").value.trim() : "";
  byId("ask").dataset.refused = given ? "no" : "yes";
  if (!given && !last) say(byId("said"), "The gateway wants a token: reload the page to give it.");
  if (given) setToken(given);
});

function setToken(value) {
  token = value;
  if (value) sessionStorage.setItem("token", value);
  else sessionStorage.removeItem("token");
  // The next frame is asked for with it.
  reading?.abort();
}

byId("token").addEventListener("click", () => {
  if (token) return setToken("");
  byId("ask").dataset.refused = "no";
  wantToken("");
});

function confirmed(head, text, yes) {
  const dialog = byId("confirm");
  say(byId("confirm-head"), head);
  say(byId("confirm-text"), text);
  say(byId("confirm-yes"), yes);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((answer) => {
    const closed = () => {
      // The event comes late: it may be that of the dialog before.
      if (dialog.open) return;
      dialog.removeEventListener("close", closed);
      answer(dialog.returnValue === "yes");
    };
    dialog.addEventListener("close", closed);
  });
}

async function act(path, told) {
  try {
    const answer = await fetch(path, { method: "POST", headers: authorization() });
    const text = await answer.text();
    say(byId("said"), answer.ok ? told(JSON.parse(text)) : "Refused: " + text.trim().slice(0, 600));
  } catch (error) {
    say(byId("said"), "The gateway did not answer: " + error.message);
  }
}

async function drain(cluster, name, button) {
  const drained = button.textContent === "Undrain";
  const verb = drained ? "Undrain" : "Drain";
  const what = drained ? "It gets its share of the work again." :
    `It gets no new work. The ${button.dataset.inFlight} in flight on it go on to their end. Undrain takes it back.`;
  if (!(await confirmed(`${verb} ${cluster}/${name}?`, what, verb))) return;
  const path = [verb.toLowerCase(), cluster, name].map(encodeURIComponent).join("/");
  await act("/" + path, (backend) => `${cluster}/${name} is ${WORDS[backend.state] ?? backend.state}.`);
}

byId("reload").addEventListener("click", async () => {
  const file = last.gateway.file ?? "the configuration";
  if (!(await confirmed("Read the file again?", `${file} is put in force if it is sound. Running streams keep what they began with.`, "Reload"))) return;
  await act("/reload", (answer) => `The file was read: ${answer.result}, generation ${answer.generation}.`);
});

const THEMES = ["auto", "dark", "light"];
function theme(name) {
  document.documentElement.dataset.theme = name;
  say(byId("theme"), "Theme: " + name);
  localStorage.setItem("theme", name);
}
function nextTheme() {
  theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
}
byId("theme").addEventListener("click", nextTheme);

byId("filter").addEventListener("input", () => last && show(last));
document.addEventListener("keydown", (event) => {
  const writing = event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey;
  if (event.key === "Escape" && event.target === byId("filter")) {
    byId("filter").value = "";
    byId("filter").blur();
    if (last) show(last);
  } else if (writing || document.querySelector("dialog[open]")) return;
  else if (event.key === "/" && !byId("find").hidden) {
    event.preventDefault();
    byId("filter").focus();
  } else if (event.key === "t") nextTheme();
});

theme(THEMES.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "auto");
keepWatching();
