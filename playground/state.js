// What was chosen, and how a link says it. A link restores the same picture: what is random goes by
// the seed, and a page of one's own is in the link itself.

export const STEPS = {
  rate: [0.25, 0.5, 0.8, 1.12, 1.5, 2, 3, 5, 8, 10, 15, 20, 30, 50, 100],
  rtt: [0, 10, 20, 30, 40, 50, 75, 100, 150, 200, 300, 600],
  loss: [0, 0.1, 0.5, 1, 2, 3, 5, 10],
  buffer: [0, 14, 50, 100, 280, 500, 1000, 2000],
};
// What a link, or a recording, may set beyond the steps of the sliders.
export const LIMITS = { rate: [0.05, 1000], rtt: [0, 2000], loss: [0, 50], buffer: [0, 10000] };
export const UNITS = { rate: "Mbit/s", rtt: "ms", loss: "%", buffer: "kB" };
export const CHOICES = {
  transport: {
    quic: "QUIC: each stream in its own order",
    tcp: "TCP: all bytes in one order",
    qmux: "QMux: HTTP/3 over TCP",
  },
  cc: {
    "": "a constant rate; NewReno where packets get lost",
    newreno: "NewReno",
    cubic: "CUBIC",
    bbr: "BBR",
  },
  reorder: {
    none: "none",
    "4:1-3": "every 4th, behind 1 to 3 others",
    "8:1-7": "every 8th, behind 1 to 7 others",
  },
};
export const DEFAULTS = Object.freeze({
  page: "davies-meenan",
  schemes: Object.freeze(["rr", "fifo", "dfifo", "bucket-html"]),
  rate: 1.12,
  rtt: 0,
  loss: 0,
  buffer: 0,
  transport: "quic",
  cc: "",
  reorder: "none",
  seed: 0,
  lesson: 0,
  lecture: 0,
});
export const OWN_PAGE = "own page";
// In the name of a scheme that is a client before a server; links have "~" for it.
export const BEFORE = " before ";
const MAX_SEED = 999999;
const MAX_LESSON = 5;
const MAX_LINK = 30000;

// What is asked of simulator.py for one scheme. Answers that were computed when the site was built
// go by this text.
export function requestOf(state, scheme) {
  return JSON.stringify({ page: state.document ?? state.page, scheme, options: optionsOf(state) });
}

// The options of a load, by the names that h3sim has for them.
export function optionsOf(state) {
  const options = {
    rate_mbps: state.rate,
    rtt_ms: state.rtt,
    send_buffer_kb: state.buffer,
    transport: state.transport,
    seed: state.seed,
  };
  if (state.loss > 0) options.loss = state.loss / 100;
  if (state.cc !== "") options.cc = state.cc;
  if (state.reorder !== "none") options.reorder = state.reorder;
  return options;
}

export function nearest(steps, value) {
  let best = 0;
  steps.forEach((step, index) => {
    if (Math.abs(step - value) < Math.abs(steps[best] - value)) best = index;
  });
  return best;
}

// The fragment of a link, and whether it has all: a large page of one's own is left out.
export async function fragmentOf(state) {
  const fields = new URLSearchParams();
  for (const [key, value] of Object.entries(DEFAULTS)) {
    if (key === "schemes") fields.set(key, state.schemes.map((name) => name.replace(BEFORE, "~")).join(" "));
    else if (key === "page" && state.document === undefined) fields.set(key, state.page);
    else if (key !== "page" && state[key] !== value) fields.set(key, String(state[key]));
  }
  const data = state.document === undefined ? "" : await packed(state.document);
  const isWhole = data.length <= MAX_LINK;
  if (isWhole && data !== "") fields.set("data", data);
  return { text: fields.toString(), isWhole };
}

// Whatever stands in a link: what is not known is left as it is by default, and told.
export async function stateOf(fragment, catalogue) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const state = { ...DEFAULTS, schemes: [...DEFAULTS.schemes] };
  const ignored = [];
  for (const [key, value] of fields) {
    if (!(await taken(state, key, value, catalogue))) ignored.push(`${key}=${value}`.slice(0, 80) + neededFor(key));
  }
  return { state, ignored };
}

// What a key of a link takes, where that can be said in a few words.
function neededFor(key) {
  const [low, high] = LIMITS[key] ?? { seed: [0, MAX_SEED], lesson: [0, MAX_LESSON], lecture: [0, 1] }[key] ?? [];
  if (low !== undefined) return ` (${low} to ${high.toLocaleString("en")} ${UNITS[key] ?? ""}`.trimEnd() + " is possible)";
  if (Object.hasOwn(CHOICES, key)) return ` (possible: ${Object.keys(CHOICES[key]).filter((each) => each !== "").join(", ")})`;
  if (key === "page") return " (no such page)";
  if (key === "schemes") return " (not all of these are schemes)";
  if (key === "data") return " (not a page)";
  return " (no such setting)";
}

async function taken(state, key, value, catalogue) {
  if (key === "data") return takenPage(state, value);
  if (key === "page") return takenIf(catalogue.pages.some((page) => page.name === value), state, key, value);
  if (key === "schemes") return takenSchemes(state, value, catalogue);
  if (Object.hasOwn(CHOICES, key)) return takenIf(Object.hasOwn(CHOICES[key], value), state, key, value);
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number)) return false;
  if (Object.hasOwn(LIMITS, key)) return takenIf(number >= LIMITS[key][0] && number <= LIMITS[key][1], state, key, number);
  const isWhole = Number.isInteger(number) && number >= 0;
  if (key === "seed") return takenIf(isWhole && number <= MAX_SEED, state, key, number);
  if (key === "lesson") return takenIf(isWhole && number <= MAX_LESSON, state, key, number);
  if (key === "lecture") return takenIf(isWhole && number <= 1, state, key, number);
  return false;
}

function takenIf(isGood, state, key, value) {
  if (isGood) state[key] = value;
  return isGood;
}

function takenSchemes(state, value, catalogue) {
  const names = value.split(" ").filter((name) => name !== "").map((name) => name.replace("~", BEFORE));
  state.schemes = inOrder(names, catalogue);
  return state.schemes.length === new Set(names).size;
}

// Of those names the schemes that there are, in the order of the catalogue, and then the pairs.
export function inOrder(names, catalogue) {
  const pairs = [...new Set(names)].filter((name) => {
    const [client, server] = name.split(BEFORE);
    return (catalogue.clients ?? []).includes(client) && (catalogue.servers ?? []).includes(server);
  });
  return [...catalogue.schemes.map((scheme) => scheme.name).filter((name) => names.includes(name)), ...pairs];
}

async function takenPage(state, value) {
  if (value.length > MAX_LINK) return false; // none is written: it would unpack to anything
  try {
    const document = JSON.parse(await unpacked(value));
    if (document === null || typeof document !== "object" || Array.isArray(document)) return false;
    state.document = document;
    state.page = OWN_PAGE;
    return true;
  } catch {
    return false;
  }
}

async function packed(document) {
  const stream = new Blob([JSON.stringify(document)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}
