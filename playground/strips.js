// Draws strips, their axis and the curves of what is there, in colours that differ in grey as well. Each picture has a text for those who do not see it; the tables have its data.

const RIGHT = 10;
const MARKS = 7;
const EDGE = 4;
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [12, 4], [4, 2, 1, 2, 1, 2]];
const LIGHT = {
  ink: "#1b1b1b",
  soft: "#595959",
  paper: "#ffffff",
  grid: "#e0e0e0",
  lost: "#c00000",
  dimmed: 0.15,
  chosen: "#b0307a",
  lines: ["#1b1b1b", "#0b4f8c", "#c4500a", "#007a5b", "#8f4a80", "#7a6400"],
};
const DARK = {
  ink: "#f2f2f2",
  soft: "#b4b4b4",
  paper: "#161616",
  grid: "#3a3a3a",
  lost: "#ff6b6b",
  dimmed: 0.35,
  chosen: "#ff8ac4",
  lines: ["#f2f2f2", "#7db8f0", "#ff9a57", "#4fd0aa", "#dd9fd0", "#d6bf4a"],
};
export const darkness = window.matchMedia("(prefers-color-scheme: dark)");
const colours = () => (darkness.matches ? DARK : LIGHT);
const typeScale = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
const fontOf = (px, weight = "") => `${weight} ${Math.round(px * typeScale())}px system-ui, sans-serif`;

// Strips and curves share the axis, so both leave room on the left for the labels of the curves.
const left = () => 44 * typeScale();

export function timeToX(width, endMs, atMs) {
  return left() + (atMs / endMs) * (width - left() - RIGHT);
}

export function xToTime(width, endMs, x) {
  return ((x - left()) / (width - left() - RIGHT)) * endMs;
}

// Black is a colour of resources; on a dark page it is white.
function faceOnPage(face) {
  const parts = darkness.matches ? face.match(/^#(..)(..)(..)$/) : null;
  const isBlack = parts !== null && parts.slice(1).every((part) => parseInt(part, 16) < 64);
  return isBlack ? "#ededed" : face;
}

// As h3sim.reporting.lane_layout.stack_share.
export function stackShare(height, highest) {
  if (highest === 1) return 1;
  const alone = 1 / (1 + 0.27 * (Math.min(highest, 8) - 1));
  return alone + ((1 - alone) * (height - 1)) / (highest - 1);
}

export function milliseconds(value) {
  return `${Math.round(value).toLocaleString("en")} ms`;
}

function contextOf(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

// With *chosen*, the index of a resource in the page, all others are pale.
export function drawLane(canvas, result, endMs, highest, chosen = null) {
  const { context, width, height } = contextOf(canvas);
  const room = height - MARKS;
  drawBoxes(context, result, (atMs) => timeToX(width, endMs, atMs), room, highest, chosen);
  numberRuns(context, result, (atMs) => timeToX(width, endMs, atMs), room, highest);
  if (result.above_the_fold_at_ms !== null) {
    markEnd(context, timeToX(width, endMs, result.above_the_fold_at_ms), height);
  }
  context.fillStyle = colours().lost;
  for (const at of result.lost_ms) context.fillRect(timeToX(width, endMs, at) - 1, room + 2, 2, MARKS - 2);
  canvas.setAttribute("aria-label", described(result));
}

// The same strip in the state before, below the present one: low and pale.
export function drawGhost(canvas, result, endMs, highest) {
  const { context, width, height } = contextOf(canvas);
  context.globalAlpha = 0.5;
  drawBoxes(context, result, (atMs) => timeToX(width, endMs, atMs), height, highest, null);
  context.globalAlpha = 1;
  if (result.above_the_fold_at_ms !== null) {
    markEnd(context, timeToX(width, endMs, result.above_the_fold_at_ms), height);
  }
}

function drawBoxes(context, result, xOf, room, highest, chosen) {
  const opacity = context.globalAlpha;
  for (const [resource, start, stop, level, of] of result.boxes) {
    const [from, to] = [xOf(start), xOf(stop)];
    const step = (stackShare(of, highest) * room) / of;
    const gap = !result.is_merged && to - from > 4 ? 0.6 : 0;
    context.fillStyle = faceOnPage(result.faces[resource]);
    context.globalAlpha = chosen === null || chosen === resource ? opacity : opacity * colours().dimmed;
    context.fillRect(from, room - (level + 1) * step, Math.max(to - from - gap, 0.5), step - gap);
  }
  context.globalAlpha = opacity;
  // An edge marks the chosen resource: narrow packets of a pale colour stand out by nothing else.
  context.fillStyle = colours().chosen;
  for (const [resource, start, stop] of result.boxes) {
    if (resource === chosen) context.fillRect(xOf(start), room - EDGE, Math.max(xOf(stop) - xOf(start), 1.5), EDGE);
  }
}

// The index in the page of the resource whose packet is drawn at *x*; null where there is none.
export function resourceAt(canvas, result, endMs, x) {
  const at = xToTime(canvas.getBoundingClientRect().width, endMs, x);
  const slack = endMs / 400;
  let [nearest, least] = [null, slack];
  for (const [resource, start, stop] of result.boxes) {
    const distance = Math.max(start - at, at - stop, 0);
    if (distance < least) [nearest, least] = [resource, distance];
  }
  return nearest;
}

// The number of a resource is drawn wherever its packets are alone for long enough to hold it.
function numberRuns(context, result, xOf, room, highest) {
  const half = 7 * typeScale();
  context.font = fontOf(11, "600");
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [resource, start, stop] of runsOf(result.boxes)) {
    const text = String(resource + 1);
    const needed = context.measureText(text).width + 6;
    if (xOf(stop) - xOf(start) < needed + 4) continue;
    const x = (xOf(start) + xOf(stop)) / 2;
    const y = room - (stackShare(1, highest) * room) / 2;
    context.fillStyle = colours().paper;
    context.fillRect(x - needed / 2, y - half, needed, 2 * half);
    context.fillStyle = colours().ink;
    context.fillText(text, x, y);
  }
}

function runsOf(boxes) {
  const runs = [];
  for (const [resource, start, stop, , height] of boxes) {
    const last = runs.at(-1);
    if (height !== 1) continue;
    if (last !== undefined && last[0] === resource && start - last[2] < (stop - start) / 100) last[2] = stop;
    else runs.push([resource, start, stop]);
  }
  return runs;
}

function markEnd(context, x, height) {
  context.strokeStyle = colours().paper;
  context.lineWidth = 5;
  context.setLineDash([]);
  stroke(context, x, height);
  context.strokeStyle = colours().ink;
  context.lineWidth = 2;
  context.setLineDash([4, 2]);
  stroke(context, x, height);
  context.setLineDash([]);
}

function stroke(context, x, height) {
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
}

function described(result) {
  const seen = result.above_the_fold_at_ms;
  const last = seen === null ? "" : `; what is above the fold is complete after ${milliseconds(seen)}`;
  return `Strip of ${result.scheme}: ${result.packets} packets, the last resource is complete after ${milliseconds(result.page_load_ms)}${last}.`;
}

function tickStep(endMs, room) {
  const least = (endMs * 70 * typeScale()) / room;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}

export function drawAxis(canvas, endMs) {
  const { context, width } = contextOf(canvas);
  drawTicks(context, endMs, left(), width - left() - RIGHT, 0);
}

function drawTicks(context, endMs, begin, room, top) {
  context.strokeStyle = context.fillStyle = colours().soft;
  context.font = fontOf(12);
  context.textBaseline = "top";
  context.beginPath();
  context.moveTo(begin, top + 0.5);
  context.lineTo(begin + room, top + 0.5);
  const step = tickStep(endMs, room);
  for (let at = 0; at <= endMs; at += step) {
    const x = begin + (at / endMs) * room;
    context.moveTo(x, top);
    context.lineTo(x, top + 5);
    const text = at === 0 ? "0 ms" : Number(at.toPrecision(6)).toLocaleString("en");
    const half = context.measureText(text).width / 2;
    context.textAlign = "left";
    context.fillText(text, Math.min(Math.max(x - half, begin), begin + room + RIGHT - 2 * half), top + 8);
  }
  context.stroke();
}

export function lookOf(index) {
  const { lines } = colours();
  return { colour: lines[index % lines.length], dash: DASHES[index % DASHES.length] };
}

// Times, and from each on the share of bytes in complete resources.
export function curveOf(result, onlySeen) {
  const rows = result.resources
    .filter((row) => row.bytes > 0 && (!onlySeen || row.above_the_fold))
    .sort((one, other) => one.finished_ms - other.finished_ms);
  const total = rows.reduce((sum, row) => sum + row.bytes, 0);
  let done = 0;
  return rows.map((row) => [row.finished_ms, (done += row.bytes) / total]);
}

// *before* has results of the state before by scheme; their curves are pale.
export function drawCurves(canvas, results, before, endMs, onlySeen) {
  const { context, width, height } = contextOf(canvas);
  const room = { left: left(), width: width - left() - RIGHT, top: 8, height: height - 14 - 20 * typeScale() };
  context.font = fontOf(12);
  context.fillStyle = colours().soft;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  for (const share of [0, 0.5, 1]) {
    const y = room.top + (1 - share) * room.height;
    context.fillText(`${share * 100} %`, left() - 6, y);
    context.strokeStyle = colours().grid;
    context.beginPath();
    context.moveTo(room.left, y);
    context.lineTo(room.left + room.width, y);
    context.stroke();
  }
  drawTicks(context, endMs, room.left, room.width, room.top + room.height);
  results.forEach((result, index) => {
    const old = before.get(result.scheme);
    context.globalAlpha = 0.35;
    if (old !== undefined) drawCurve(context, curveOf(old, onlySeen), room, endMs, lookOf(index));
    context.globalAlpha = 1;
    drawCurve(context, curveOf(result, onlySeen), room, endMs, lookOf(index));
  });
  const ends = results.map((result) => `${result.scheme} has half after ${halfOf(curveOf(result, onlySeen))}`);
  canvas.setAttribute("aria-label", `Share of the bytes in complete resources, over time: ${ends.join("; ")}.`);
}

function halfOf(points) {
  const half = points.find(([, share]) => share >= 0.5);
  return half === undefined ? "no time" : milliseconds(half[0]);
}

function drawCurve(context, points, room, endMs, look) {
  const x = (at) => room.left + (Math.min(at, endMs) / endMs) * room.width;
  const y = (share) => room.top + (1 - share) * room.height;
  context.strokeStyle = look.colour;
  context.setLineDash(look.dash);
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(room.left, y(0));
  let before = 0;
  for (const [at, share] of points) {
    context.lineTo(x(at), y(before));
    context.lineTo(x(at), y(share));
    before = share;
  }
  context.lineTo(room.left + room.width, y(before));
  context.stroke();
  context.setLineDash([]);
}

// The faces of a line of the legend, side by side.
export function drawSample(canvas, faces) {
  const { context, width, height } = contextOf(canvas);
  faces.forEach((face, index) => {
    context.fillStyle = faceOnPage(face);
    context.fillRect((index * width) / faces.length, 0, width / faces.length, height);
  });
}

export function drawLineSample(canvas, look) {
  const { context, width, height } = contextOf(canvas);
  context.strokeStyle = look.colour;
  context.setLineDash(look.dash);
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(0, height / 2);
  context.lineTo(width, height / 2);
  context.stroke();
}
