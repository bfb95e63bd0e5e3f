"use strict";
// Small parts: figures as people read them, and elements that keep their place and focus from frame to frame.

const NONE = "–";
const byId = (id) => document.getElementById(id);

function make(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

// Whatever a name holds, it becomes text and nothing else.
function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function mark(node, name, value) {
  if (node.dataset[name] !== value) node.dataset[name] = value;
}

// 0, 7.2, 85, 4,210, 31.5k, 2.1M.
function count(value) {
  if (value === null || value === undefined) return NONE;
  if (value >= 999_500) return (value / 1e6).toFixed(1) + "M";
  if (value >= 9_999.5) return (value / 1e3).toFixed(1) + "k";
  if (value >= 10 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return value.toFixed(1);
}

// 0.8 ms, 48 ms, 1.25 s, 34 s.
function time(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds < 0.0095) return (seconds * 1e3).toFixed(1) + " ms";
  if (seconds < 0.9995) return Math.round(seconds * 1e3) + " ms";
  return seconds < 9.95 ? seconds.toFixed(2) + " s" : Math.round(seconds) + " s";
}

// 12 s, 4 min, 3 h 20 min, 9 d.
function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return whole + " s";
  if (whole < 5_400) return Math.round(whole / 60) + " min";
  if (whole < 172_800) return Math.floor(whole / 3_600) + " h " + Math.floor((whole % 3_600) / 60) + " min";
  return Math.round(whole / 86_400) + " d";
}

const plural = (number, word) => count(number) + " " + word + (number === 1 ? "" : "s");

// One element for each item, kept by its key, in the order of the items.
const kept = new WeakMap();
function each(parent, items, key, create, update) {
  const known = kept.get(parent) ?? new Map();
  kept.set(parent, known);
  const focused = document.activeElement;
  const now = new Map();
  let before = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const node = known.get(name) ?? create(item);
    now.set(name, node);
    update(node, item);
    if (node === before) before = before.nextElementSibling;
    else parent.insertBefore(node, before);
  }
  for (const [name, node] of known) if (!now.has(name)) node.remove();
  kept.set(parent, now);
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus();
}

const SVG = "http://www.w3.org/2000/svg";
function spark() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 60 20");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.append(document.createElementNS(SVG, "polygon"), document.createElementNS(SVG, "polyline"));
  return svg;
}

// A line of the last minute, the newest at the right.
function draw(svg, values) {
  const most = Math.max(...values, 1e-9);
  const points = values.map((value, at) => {
    const x = 60 - (values.length - 1 - at);
    return x + "," + (19 - 17 * (value / most)).toFixed(1);
  });
  const [area, line] = svg.children;
  const first = 60 - (values.length - 1);
  line.setAttribute("points", values.length > 1 ? points.join(" ") : "");
  area.setAttribute("points", values.length > 1 ? [first + ",20", ...points, "60,20"].join(" ") : "");
}
