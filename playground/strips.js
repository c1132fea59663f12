// Draws strips, their axis and the curves of what is there, in colours that differ in grey as well. Each picture has a text for those who do not see it; the tables have its data.

const RIGHT = 10;
const MARKS = 7;
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [12, 4], [4, 2, 1, 2, 1, 2]];
const LINE_COLOURS = ["#1b1b1b", "#0b4f8c", "#c4500a", "#007a5b", "#8f4a80", "#7a6400"];
const LEFT = 44;

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

export function drawLane(canvas, result, endMs, highest) {
  const { context, width, height } = contextOf(canvas);
  const scale = (width - RIGHT) / endMs;
  const room = height - MARKS;
  for (const [resource, start, stop, level, of] of result.boxes) {
    const step = (stackShare(of, highest) * room) / of;
    const gap = !result.is_merged && (stop - start) * scale > 4 ? 0.6 : 0;
    context.fillStyle = result.faces[resource];
    context.fillRect(start * scale, room - (level + 1) * step, Math.max((stop - start) * scale - gap, 0.5), step - gap);
  }
  numberRuns(context, result, scale, room, highest);
  markEnd(context, result.above_the_fold_at_ms, scale, height);
  context.fillStyle = "#c00000";
  for (const at of result.lost_ms) context.fillRect(at * scale - 1, room + 2, 2, MARKS - 2);
  canvas.setAttribute("aria-label", described(result));
}

// The number of a resource stands wherever its packets are alone for long enough to hold it.
function numberRuns(context, result, scale, room, highest) {
  context.font = "600 11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [resource, start, stop] of runsOf(result.boxes)) {
    const text = String(resource + 1);
    const needed = context.measureText(text).width + 6;
    if ((stop - start) * scale < needed + 4) continue;
    const x = ((start + stop) / 2) * scale;
    const y = room - (stackShare(1, highest) * room) / 2;
    context.fillStyle = "#ffffff";
    context.fillRect(x - needed / 2, y - 7, needed, 14);
    context.fillStyle = "#1b1b1b";
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

function markEnd(context, atMs, scale, height) {
  if (atMs === null) return;
  context.strokeStyle = "#ffffff";
  context.lineWidth = 5;
  context.setLineDash([]);
  stroke(context, atMs * scale, height);
  context.strokeStyle = "#1b1b1b";
  context.lineWidth = 2;
  context.setLineDash([4, 2]);
  stroke(context, atMs * scale, height);
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
  const least = (endMs * 70) / room;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}

export function drawAxis(canvas, endMs) {
  const { context, width } = contextOf(canvas);
  const room = width - RIGHT;
  drawTicks(context, endMs, 0, room, 0);
}

function drawTicks(context, endMs, left, room, top) {
  context.strokeStyle = context.fillStyle = "#595959";
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "top";
  context.beginPath();
  context.moveTo(left, top + 0.5);
  context.lineTo(left + room, top + 0.5);
  const step = tickStep(endMs, room);
  for (let at = 0; at <= endMs; at += step) {
    const x = left + (at / endMs) * room;
    context.moveTo(x, top);
    context.lineTo(x, top + 5);
    const text = at === 0 ? "0 ms" : Number(at.toPrecision(6)).toLocaleString("en");
    const half = context.measureText(text).width / 2;
    context.textAlign = "left";
    context.fillText(text, Math.min(Math.max(x - half, left), left + room + RIGHT - 2 * half), top + 8);
  }
  context.stroke();
}

export function lookOf(index) {
  return { colour: LINE_COLOURS[index % LINE_COLOURS.length], dash: DASHES[index % DASHES.length] };
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

export function drawCurves(canvas, results, endMs, onlySeen) {
  const { context, width, height } = contextOf(canvas);
  const room = { left: LEFT, width: width - LEFT - RIGHT, top: 8, height: height - 34 };
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = "#595959";
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  for (const share of [0, 0.5, 1]) {
    const y = room.top + (1 - share) * room.height;
    context.fillText(`${share * 100} %`, LEFT - 6, y);
    context.strokeStyle = "#e0e0e0";
    context.beginPath();
    context.moveTo(room.left, y);
    context.lineTo(room.left + room.width, y);
    context.stroke();
  }
  drawTicks(context, endMs, room.left, room.width, room.top + room.height);
  results.forEach((result, index) => drawCurve(context, curveOf(result, onlySeen), room, endMs, lookOf(index)));
  const ends = results.map((result) => `${result.scheme} has half after ${halfOf(curveOf(result, onlySeen))}`);
  canvas.setAttribute("aria-label", `Share of the bytes that is there, over time: ${ends.join("; ")}.`);
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
    context.fillStyle = face;
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
