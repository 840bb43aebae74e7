// The script of a report: the picture of the tree moves, nodes tell what they are, and a row finds its leaf.
// Text from the data reaches the page by textContent alone.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const data = JSON.parse(document.getElementById("data").textContent);
const stage = document.getElementById("stage");
const tree = stage.querySelector(".wide"); // the picture that moves
const world = tree.querySelector(".world");
const details = document.getElementById("details");
const nodes = data.nodes;
// By node, what is drawn of it in each picture.
const drawn = nodes.map((_, index) => [...stage.querySelectorAll(`[data-node="${index}"]`)]);
const narrow = matchMedia("(max-width: 900px)");

nodes.forEach((node) => (node.parent = -1));
nodes.forEach((node, index) => {
  for (const child of [node.left, node.right]) if (child >= 0) nodes[child].parent = index;
});

// An element with attributes and content; content is text or elements.
function make(tag, attributes = {}, ...content) {
  const svg = tag === "svg" || tag === "rect";
  const made = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

// ---------------------------------------------------------------- values of a row

const NANOSECONDS = { day: 86400000000000n, hour: 3600000000000n, minute: 60000000000n, second: 1000000000n };
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const WHOLE = /^[+-]?\d+$/;
const DAY = /(-?\d{4,6})-(\d\d)-(\d\d)/.source;
const CLOCK = /(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?/.source;
const ZONE = /(Z|[+-]\d\d:?\d\d(?::?\d\d)?)/.source;
const INSTANT = new RegExp(`^${DAY}(?:[T ]${CLOCK})?\\s*${ZONE}?$`, "i");
const DURATION = /^([+-])?\s*(?:(\d+)\s*(?:d|days?)\b)?\s*(?:([+])?\s*(\d+):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?$/i;

class Unreadable extends Error {}

// A number: whole ones without point or exponent exactly, others as the nearest double, as Python reads them.
function readNumber(text) {
  if (!NUMBER.test(text)) throw new Unreadable("This is not a number. Write it with digits and a decimal point.");
  if (WHOLE.test(text)) {
    if (!Number.isFinite(Number(text))) throw new Unreadable("This number is too large.");
    return BigInt(text.replace("+", ""));
  }
  const number = Number(text);
  if (!Number.isFinite(number)) throw new Unreadable("This number is too large.");
  return number;
}

function fraction(digits) {
  return BigInt((digits ?? "").padEnd(9, "0"));
}

// Nanoseconds since 1970, of UTC where there is a zone.
function readInstant(text, hasZone) {
  const found = INSTANT.exec(text);
  if (!found) throw new Unreadable("Write a date as 2024-01-31, a time as 2024-01-31 12:30:00.");
  const [, year, month, day, hour, minute, second, part, zone] = found;
  if (hasZone && !zone) throw new Unreadable("Add the offset of the time zone, such as +01:00, or Z for UTC.");
  if (!hasZone && zone) throw new Unreadable("The times of this column have no time zone: leave it out.");
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  const same = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
  if (!same || Number(hour ?? 0) > 23 || Number(minute ?? 0) > 59 || Number(second ?? 0) > 59) {
    throw new Unreadable("There is no such day or time.");
  }
  let moment = BigInt(date.getTime()) * 1000000n;
  moment += clock(hour, minute, second, part);
  if (zone && zone.toUpperCase() !== "Z") {
    const [hours, minutes, seconds] = zone.slice(1).replaceAll(":", "").match(/\d\d/g);
    const ahead = clock(hours, minutes, seconds);
    moment += zone[0] === "-" ? ahead : -ahead;
  }
  return moment;
}

function clock(hours, minutes, seconds, part) {
  const { hour, minute, second } = NANOSECONDS;
  return BigInt(hours ?? 0) * hour + BigInt(minutes ?? 0) * minute + BigInt(seconds ?? 0) * second + fraction(part);
}

// Nanoseconds. "-1 day 02:00:00" is the negative of all of it, "-1 days +02:00:00" has its parts added up.
function readDuration(text) {
  const found = DURATION.exec(text);
  if (!found || (found[2] === undefined && found[4] === undefined)) {
    throw new Unreadable("Write a duration as 2 days 12:30:00 or as 12:30:00.");
  }
  const [, sign, days, plus, hours, minutes, seconds, part] = found;
  if (Number(minutes ?? 0) > 59 || Number(seconds ?? 0) > 59) throw new Unreadable("There is no such time.");
  const whole = BigInt(days ?? 0) * NANOSECONDS.day;
  const rest = clock(hours, minutes, seconds, part);
  if (sign !== "-") return whole + rest;
  return plus ? rest - whole : -(whole + rest);
}

// What is in a field, as the conditions compare it; null where it is missing.
function readField(field, column) {
  const text = column.kind === "categorical" ? field.value : field.value.trim();
  if (text === "") {
    if (!field.validity.badInput && column.missing) return null;
    throw new Unreadable(field.validity.badInput ? "This date is not complete." : "The model needs a value here.");
  }
  if (column.kind === "boolean") return text === "true" ? 1n : 0n;
  if (column.listed) {
    const place = text.startsWith("=") ? Number(text.slice(1)) : -1;
    // A category that fitting did not see has no place in an order, and is equal to none: it stands for any other text.
    if (column.kind === "ordered") return BigInt(place);
    return place < 0 ? undefined : column.listed[place];
  }
  if (column.kind === "numeric") return readNumber(text);
  if (column.kind === "datetime") return readInstant(text, column.zone);
  if (column.kind === "duration") return readDuration(text);
  return text;
}

// A limit as a number that compares exactly with numbers and whole numbers.
function limit(text) {
  return WHOLE.test(text) ? BigInt(text) : Number(text);
}

function holds(condition, value) {
  if (value === null) return condition.missing;
  if (condition.test === "is_missing") return false;
  if (condition.test === "none_of") return !condition.values.includes(value);
  if (condition.test === "is_true") return value == 1;
  if (condition.test === "equals") {
    const text = typeof value === "string" || value === undefined;
    return text ? value === condition.value : value == limit(condition.value);
  }
  const { low, high } = condition;
  return (low === null || value >= limit(low)) && (high === null || value < limit(high));
}

// The nodes that a row passes, from the root to its leaf.
function wayOf(row) {
  const way = [0];
  for (let node = nodes[0]; node.left >= 0; node = nodes[way.at(-1)]) {
    way.push(holds(node.condition, row[node.condition.column]) ? node.right : node.left);
  }
  return way;
}

// ---------------------------------------------------------------- what a node is

function ruleTo(index) {
  const steps = [];
  for (let node = index; nodes[node].parent >= 0; node = nodes[node].parent) {
    const above = nodes[nodes[node].parent];
    steps.unshift(above.right === node ? above.yes : above.no);
  }
  return steps;
}

function mark(label) {
  const square = make("rect", { class: `k k${label}`, x: 1, y: 1, width: 10, height: 10, rx: 2 });
  return make("svg", { class: "mark", viewBox: "0 0 12 12", "aria-hidden": "true" }, square);
}

function className(label) {
  return make("bdi", {}, data.classes[label]);
}

function amount(weight) {
  return weight.toLocaleString("en", data.weighted ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: 0 });
}

function mixOf(node) {
  const total = node.weights.reduce((sum, weight) => sum + weight, 0);
  const order = node.weights.map((_, label) => label).filter((label) => node.weights[label] > 0);
  order.sort((a, b) => node.weights[b] - node.weights[a]);
  const rows = order.map((label) => {
    const width = (100 * node.weights[label]) / total;
    const bar = make("rect", { class: `k k${label}`, x: 0, y: 0, width, height: 10 });
    const frame = { class: "share", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" };
    const shown = make("svg", frame, bar);
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, mark(label), " ", className(label)),
      make("td", {}, amount(node.weights[label])),
      make("td", {}, shown),
    );
  });
  return make("table", {}, make("tbody", {}, ...rows));
}

function rules(index) {
  const steps = ruleTo(index);
  if (!steps.length) return make("p", {}, "Every row comes to the root.");
  return make("ol", {}, ...steps.map((step) => make("li", {}, step)));
}

function describe(index) {
  const node = nodes[index];
  const title = node.left < 0 ? [mark(node.label), " ", className(node.label)] : [`${node.question}?`];
  const close = make("button", { type: "button", class: "close" }, "Close");
  close.addEventListener("click", hint);
  details.replaceChildren(
    close,
    make("h3", {}, ...title),
    make("p", {}, node.left < 0 ? `Leaf: ${node.share} of ${node.passing}.${node.mark}` : `${node.passing}.`),
    make("h4", {}, "Classes of the training data that come here"),
    mixOf(node),
    make("h4", {}, "Rule"),
    rules(index),
  );
}

// On small screens the details lie over the picture, and make room for it until a node is asked for.
function hint() {
  details.replaceChildren(make("p", { class: "quiet" }, "Tap a node to read more about it."));
}

// ---------------------------------------------------------------- choosing a node

let chosen = 0;

function choose(index) {
  for (const [node, on] of [
    [chosen, false],
    [index, true],
  ]) {
    for (const item of drawn[node]) {
      item.classList.toggle("chosen", on);
      item.setAttribute("aria-selected", on);
      item.setAttribute("tabindex", on ? 0 : -1);
    }
  }
  chosen = index;
  describe(index);
}

function levelOf(index) {
  return Number(drawn[index][0].getAttribute("aria-level"));
}

// The next node on the same level; nodes are numbered depth first, so that levels run from left to right.
function neighbour(index, step) {
  for (let other = index + step; other in nodes; other += step) if (levelOf(other) === levelOf(index)) return other;
  return -1;
}

const KEYS = {
  ArrowUp: (index) => nodes[index].parent,
  ArrowDown: (index) => nodes[index].left,
  ArrowLeft: (index) => neighbour(index, -1),
  ArrowRight: (index) => neighbour(index, 1),
  Home: () => 0,
  End: () => nodes.length - 1,
  Enter: (index) => index,
  " ": (index) => index,
};

function pressed(event, index, picture) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "+" || event.key === "-") zoomAt(centre(), event.key === "+" ? STEP : 1 / STEP);
  else if (event.key === "0") fit();
  else if (!(event.key in KEYS)) return;
  else {
    const next = KEYS[event.key](index);
    if (next >= 0) drawn[next][picture].focus();
    if (next === index) choose(index);
  }
  event.preventDefault();
}

drawn.forEach((items, index) =>
  items.forEach((item, picture) => {
    item.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && describe(index));
    item.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && describe(chosen));
    item.addEventListener("click", () => choose(index));
    item.addEventListener("keydown", (event) => pressed(event, index, picture));
    item.addEventListener("focus", () => {
      if (!item.matches(":focus-visible")) return;
      choose(index);
      if (tree.contains(item)) bringIntoView(item);
    });
  }),
);

// ---------------------------------------------------------------- moving and zooming

const STEP = 1.35;
// In pixels: the picture begins enlarged where its text were smaller, reduced where it were larger.
const LEAST_TEXT = 10;
const LARGEST_TEXT = 16;
const view = { x: 0, y: 0, scale: 1 };

function show(gliding = false) {
  world.classList.toggle("gliding", gliding);
  world.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`;
}

// A place on the screen in the units of the picture, before it is moved and scaled.
function place(clientX, clientY) {
  return new DOMPoint(clientX, clientY).matrixTransform(tree.getScreenCTM().inverse());
}

function centre() {
  const box = tree.getBoundingClientRect();
  return place(box.x + box.width / 2, box.y + box.height / 2);
}

function zoomAt(point, factor, gliding = true) {
  const scale = Math.min(12, Math.max(0.4, view.scale * factor));
  view.x = point.x - (point.x - view.x) * (scale / view.scale);
  view.y = point.y - (point.y - view.y) * (scale / view.scale);
  view.scale = scale;
  show(gliding);
}

function fit() {
  Object.assign(view, { x: 0, y: 0, scale: 1 });
  show(true);
}

// All of it where its text can be read so, else the root and what is below it in a size that can be read.
function begin() {
  const natural = (tree.viewBox.baseVal.height * LARGEST_TEXT) / Number(tree.dataset.font);
  tree.style.height = `min(75vh, 40rem, ${Math.round(natural + 16)}px)`;
  Object.assign(view, { x: 0, y: 0, scale: 1 });
  show();
  const zoom = tree.getScreenCTM()?.a;
  if (!zoom) return; // it is not shown
  const text = zoom * Number(tree.dataset.font);
  const wanted = text < LEAST_TEXT ? LEAST_TEXT / text : text > LARGEST_TEXT ? LARGEST_TEXT / text : 1;
  if (wanted > 1) {
    const box = tree.getBoundingClientRect();
    const root = boundsOf(drawn[0][0]);
    const from = place((root.left + root.right) / 2, root.top);
    const to = place(box.x + box.width / 2, box.y + 12);
    Object.assign(view, { scale: wanted, x: to.x - from.x * wanted, y: to.y - from.y * wanted });
    show();
  } else if (wanted < 1) zoomAt(centre(), wanted, false);
}

// Where a node will be on the screen once the picture has come to rest.
function boundsOf(item) {
  const corner = item.transform.baseVal[0].matrix;
  const { width, height } = item.querySelector(".box");
  const toScreen = tree.getScreenCTM();
  const spot = (x, y) => new DOMPoint(view.x + view.scale * x, view.y + view.scale * y).matrixTransform(toScreen);
  const start = spot(corner.e, corner.f);
  const end = spot(corner.e + width.baseVal.value, corner.f + height.baseVal.value);
  return { left: start.x, top: start.y, right: end.x, bottom: end.y };
}

function bringIntoView(item) {
  const outer = tree.getBoundingClientRect();
  const inner = boundsOf(item);
  const zoom = tree.getScreenCTM().a;
  const past = (low, high, from, to) => (low < from ? from - low : high > to ? to - high : 0);
  view.x += past(inner.left, inner.right, outer.left + 12, outer.right - 12) / zoom;
  view.y += past(inner.top, inner.bottom, outer.top + 12, outer.bottom - 12) / zoom;
  show(true);
}

const fingers = new Map();
let travelled = 0;

tree.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  if (fingers.size === 1) travelled = 0;
});

tree.addEventListener("pointermove", (event) => {
  const before = fingers.get(event.pointerId);
  if (!before) return;
  const now = { x: event.clientX, y: event.clientY };
  travelled += Math.hypot(now.x - before.x, now.y - before.y);
  if (travelled > 4 && !tree.hasPointerCapture(event.pointerId)) {
    tree.setPointerCapture(event.pointerId);
    tree.classList.add("moving");
  }
  const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
  const [from, to] = [place(before.x, before.y), place(now.x, now.y)];
  fingers.set(event.pointerId, now);
  if (other) {
    const apart = (point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
    zoomAt(place((now.x + other.x) / 2, (now.y + other.y) / 2), apart(now) / apart(before), false);
  }
  // Of two fingers each moves the picture by half of its own way.
  view.x += (to.x - from.x) / fingers.size;
  view.y += (to.y - from.y) / fingers.size;
  show();
});

for (const name of ["pointerup", "pointercancel"]) {
  tree.addEventListener(name, (event) => {
    fingers.delete(event.pointerId);
    if (!fingers.size) tree.classList.remove("moving");
  });
}

// A drag that ends on a node does not choose it.
tree.addEventListener("click", (event) => travelled > 4 && event.stopPropagation(), true);

tree.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoomAt(place(event.clientX, event.clientY), Math.exp(-event.deltaY * lines * 0.0015), false);
  },
  { passive: false },
);

document.getElementById("zoom-in").addEventListener("click", () => zoomAt(centre(), STEP));
document.getElementById("zoom-out").addEventListener("click", () => zoomAt(centre(), 1 / STEP));
document.getElementById("zoom-fit").addEventListener("click", fit);

// Side by side, or one below the other on small screens; the button changes it.
function arrange(layout) {
  stage.dataset.layout = layout;
  squeeze();
  begin();
}

document.getElementById("layout").addEventListener("click", () => {
  arrange(stage.dataset.layout === "tall" ? "wide" : "tall");
});

function suitScreen() {
  arrange(narrow.matches ? "tall" : "wide");
  if (narrow.matches) hint();
  else describe(chosen);
}

narrow.addEventListener("change", suitScreen);

// Room for text is estimated when the report is written; a font that is wider still is squeezed into it.
function squeeze() {
  const shown = [...stage.querySelectorAll(".tree")].filter((picture) => picture.getClientRects().length);
  for (const item of shown.flatMap((picture) => [...picture.querySelectorAll(".node")])) {
    const room = item.querySelector(".box").width.baseVal.value - (item.classList.contains("leaf") ? 14 : 8);
    for (const text of item.querySelectorAll("text.title, text.detail")) {
      if (text.getComputedTextLength() > room) {
        text.setAttribute("textLength", room);
        text.setAttribute("lengthAdjust", "spacingAndGlyphs");
      }
    }
  }
}

// ---------------------------------------------------------------- reasons and the smallest change

const MOST_REASONS = 4;

function percent(share) {
  return `${(100 * share).toFixed(1)}%`;
}

// By column, the answers on the way and what they add to the probability of the class; the largest first.
function reasonsFor(way) {
  const { probabilities } = data.explanations;
  const label = nodes[way.at(-1)].label;
  const byColumn = new Map();
  way.slice(1).forEach((index, step) => {
    const above = nodes[way[step]];
    const entry = byColumn.get(above.condition.column) ?? { answers: [], effect: 0 };
    entry.answers.push(above.right === index ? above.yes : above.no);
    entry.effect += probabilities[index][label] - probabilities[way[step]][label];
    byColumn.set(above.condition.column, entry);
  });
  const found = [...byColumn.values()].filter((entry) => entry.effect > 0);
  return found.sort((a, b) => b.effect - a.effect).slice(0, MOST_REASONS);
}

// An ordered category that fitting did not see has the position -1.
function isKnown(column, value) {
  return value !== null && !(data.columns[column].kind === "ordered" && value === -1n);
}

// The difference of two numbers; exact before it is rounded where both are whole.
function difference(a, b) {
  const exact = typeof a === "bigint" && typeof b === "bigint";
  return Math.abs(exact ? Number(a - b) : Number(a) - Number(b));
}

function nearest(column, old, choices) {
  const unit = data.explanations.units[column];
  if (!unit) return { text: choices[0][1], distance: 1 };
  const known = isKnown(column, old);
  const from = known ? old : limit(unit.middle);
  let best = null;
  for (const [number, text] of choices) {
    const apart = difference(limit(number), from);
    if (best === null || apart < best.apart) best = { text, apart };
  }
  return { text: best.text, distance: known ? best.apart / unit.spread : 1 };
}

// The change of a row to a leaf; null if it is impossible.
function changeTo(route, row, fixed) {
  const edits = [];
  let distance = 0;
  for (const { column, asked, choices } of route.demands) {
    if (asked.every(([condition, wanted]) => holds(condition, row[column]) === wanted)) continue;
    if (fixed.has(column) || !choices.length) return null;
    const chosen = nearest(column, row[column], choices);
    edits.push({ column, text: chosen.text });
    distance += chosen.distance;
  }
  return { leaf: route.leaf, edits, distance };
}

// Fewest columns, then least distance, then the first leaf.
function smallestChange(row, label, fixed) {
  let best = null;
  for (const route of data.explanations.routes) {
    const found = route.label === label ? null : changeTo(route, row, fixed);
    if (!found) continue;
    const fewer = best === null || found.edits.length < best.edits.length;
    if (fewer || (found.edits.length === best.edits.length && found.distance < best.distance)) best = found;
  }
  return best;
}

function explained(row, way) {
  const { probabilities } = data.explanations;
  const leaf = way.at(-1);
  const { label } = nodes[leaf];
  const reasons = reasonsFor(way).map((entry) =>
    make("li", {}, entry.answers.join(" and "), make("span", { class: "quiet" }, ` +${percent(entry.effect)}`)),
  );
  const fixed = new Set([...form.querySelectorAll("[data-fixed]:checked")].map((box) => Number(box.dataset.fixed)));
  const change = smallestChange(row, label, fixed);
  const parts = [
    make(
      "p",
      {},
      `Probability ${percent(probabilities[leaf][label])}; of all training data ${percent(probabilities[0][label])}.`,
    ),
    make("h3", {}, "Reasons"),
    reasons.length ? make("ol", {}, ...reasons) : make("p", {}, "No answer makes this class more probable."),
    make("h3", {}, "Smallest change to another class"),
  ];
  if (!change) return [...parts, make("p", { id: "change" }, "No allowed change leads to another class.")];
  const edits = change.edits.map(({ column, text }) =>
    make("li", {}, make("bdi", {}, data.columns[column].name), " becomes ", make("bdi", {}, text)),
  );
  const reached = nodes[change.leaf].label;
  const chance = percent(probabilities[change.leaf][reached]);
  return [
    ...parts,
    make("ul", { id: "change", "data-leaf": change.leaf }, ...edits),
    make("p", {}, "It leads to ", mark(reached), " ", className(reached), `, probability ${chance}.`),
  ];
}

// ---------------------------------------------------------------- a row finds its leaf

const form = document.getElementById("row");
const answer = document.getElementById("answer");

function showWay(way) {
  const passed = new Set(way);
  drawn.forEach((items, index) => items.forEach((item) => item.classList.toggle("way", passed.has(index))));
  for (const edge of stage.querySelectorAll("[data-child]")) {
    edge.classList.toggle("way", passed.has(Number(edge.dataset.child)));
  }
  for (const line of document.querySelectorAll("[data-rule]")) {
    line.classList.toggle("way", passed.has(Number(line.dataset.rule)));
  }
}

function complain(field, message) {
  const said = document.getElementById(`${field.id}-error`);
  said.textContent = message;
  said.hidden = !message;
  if (message) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
}

// By column, what is in the form; null if some of it cannot be read, which is told beside the field.
function readRow() {
  const row = {};
  let first = null;
  for (const field of form.querySelectorAll("[data-column]")) {
    complain(field, "");
    try {
      row[field.dataset.column] = readField(field, data.columns[field.dataset.column]);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      complain(field, error.message);
      first ??= field;
    }
  }
  first?.focus();
  return first ? null : row;
}

function forget() {
  answer.replaceChildren();
  delete answer.dataset.leaf;
  showWay([]);
}

function answerRow() {
  const row = readRow();
  if (row === null) {
    forget();
    return;
  }
  const way = wayOf(row);
  const leaf = nodes[way.at(-1)];
  answer.replaceChildren(
    make("p", { class: "class" }, mark(leaf.label), " ", className(leaf.label)),
    make("p", {}, `${leaf.share} of the training data in this leaf are of this class (${leaf.passing}).${leaf.mark} Its way:`),
    rules(way.at(-1)),
    ...explained(row, way),
  );
  answer.dataset.leaf = way.at(-1);
  showWay(way);
  choose(way.at(-1));
}

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answerRow();
  });
  form.addEventListener("reset", () => {
    for (const field of form.querySelectorAll("[data-column]")) complain(field, "");
    forget();
  });
}

// ---------------------------------------------------------------- light and dark

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

// On paper nothing can be opened.
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("#rules, #alternatives-section details")) part.open = true;
});

choose(0);
suitScreen();
