// Wires controls, worker, pictures and tables together.

import { delaysOf, lastOf, rowOf } from "./delays.js";
import { LESSON } from "./lesson.js";
import { BEFORE, CHOICES, DEFAULTS, LIMITS, OWN_PAGE, STEPS, UNITS, fragmentOf, inOrder, nearest, requestOf, stateOf } from "./state.js";
import { darkness, drawAxis, drawCurves, drawGhost, drawLane, drawLineSample, drawSample, lookOf, milliseconds, resourceAt, timeToX, xToTime } from "./strips.js";
import { element, fillFigures, fillResources, shortened, shown } from "./tables.js";

const MAX_FILE_BYTES = 100e6;
const GUIDE =
  "Each rectangle is a packet, drawn when its bytes reach the browser; packets delivered together are stacked. Dashed line: everything above the fold (▲) is complete. A time in brackets is how long packets of that response kept arriving while the delayed resource, or one that led to its request, was loading.";
const LOST_GUIDE = " Red marks below a strip: lost packets, when they were sent.";
const BEFORE_GUIDE = " The low pale strip below is the state before your last change.";
const $ = (id) => document.getElementById(id);

const [catalogue, computed] = await Promise.all(
  ["catalogue.json", "computed.json"].map(async (name) => (await fetch(name)).json()),
);
let { state, ignored } = await stateOf(location.hash, catalogue);
let results = [];
let changes = 0;
let isRunning = false;
let isReady = false;
let drawn = { endMs: 1, highest: 1 };
let chosen = null;
let pinned = null;
let pinnedOf = null;
// Results of the state before the last change, by scheme, and the end of the axis if it is held.
let before = new Map();
let settled = [];
let heldEndMs = null;

// The worker: one question at a time, so that a newer state never waits for more than one load.
// Embedded in another page it starts with the first question: most readers ask none.
const isEmbedded = window.self !== window.top;
document.documentElement.classList.toggle("embedded", isEmbedded);
const waiting = new Map();
let questions = 0;
let worker = null;

function startPython() {
  if (worker !== null) return;
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data }) => take(data);
  worker.onerror = () => take({ kind: "failed", message: "the worker failed." });
  $("loading").hidden = false;
}

function take(data) {
  if (data.kind === "progress") $("python").value = data.share;
  else if (data.kind === "answer") {
    waiting.get(data.id)(data.answer);
    waiting.delete(data.id);
  } else {
    $("loading").hidden = true;
    isReady = data.kind === "ready";
    if (!isReady) tell([`Python could not be loaded: ${data.message}`], "");
  }
}

function ask(name, ...args) {
  startPython();
  const id = ++questions;
  worker.postMessage({ id, name, args });
  return new Promise((resolve) => waiting.set(id, resolve));
}

// The default state and those of the lesson were computed when the site was built, and are shown
// while Python is still being loaded.
async function load(request) {
  if (Object.hasOwn(computed, request)) return computed[request];
  if (!isReady) $("status").textContent = "Waiting for Python…";
  return ask("simulate", request);
}

function tell(problems, status) {
  $("problems").replaceChildren(...problems.map((text) => element("li", {}, text)));
  $("status").textContent = status;
}

// What changed is shown at once in the controls and the link; loads follow, one scheme at a time.
function changed() {
  changes += 1;
  $("results").ariaBusy = "true";
  showState();
  run();
}

async function run() {
  if (isRunning) return;
  isRunning = true;
  let seen;
  do {
    seen = changes;
    await runOnce(() => seen !== changes);
  } while (seen !== changes);
  isRunning = false;
  $("results").ariaBusy = "false";
}

async function runOnce(isStale) {
  const { schemes } = state;
  const begun = performance.now();
  const found = [];
  const problems = ignored.map((text) => `Not understood in the link: ${text}`);
  if (schemes.length === 0) problems.push("Choose a scheme.");
  $("status").textContent = "Loading…";
  for (const scheme of schemes) {
    const answer = await load(requestOf(state, scheme));
    if (isStale()) return;
    if (answer.problems === undefined) found.push(answer);
    else problems.push(...answer.problems.map((text) => `${scheme}: ${text}`));
    results = [...found, ...results.filter((old) => schemes.indexOf(old.scheme) > schemes.indexOf(scheme))];
    show(found.length);
  }
  results = found;
  if (settled.length > 0) before = new Map(settled.map((result) => [result.scheme, result]));
  settled = found;
  show(found.length);
  const seconds = (performance.now() - begun) / 1000;
  const what = found.length === 1 ? "1 load" : `${found.length} loads`;
  tell([...new Set(problems)], found.length === 0 ? "" : `${what} over “${found[0].network}” in ${shown(seconds, 2)} s.`);
}

// The results of the state before that can be compared: those of the same page.
function comparable() {
  if (!$("compare").checked) return new Map();
  return new Map(results.map((result) => [result.scheme, before.get(result.scheme)]).filter(([, old], index) =>
    old !== undefined && old !== results[index] && old.page.name === results[index].page.name));
}

// Strips and curves share one axis, with the state before, and with what it was when held.
function endOfAxis(old) {
  const ends = [...results, ...old.values()].map((result) => result.end_ms);
  if ($("hold").checked) ends.push(heldEndMs ?? 0);
  heldEndMs = Math.max(1, ...ends);
  return heldEndMs;
}

// Pictures and tables of the results; those behind the first *fresh* ones are still of before.
function show(fresh) {
  const old = comparable();
  const endMs = endOfAxis(old);
  const highest = Math.max(1, ...results.map((result) => result.boxes.reduce((most, box) => Math.max(most, box[4]), 1)));
  drawn = { endMs, highest };
  keepChosen();
  showLanes(fresh, endMs, highest, old);
  drawAxis($("axis"), endMs);
  const onlySeen = results.some((result) => result.byte_index_above_the_fold_ms !== null);
  $("curve-set").textContent = onlySeen ? "above the fold" : "of all resources";
  drawCurves($("curves"), results, old, endMs, onlySeen);
  fillFigures($("figures"), results);
  showLegend();
  showWhich();
  showGoal();
  $("chosen").style.minHeight = "";
  markChosen();
  const cut = results.find((result) => result.cut !== "");
  const notes = new Set(results.flatMap((result) => result.notes));
  const lost = results.some((result) => result.lost_ms.length > 0) ? LOST_GUIDE : "";
  const ghosts = old.size > 0 ? BEFORE_GUIDE : "";
  $("guide").textContent = [GUIDE + lost + ghosts, cut === undefined ? "" : `Time is ${cut.cut}.`, ...notes].join(" ");
}

function showLanes(fresh, endMs, highest, old) {
  const lanes = $("lanes");
  while (lanes.children.length > results.length) lanes.lastChild.remove();
  while (lanes.children.length < results.length) {
    lanes.append(element("div", { class: "lane" }, element("p"), element("canvas", { role: "img" }), element("canvas", { class: "ghost", "aria-hidden": "true" })));
  }
  results.forEach((result, index) => {
    const [text, canvas, ghost] = lanes.children[index].children;
    lanes.children[index].classList.toggle("old", index >= fresh);
    lanes.children[index].classList.toggle("tall", highest > 4);
    const seen = result.byte_index_above_the_fold_ms;
    const sample = element("canvas", { class: "sample", "aria-hidden": "true" });
    const earlier = old.get(result.scheme);
    text.replaceChildren(
      element("strong", {}, sample, ` ${result.scheme}`),
      element("span", {}, `ByteIndex ${result.byte_index_ms === null ? "–" : milliseconds(result.byte_index_ms)}`),
      element("span", {}, seen === null ? `above the fold: ${result.why_not_above_the_fold}` : `above the fold ${milliseconds(seen)}${changeOf(earlier, seen)}`),
      element("span", {}, `HOL-blocked ${shown(result.blocked_bytes, 0)} bytes`),
      ...(result.lost > 0 ? [element("span", {}, `${shown(result.lost, 0)} packets lost`)] : []),
    );
    drawLineSample(sample, lookOf(index));
    drawLane(canvas, result, endMs, highest, chosen);
    ghost.hidden = earlier === undefined;
    if (earlier !== undefined) drawGhost(ghost, earlier, endMs, highest);
  });
}

function changeOf(earlier, seen) {
  const was = earlier?.byte_index_above_the_fold_ms ?? null;
  return was === null || Math.round(was) === Math.round(seen) ? "" : ` (before: ${milliseconds(was)})`;
}

// Pointing at a packet, or at a row of the table, shows where else its resource is in all strips.
function choose(resource) {
  if (resource === chosen) return;
  chosen = resource;
  results.forEach((result, index) => {
    drawLane($("lanes").children[index].children[1], result, drawn.endMs, drawn.highest, chosen);
  });
  markChosen();
}

// A resource of the page that was shown before is not one of another page.
function keepChosen() {
  const page = results[0]?.page.name ?? pinnedOf;
  if (page !== pinnedOf || (pinned !== null && results.length > 0 && rowOf(results[0], pinned) === undefined)) pinned = null;
  [chosen, pinnedOf] = [pinned, page];
}

function markChosen() {
  for (const row of $("resources").querySelectorAll("tbody tr")) {
    row.classList.toggle("on", Number(row.dataset.resource) === chosen);
  }
  for (const button of $("legend").querySelectorAll("button")) {
    button.ariaPressed = String(pinned !== null && Number(button.dataset.resource) === pinned);
  }
  showChosen();
}

// A click keeps a resource chosen until the next one.
function pin(resource) {
  pinned = resource === pinned ? null : resource;
  chosen = undefined;
  choose(pinned);
}

// The chosen resource in words, or with each scheme the last above the fold: what delayed it.
function showChosen() {
  const lines = results.flatMap((result) => {
    const resource = chosen ?? lastOf(result);
    return rowOf(result, resource) === undefined ? [] : [wordsOf(result, resource)];
  });
  const isMarked = results.some((result) => result.resources.some((row) => row.above_the_fold));
  const last = `The last resource${isMarked ? " above the fold" : ""} to be complete, and what delayed it. Point at another in the strips, the colours or the table to see what delayed that one; click to keep it.`;
  const kept = chosen === pinned ? " Click again, or press Esc, to let it go." : "";
  const heading = chosen === null || lines.length === 0 ? last : `When ${nameOf(results[0], chosen)} was complete, and what delayed it.${kept}`;
  const area = $("chosen");
  area.classList.toggle("kept", pinned !== null);
  area.replaceChildren(...(lines.length === 0 ? [] : [element("p", { class: "guide" }, heading), ...lines]));
  // It never shrinks: what is below must not move under the pointer.
  area.style.minHeight = `${Math.max(parseFloat(area.style.minHeight) || 0, area.scrollHeight)}px`;
}

function nameOf(result, resource, limit = 28) {
  return `${resource + 1}\u00a0${shortened(rowOf(result, resource)?.id ?? "", limit)}`;
}

const MOST_NAMED = 4;

function wordsOf(result, resource) {
  const { chain: [own, ...parents], others } = delaysOf(result, resource);
  const named = others.slice(0, MOST_NAMED).map(([other, ms]) => `${nameOf(result, other)} (${milliseconds(ms)})`);
  const rest = others.slice(MOST_NAMED);
  const restMs = rest.reduce((sum, [, ms]) => sum + ms, 0);
  if (rest.length > 0) named.push(`${rest.length} other${rest.length === 1 ? "" : "s"} (${milliseconds(restMs)})`);
  const by = named.length === 0 ? "delayed by no other" : `delayed most by ${joined(named)}`;
  const what = chosen === null ? `${nameOf(result, resource)} ` : "";
  return element("p", {}, element("strong", {}, result.scheme),
    `: ${what}after ${milliseconds(own.row.finished_ms)}, ${by}. ${requestInWords(result, own, parents)}`);
}

function joined(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

// When it was requested, by what, and how long others delayed that, and what led to it in turn.
function requestInWords(result, own, parents) {
  const late = parents.filter((link, index) => index === 0 || link.delay_ms >= 0.5).slice(0, MOST_NAMED);
  const steps = late.map(({ resource, delay_ms: delayMs }, index) => {
    const start = index === 0 ? "by " : "that waited for ";
    return `${start}${nameOf(result, resource)}${delayMs < 0.5 ? "" : `, which others delayed by ${milliseconds(delayMs)}`}`;
  });
  return `Requested after ${milliseconds(own.row.requested_ms)}${steps.length === 0 ? "" : ` ${steps.join("; ")}`}.`;
}

// A line at the pointer across all strips and curves, with the exact time and resource beside it.
function moveCursor(event) {
  const area = $("timeline").getBoundingClientRect();
  const atMs = xToTime(area.width, drawn.endMs, event.clientX - area.left);
  const isPicture = event.target.closest("#legend, #chosen, .guide, h2") === null;
  const isInside = isPicture && atMs >= 0 && atMs <= drawn.endMs && results.length > 0;
  $("cursor").hidden = !isInside;
  if (!isInside) return;
  const x = timeToX(area.width, drawn.endMs, atMs);
  $("cursor").style.left = `${x}px`;
  const lane = [...$("lanes").children].findIndex((each) => each.children[1] === event.target);
  if (lane >= 0) choose(resourceAt(event.target, results[lane], drawn.endMs, event.offsetX));
  const isNamed = lane >= 0 && rowOf(results[lane], chosen) !== undefined;
  const text = $("cursor-text");
  text.textContent = milliseconds(atMs) + (isNamed ? ` · ${nameOf(results[lane], chosen)}` : "");
  // Right of the line, or as far right as the strips allow.
  text.style.left = `${Math.min(6, area.width - x - text.offsetWidth)}px`;
}

function showLegend() {
  const items = results.length === 0 ? [] : legendOf(results[0]);
  const samples = items.map(([label, faces, resource]) => [element("canvas", { "aria-hidden": "true" }), label, faces, resource]);
  $("legend").replaceChildren(...samples.map(([sample, label, , resource]) => element("li", {}, resource === undefined
    ? element("span", {}, sample, label)
    : element("button", { type: "button", "data-resource": resource, "aria-pressed": "false" }, sample, label))));
  for (const [sample, , faces] of samples) drawSample(sample, faces);
}

// Texts with the colours before them: those of the classes, or of a small page's resources, which are
// named by their number as well.
function legendOf(result) {
  if (result.classes.length > 0) return result.classes;
  const items = result.resources.map((row, index) => [result.numbers[index], row]);
  items.sort(([one], [other]) => one - other);
  return items.map(([number, row]) => [
    `${number + 1} ${shortened(row.id)}${row.above_the_fold ? " ▲" : ""}`,
    [result.faces[number]],
    number,
  ]);
}

function showWhich() {
  const names = results.map((result) => result.scheme);
  const chosen = names.includes($("which").value) ? $("which").value : names[0];
  $("which").replaceChildren(...names.map((name) => element("option", { value: name, selected: name === chosen }, name)));
  showResources();
}

function showResources() {
  const result = results.find((each) => each.scheme === $("which").value);
  if (result === undefined) return;
  fillResources($("resources"), result);
  markChosen();
}

// Controls.

function makeControls() {
  const group = (label, pages) => element("optgroup", { label }, ...pages.map(pageOption));
  const pages = catalogue.pages;
  const papers = ["davies-meenan", "http2rulez"];
  $("page").append(
    group("From papers", pages.filter((page) => papers.includes(page.name))),
    group("Recorded, up to 500 kB", pages.filter((page) => !papers.includes(page.name) && page.bytes < 500e3)),
    group("Recorded, larger", pages.filter((page) => !papers.includes(page.name) && page.bytes >= 500e3)),
  );
  for (const [key, choices] of Object.entries(CHOICES)) {
    $(key).append(...Object.entries(choices).map(([value, text]) => element("option", { value }, text)));
    $(key).addEventListener("change", () => set({ [key]: $(key).value }));
  }
  for (const [key, steps] of Object.entries(STEPS)) {
    Object.assign($(key), { min: "0", max: String(steps.length - 1), step: "1" });
    $(key).addEventListener("input", () => set({ [key]: steps[Number($(key).value)] }));
  }
  $("page").addEventListener("change", () => {
    if ($("page").value !== OWN_PAGE) set({ page: $("page").value, document: undefined });
  });
  $("seed").addEventListener("change", () => {
    const seed = Math.min(999999, Math.max(0, Math.round(Number($("seed").value)) || 0));
    set({ seed });
  });
  $("schemes").append(pairChooser(), ...schemeGroups());
  $("file").addEventListener("change", () => takeFile($("file").files[0]));
  $("which").addEventListener("change", showResources);
  $("timeline").addEventListener("pointermove", moveCursor);
  $("timeline").addEventListener("pointerleave", () => {
    $("cursor").hidden = true;
    choose(pinned);
  });
  $("lanes").addEventListener("click", () => { if (chosen !== null) pin(chosen); });
  const inLegend = (act) => (event) => {
    const button = event.target.closest("button");
    if (button !== null) act(Number(button.dataset.resource));
  };
  for (const type of ["pointerover", "focusin"]) $("legend").addEventListener(type, inLegend(choose));
  $("legend").addEventListener("focusout", () => choose(pinned));
  $("legend").addEventListener("click", inLegend(pin));
  for (const id of ["hold", "compare"]) $(id).addEventListener("change", () => show(results.length));
  $("lecture").addEventListener("change", () => {
    set({ lecture: Number($("lecture").checked) });
    show(results.length);
  });
  darkness.addEventListener("change", () => show(results.length));
  $("resources").addEventListener("pointerover", (event) => {
    const row = event.target.closest("tbody tr");
    if (row !== null) choose(Number(row.dataset.resource));
  });
  $("resources").addEventListener("click", () => {
    if (chosen === null) return;
    pin(chosen);
    if (pinned !== null) $("chosen").scrollIntoView({ block: "center" });
  });
  $("resources").addEventListener("pointerleave", () => choose(pinned));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && pinned !== null) pin(pinned);
  });
  $("controls").addEventListener("submit", (event) => event.preventDefault());
}

function pageOption(page) {
  const size = `${page.resources} resources, ${shown(page.bytes / 1000, 0)} kB`;
  return element("option", { value: page.name }, `${page.name} (${size})`);
}

// Any client before any server: its box is there as long as it is chosen.
function pairChooser() {
  const half = (id, names) =>
    element("select", { id }, ...names.map((name) => element("option", { value: name }, name)));
  const button = element("button", { type: "button", id: "add-pair" }, "Add");
  button.addEventListener("click", () => {
    const name = `${$("client").value}${BEFORE}${$("server").value}`;
    set({ schemes: inOrder([...state.schemes, name], catalogue) });
  });
  return element(
    "div",
    { id: "pairs" },
    element("label", { for: "client" }, "Client"),
    half("client", catalogue.clients),
    element("label", { for: "server" }, "Server"),
    half("server", catalogue.servers),
    button,
    element("div", { id: "chosen-pairs" }),
  );
}

function schemeGroups() {
  const groups = [...new Set(catalogue.schemes.map((scheme) => scheme.group))];
  return groups.map((group, index) =>
    element(
      "details",
      { open: index === 0 },
      element("summary", {}, group),
      ...catalogue.schemes.filter((scheme) => scheme.group === group).map(schemeBox),
    ),
  );
}

function schemeBox({ name, title }) {
  const box = element("input", { type: "checkbox", value: name });
  box.addEventListener("change", () => {
    const chosen = box.checked ? [...state.schemes, name] : state.schemes.filter((each) => each !== name);
    set({ schemes: inOrder(chosen, catalogue) });
  });
  return element("label", {}, box, element("span", {}, name, " ", element("small", {}, title)));
}

function set(values) {
  if ("page" in values) heldEndMs = null;
  state = { ...state, ...values };
  ignored = [];
  changed();
}

async function showState() {
  const seen = changes;
  document.documentElement.classList.toggle("lecture", state.lecture === 1);
  $("lecture").checked = state.lecture === 1;
  showOwnPage();
  $("page").value = state.page;
  for (const key of Object.keys(CHOICES)) $(key).value = state[key];
  for (const [key, steps] of Object.entries(STEPS)) {
    const text = `${shown(state[key], 0) === "–" ? "" : state[key].toLocaleString("en")} ${UNITS[key]}`;
    $(key).value = String(nearest(steps, state[key]));
    $(key).setAttribute("aria-valuetext", text);
    $(`${key}-value`).textContent = text;
  }
  $("seed").value = String(state.seed);
  const pairs = state.schemes.filter((name) => name.includes(BEFORE));
  $("chosen-pairs").replaceChildren(...pairs.map((name) => schemeBox({ name, title: "" })));
  for (const box of $("schemes").querySelectorAll("input")) {
    box.checked = state.schemes.includes(box.value);
    if (box.checked && box.closest("details")) box.closest("details").open = true;
  }
  showLesson();
  const { text, isWhole } = await fragmentOf(state);
  if (seen !== changes) return;
  history.replaceState(null, "", `#${text}`);
  $("link").value = location.href;
  $("link-note").textContent = isWhole
    ? "The link has every setting, and a page of your own as well; it is nowhere but in the link."
    : "Your page is too large for a link: it has the settings only.";
}

function showOwnPage() {
  $("page").querySelector("#own")?.remove();
  if (state.document === undefined) {
    $("imported").hidden = true;
    return;
  }
  const name = shortened(String(state.document.name ?? "a page"), 40);
  $("page").prepend(element("option", { id: "own", value: OWN_PAGE }, `${name} (your own)`));
}

async function takeFile(file) {
  if (file === undefined || file === null) return;
  if (file.size > MAX_FILE_BYTES) {
    tell([`${file.name} is larger than 100 MB.`], "");
    return;
  }
  $("status").textContent = isReady ? "Reading the file…" : "Waiting for Python; then the file is read…";
  let text;
  try {
    text = await file.text();
  } catch {
    tell([`${file.name} cannot be read: is it a folder?`], "");
    return;
  }
  const answer = await ask("read_page", file.name, text);
  if (answer.problems !== undefined) {
    tell(answer.problems, "");
    return;
  }
  set({ page: OWN_PAGE, document: answer.page, ...withinLimits(answer.network ?? {}) });
  $("imported").hidden = answer.lines.length === 0;
  $("imported").querySelector("ul").replaceChildren(...answer.lines.map((line) => element("li", {}, line)));
}

// The estimated network of a recording, as far as a link can hold it.
function withinLimits(network) {
  const entries = Object.entries(network);
  return Object.fromEntries(entries.map(([key, value]) => [key, Math.min(Math.max(value, LIMITS[key][0]), LIMITS[key][1])]));
}

document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("over");
});
document.addEventListener("dragleave", () => document.body.classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  takeFile(event.dataTransfer.files[0]);
});

// The lesson.

function showLesson() {
  const step = LESSON[state.lesson - 1];
  $("lesson").classList.toggle("idle", step === undefined);
  $("lesson-back").hidden = state.lesson < 2;
  $("lesson-end").hidden = step === undefined;
  $("lesson-next").hidden = state.lesson === LESSON.length;
  $("lesson-next").textContent = step === undefined ? "Start the lesson" : "Next step";
  if ($("lesson-body").dataset.step === String(state.lesson)) return;
  $("lesson-body").dataset.step = String(state.lesson);
  $("lesson-title").textContent =
    step === undefined ? "Lesson" : `Step ${state.lesson} of ${LESSON.length}: ${step.title}`;
  const text = step?.text ?? ["Five steps, about 15 minutes: what strips show, what should come first, and when sharing wins."];
  $("lesson-body").replaceChildren(...text.map((each) => element("p", {}, each)));
  if (step === undefined) return;
  $("lesson-body").append(
    element("p", { class: "goal" }, `Try: ${step.goal}`),
    element("p", { id: "goal", role: "status" }),
    element("details", {}, element("summary", {}, "Answer"), element("p", {}, step.answer)),
  );
}

function showGoal() {
  const step = LESSON[state.lesson - 1];
  if (step === undefined) return;
  const isReached = results.length === state.schemes.length && step.isReached(state, results);
  const text = isReached ? "✓ Reached." : "Not yet reached.";
  if ($("goal").textContent !== text) $("goal").textContent = text;
}

function goTo(lesson) {
  const step = LESSON[lesson - 1];
  if (step === undefined) {
    set({ lesson: 0 });
  } else {
    state = { ...DEFAULTS, lecture: state.lecture, document: undefined };
    before = new Map();
    settled = [];
    heldEndMs = null;
    pinned = null;
    set({ ...step.set, schemes: [...step.set.schemes], lesson });
  }
  $("lesson-title").focus();
}

$("lesson-title").tabIndex = -1;
$("lesson-next").addEventListener("click", () => goTo(state.lesson + 1));
$("lesson-back").addEventListener("click", () => goTo(state.lesson - 1));
$("lesson-end").addEventListener("click", () => goTo(0));
$("copy").addEventListener("click", async () => {
  $("link").select();
  try {
    await navigator.clipboard.writeText($("link").value);
    $("link-note").textContent = "Copied.";
  } catch {
    $("link-note").textContent = "Selected: copy it with the keyboard.";
  }
});
window.addEventListener("hashchange", async () => {
  ({ state, ignored } = await stateOf(location.hash, catalogue));
  changed();
});
window.addEventListener("resize", () => show(results.length));

makeControls();
changed();
if (!isEmbedded) startPython();
