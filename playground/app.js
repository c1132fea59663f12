// Wires controls, worker, pictures and tables together.

import { LESSON } from "./lesson.js";
import { CHOICES, DEFAULTS, LIMITS, OWN_PAGE, STEPS, UNITS, fragmentOf, nearest, requestOf, stateOf } from "./state.js";
import { drawAxis, drawCurves, drawLane, drawLineSample, drawSample, lookOf, milliseconds } from "./strips.js";
import { element, fillFigures, fillResources, shortened, shown } from "./tables.js";

const MAX_FILE_BYTES = 100e6;
const GUIDE =
  "Each rectangle is a packet, drawn when its bytes reach the browser; stacked ones came to it together. Dashed line: all above the fold (▲) is complete.";
const LOST_GUIDE = " Red marks below a strip: packets that were lost, when they were sent.";
const $ = (id) => document.getElementById(id);

const [catalogue, computed] = await Promise.all(
  ["catalogue.json", "computed.json"].map(async (name) => (await fetch(name)).json()),
);
let { state, ignored } = await stateOf(location.hash, catalogue);
let results = [];
let changes = 0;
let isRunning = false;
let isReady = false;

// The worker: one question at a time, so that a newer state never waits for more than one load.
const worker = new Worker("worker.js", { type: "module" });
const waiting = new Map();
let questions = 0;
worker.onmessage = ({ data }) => {
  if (data.kind === "ready") isReady = true;
  else if (data.kind === "failed") tell([`Python could not be loaded: ${data.message}`], "");
  else {
    waiting.get(data.id)(data.answer);
    waiting.delete(data.id);
  }
};
worker.onerror = () => tell(["Python could not be loaded: the worker failed."], "");

function ask(name, ...args) {
  const id = ++questions;
  worker.postMessage({ id, name, args });
  return new Promise((resolve) => waiting.set(id, resolve));
}

// The default state and those of the lesson were computed when the site was built, and are shown
// while Python is still being loaded.
async function load(request) {
  if (Object.hasOwn(computed, request)) return computed[request];
  if (!isReady) $("status").textContent = "Python is being loaded…";
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
  show(found.length);
  const seconds = (performance.now() - begun) / 1000;
  const what = found.length === 1 ? "1 load" : `${found.length} loads`;
  tell([...new Set(problems)], found.length === 0 ? "" : `${what} over “${found[0].network}” in ${shown(seconds, 2)} s.`);
}

// Pictures and tables of the results; those behind the first *fresh* ones are still of before.
function show(fresh) {
  const endMs = Math.max(1, ...results.map((result) => result.end_ms));
  const highest = Math.max(1, ...results.map((result) => result.boxes.reduce((most, box) => Math.max(most, box[4]), 1)));
  showLanes(fresh, endMs, highest);
  drawAxis($("axis"), endMs);
  const onlySeen = results.some((result) => result.byte_index_above_the_fold_ms !== null);
  $("curve-set").textContent = onlySeen ? "above the fold" : "of all resources";
  drawCurves($("curves"), results, endMs, onlySeen);
  fillFigures($("figures"), results);
  showLegend();
  showWhich();
  showGoal();
  const cut = results.find((result) => result.cut !== "");
  const notes = new Set(results.flatMap((result) => result.notes));
  const lost = results.some((result) => result.lost_ms.length > 0) ? LOST_GUIDE : "";
  $("guide").textContent = [GUIDE + lost, cut === undefined ? "" : `Time is ${cut.cut}.`, ...notes].join(" ");
}

function showLanes(fresh, endMs, highest) {
  const lanes = $("lanes");
  while (lanes.children.length > results.length) lanes.lastChild.remove();
  while (lanes.children.length < results.length) {
    lanes.append(element("div", { class: "lane" }, element("p"), element("canvas", { role: "img" })));
  }
  results.forEach((result, index) => {
    const [text, canvas] = lanes.children[index].children;
    lanes.children[index].classList.toggle("old", index >= fresh);
    lanes.children[index].classList.toggle("tall", highest > 4);
    const seen = result.byte_index_above_the_fold_ms;
    const sample = element("canvas", { class: "sample", "aria-hidden": "true" });
    text.replaceChildren(
      element("strong", {}, sample, ` ${result.scheme}`),
      element("span", {}, `ByteIndex ${result.byte_index_ms === null ? "–" : milliseconds(result.byte_index_ms)}`),
      element("span", {}, seen === null ? `above the fold: ${result.why_not_above_the_fold}` : `above the fold ${milliseconds(seen)}`),
      element("span", {}, `HOL-blocked ${shown(result.blocked_bytes, 0)} bytes`),
      ...(result.lost > 0 ? [element("span", {}, `${shown(result.lost, 0)} packets lost`)] : []),
    );
    drawLineSample(sample, lookOf(index));
    drawLane(canvas, result, endMs, highest);
  });
}

function showLegend() {
  const items = results.length === 0 ? [] : legendOf(results[0]);
  const samples = items.map(([label, faces]) => [element("canvas", { "aria-hidden": "true" }), label, faces]);
  $("legend").replaceChildren(...samples.map(([sample, label]) => element("li", {}, sample, label)));
  for (const [sample, , faces] of samples) drawSample(sample, faces);
}

// Texts with the colours before them: those of the classes, or of a small page's resources.
function legendOf(result) {
  if (result.classes.length > 0) return result.classes;
  const items = result.resources.map((row, index) => [result.numbers[index], row]);
  items.sort(([one], [other]) => one - other);
  return items.map(([number, row]) => [
    `${number + 1} ${shortened(row.id)}${row.above_the_fold ? " ▲" : ""}`,
    [result.faces[number]],
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
  if (result !== undefined) fillResources($("resources"), result);
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
  $("schemes").append(...schemeGroups());
  $("file").addEventListener("change", () => takeFile($("file").files[0]));
  $("which").addEventListener("change", showResources);
  $("controls").addEventListener("submit", (event) => event.preventDefault());
}

function pageOption(page) {
  const size = `${page.resources} resources, ${shown(page.bytes / 1000, 0)} kB`;
  return element("option", { value: page.name }, `${page.name} (${size})`);
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
    const order = catalogue.schemes.map((scheme) => scheme.name);
    set({ schemes: order.filter((each) => chosen.includes(each)) });
  });
  return element("label", {}, box, element("span", {}, name, " ", element("small", {}, title)));
}

function set(values) {
  state = { ...state, ...values };
  ignored = [];
  changed();
}

async function showState() {
  const seen = changes;
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
  for (const box of $("schemes").querySelectorAll("input")) {
    box.checked = state.schemes.includes(box.value);
    if (box.checked) box.closest("details").open = true;
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
  $("status").textContent = isReady ? "Reading the file…" : "Python is being loaded; then the file is read…";
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
  $("lesson-back").hidden = state.lesson < 2;
  $("lesson-end").hidden = step === undefined;
  $("lesson-next").hidden = state.lesson === LESSON.length;
  $("lesson-next").textContent = step === undefined ? "Start the lesson" : "Next step";
  if ($("lesson-body").dataset.step === String(state.lesson)) return;
  $("lesson-body").dataset.step = String(state.lesson);
  $("lesson-title").textContent =
    step === undefined ? "Lesson: five steps, some 15 minutes" : `Step ${state.lesson} of ${LESSON.length}: ${step.title}`;
  const text = step?.text ?? ["What is a strip, what should come first, what takes the choice away, what blocks, and when does sharing win?"];
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
    state = { ...DEFAULTS, document: undefined };
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
