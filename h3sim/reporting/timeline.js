"use strict";
// One linked timeline per figure: strip, waterfall, progress, bytes on the wire and the send buffer over one axis.
// All it knows is in the figure's JSON. Names are only ever drawn or set as text.
for (const figure of document.querySelectorAll("figure.timeline")) {
  const part = (selector) => figure.querySelector(selector);
  const loads = JSON.parse(part("script").textContent);
  const [stage, base, over] = [part(".stage"), part("canvas"), part("canvas + canvas")];
  const [readout, chooser, body, scroller] = [part("output"), part("select"), part("tbody"), part(".rows")];
  const folding = part("[data-do=fold]"), open = new Set(), MANY_ROWS = 60;
  const AXIS = 24, STRIP = 72, GAP = 24, CURVE = 90, RIGHT = 14, LEAST_MS = 0.5;
  const DARK = "#1b1b1b", GREY = "#595959", LINE = "#dddddd";
  // None of them is the line of a scheme in the figures below.
  const PROGRESS = [{ colour: "#8c8c8c", dash: [], fill: "#e2e2e2" }, { colour: "#8a5a00", dash: [2, 2] }];
  const WIRE = { colour: "#5b84b1", dash: [], fill: "#d3e1f0" }, WINDOW = { colour: "#b0307a", dash: [8, 2, 2, 2] }, LOST = "#c00000", HELD = "#c00000", DROPPED = "#7a4a00";
  const BUFFER = { colour: "#4f7f52", dash: [], fill: "#d5e6d6" };
  let load, view, width, left, waterfall, pinned = null, hovered = null, cursor = null, waiting = 0, isStale = true, shown = null;

  const x = (at) => left + ((at - view[0]) / (view[1] - view[0])) * (width - left - RIGHT);
  const timeAt = (px) => view[0] + ((px - left) / (width - left - RIGHT)) * (view[1] - view[0]);
  // Where packets take no time nothing is ever on the wire.
  const hasWire = () => load.most > 1;
  const tops = () => {
    const strip = AXIS, rows = strip + STRIP + GAP, progress = rows + waterfall + GAP, wire = progress + CURVE + GAP;
    const buffer = (hasWire() ? wire : progress) + CURVE + GAP;
    return { strip, rows, progress, wire, buffer, end: buffer + (load.buffer === null ? -GAP : CURVE) + 6 };
  };
  const formats = [0, 1, 2, 3].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));
  const number = (value, digits = 0) => formats[digits].format(value);
  // One digit behind the point, so that columns align.
  const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const active = () => hovered ?? pinned;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // The index of the first item of a rising list that is at least *at*.
  function firstFrom(times, at) {
    let [low, high] = [0, times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function valueAt(curve, at) {
    const index = firstFrom(curve.t, at + 1e-9) - 1;
    return index < 0 ? 0 : curve.y[index];
  }

  // Rows of the waterfall as lists of resources: one each, or what mattered and a group per kind of
  // the rest, of which open ones are followed by theirs. Only what happens within the view has a row: zooming makes them higher.
  function shownRows() {
    return shown ??= listRows();
  }

  function listRows() {
    const isShown = (index) => load.resources[index].requested <= view[1] && load.resources[index].finished >= view[0];
    const one = (index) => ({ group: null, members: [index] });
    const rows = [];
    if (folding.checked) {
      rows.push(...load.matters.filter(isShown).map(one));
      for (const [group, members] of load.groups) {
        rows.push({ group, members });
        if (open.has(group)) rows.push(...members.filter(isShown).map(one));
      }
    } else {
      load.resources.forEach((_, index) => { if (isShown(index)) rows.push(one(index)); });
    }
    // Of an open group the rows of its resources come later, and count.
    const places = new Map(rows.flatMap(({ members }, place) => members.map((index) => [index, place])));
    return { rows, places, height: Math.min(18, waterfall / Math.max(1, rows.length)) };
  }

  function contextOf(canvas) {
    const ratio = window.devicePixelRatio || 1, height = tops().end;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      [canvas.width, canvas.height] = [w, h];
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    return context;
  }

  function clipped(context, draw) {
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left - RIGHT, tops().end);
    context.clip();
    draw();
    context.restore();
  }

  function drawBase() {
    const context = contextOf(base), at = tops();
    drawAxis(context, at);
    context.fillStyle = GREY;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText("packets", left - 8, at.strip + STRIP / 2);
    context.fillText("100 %", left - 8, at.progress + 6);
    load.progress.forEach((curve, index) => drawKey(context, curve.name, PROGRESS[index], at.progress + 30 + 16 * index));
    if (hasWire()) {
      context.fillText(`${number(load.most / 1000, load.most < 10000 ? 1 : 0)} kB`, left - 8, at.wire + 6);
      drawKey(context, "on the wire", WIRE, at.wire + 30);
      if (load.window !== null) drawKey(context, "window", WINDOW, at.wire + 46);
    }
    if (load.buffer !== null) {
      context.fillText(`${number(load.mostBuffered / 1000, load.mostBuffered < 10000 ? 1 : 0)} kB`, left - 8, at.buffer + 6);
      drawKey(context, "send buffer", BUFFER, at.buffer + 30);
    }
    clipped(context, () => {
      drawPackets(context, at.strip, null);
      for (const [times, colour] of [[load.dropped, DROPPED], [load.lost, LOST]]) {
        context.fillStyle = colour;
        for (const ms of times) context.fillRect(x(ms) - 0.75, at.strip + STRIP + 2, 1.5, 6);
      }
      drawFold(context, at);
      load.progress.forEach((curve, index) => drawSteps(context, curve, at.progress, 1, PROGRESS[index]));
      if (hasWire()) drawWire(context, at.wire);
      if (load.buffer !== null) drawSteps(context, load.buffer, at.buffer, load.mostBuffered, BUFFER);
    });
    drawRows(context, at.rows);
    isStale = false;
  }

  function drawAxis(context, at) {
    const span = view[1] - view[0], least = (span * 80) / Math.max(80, width - left - RIGHT);
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least);
    context.textAlign = "center";
    context.textBaseline = "top";
    for (let tick = Math.ceil(view[0] / step) * step; tick <= view[1]; tick += step) {
      context.fillStyle = LINE;
      context.fillRect(x(tick), AXIS - 6, 1, at.end - AXIS);
      context.fillStyle = GREY;
      context.fillText(number(tick, 3), clamp(x(tick), left + 4, width - 26), 2);
    }
    context.textAlign = "right";
    context.fillText("ms", left - 8, 2);
  }

  // Packets in view: all, or those of one resource.
  function drawPackets(context, top, only) {
    const { row, start, stop, level, height } = load.packets;
    const alone = 1 / (1 + 0.27 * (Math.min(load.highest, 8) - 1));
    const share = (of) => (load.highest === 1 ? 1 : alone + ((1 - alone) * (of - 1)) / (load.highest - 1));
    const pixel = 1 / (window.devicePixelRatio || 1);
    let [colour, lastTo, lastLevel] = [null, -1, 0];
    for (let index = firstFrom(stop, view[0]); index < stop.length && start[index] <= view[1]; index += 1) {
      if (only !== null && row[index] !== only) continue;
      const [from, to] = [x(start[index]), x(stop[index])];
      // Of packets that share a pixel some are enough.
      if (to - lastTo < pixel && level[index] <= lastLevel) continue;
      [lastTo, lastLevel] = [to, level[index]];
      const face = load.resources[row[index]].face;
      if (face !== colour) context.fillStyle = colour = face;
      const high = (share(height[index]) * STRIP) / height[index];
      const gap = to - from > 4 ? 0.6 : 0;
      context.fillRect(from, top + STRIP - (level[index] + 1) * high, Math.max(to - from - gap, only === null ? 0.5 : 1), high - gap);
    }
  }

  function drawFold(context, at) {
    if (load.fold === null) return;
    context.setLineDash([4, 2]);
    for (const [colour, line] of [["#ffffff", 4], [DARK, 1.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = line;
      context.beginPath();
      context.moveTo(x(load.fold), at.strip);
      context.lineTo(x(load.fold), at.strip + STRIP);
      context.stroke();
    }
    context.setLineDash([]);
  }

  function drawRows(context, top) {
    const { rows, places, height } = shownRows();
    const isHigh = height >= 6;
    clipped(context, () => {
      rows.forEach(({ group, members }, place) => {
        if (!open.has(group)) drawBar(context, members, top + place * height, height, isHigh ? 0.3 : 1);
      });
      if (isHigh) drawArrivals(context, top, height, places);
    });
    if (height < 10) return;
    rows.forEach(({ group, members }, place) => {
      const mark = open.has(group) ? "\u25be" : "\u25b8";
      const label = group === null ? load.resources[members[0]].label : `${mark} ${members.length} \u00d7 ${group}`;
      drawLabel(context, label, top + (place + 0.5) * height);
    });
  }

  // Bars are in full colour only where bytes came.
  function drawArrivals(context, top, height, places) {
    const { row, start, stop } = load.packets, spans = new Map(), placeOf = new Int32Array(load.resources.length);
    const pixel = 1 / (window.devicePixelRatio || 1);
    load.resources.forEach((_, index) => { placeOf[index] = places.get(index) ?? -1; });
    const runs = new Array(load.resources.length).fill(null);
    const flush = (place) => {
      const { face, from, to } = runs[place];
      if (!spans.has(face)) spans.set(face, []);
      spans.get(face).push(from, top + (place + 0.14) * height, Math.max(1, to - from));
    };
    for (let index = firstFrom(stop, view[0]); index < stop.length && start[index] <= view[1]; index += 1) {
      const place = placeOf[row[index]];
      if (place < 0) continue;
      const from = x(start[index]), to = x(stop[index]), face = load.resources[row[index]].row_face, run = runs[place];
      // Packets of a row that touch are one rectangle.
      if (run !== null && run.face === face && from - run.to < pixel) run.to = Math.max(run.to, to);
      else {
        if (run !== null) flush(place);
        runs[place] = { face, from, to };
      }
    }
    runs.forEach((run, place) => { if (run !== null) flush(place); });
    // Colour by colour: changing it costs more than a rectangle.
    for (const [face, list] of spans) {
      context.fillStyle = face;
      for (let at = 0; at < list.length; at += 3) context.fillRect(list[at], list[at + 1], list[at + 2], height * 0.72);
    }
  }

  function drawBar(context, members, y, height, opacity) {
    const thick = Math.max(0.6, height * 0.72), middle = y + height / 2;
    let [requested, arrived, first, finished] = [Infinity, Infinity, Infinity, 0];
    for (const index of members) {
      const row = load.resources[index];
      requested = Math.min(requested, row.requested);
      arrived = Math.min(arrived, row.arrived);
      first = Math.min(first, row.first);
      finished = Math.max(finished, row.finished);
    }
    context.fillStyle = GREY;
    context.fillRect(x(requested), middle - 0.5, x(arrived) - x(requested), 1);
    context.fillStyle = members.length === 1 ? load.resources[members[0]].row_face : "#b8b8b8";
    context.globalAlpha = opacity;
    context.fillRect(x(first), middle - thick / 2, Math.max(1, x(finished) - x(first)), thick);
    context.globalAlpha = 1;
    // What had arrived, and waited for others.
    context.fillStyle = HELD;
    const narrow = Math.max(1, thick * 0.375);
    for (const index of members) {
      for (const [from, to] of load.resources[index].held) {
        if (to < view[0] || from > view[1]) continue;
        context.fillRect(x(from), middle - narrow / 2, Math.max(0.5, x(to) - x(from)), narrow);
      }
    }
  }

  function drawLabel(context, label, middle) {
    context.fillStyle = DARK;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const mark = label.match(/ \u25b2$/)?.[0] ?? "", name = label.slice(0, label.length - mark.length);
    let [fitting, length] = [label, name.length];
    while (length > 4 && context.measureText(fitting).width > left - 10) fitting = `${name.slice(0, --length)}\u2026${mark}`;
    context.fillText(fitting, left - 8, middle);
  }

  // The name of a line, and a sample of it before, left of the panel.
  function drawKey(context, name, look, middle) {
    const end = left - 8 - context.measureText(name).width - 4;
    context.fillText(name, left - 8, middle);
    if (end < 16) return;
    setLook(context, look);
    context.beginPath();
    context.moveTo(end - 20, middle);
    context.lineTo(end, middle);
    context.stroke();
    context.setLineDash([]);
  }

  function setLook(context, { colour, dash }) {
    context.strokeStyle = colour;
    context.lineWidth = 1.75;
    context.setLineDash(dash);
  }

  function drawSteps(context, curve, top, most, look) {
    const y = (value) => top + CURVE - (value / most) * CURVE;
    setLook(context, look);
    context.beginPath();
    const from = Math.max(0, firstFrom(curve.t, view[0]) - 1);
    let before = from < curve.t.length ? curve.y[from] : 0;
    context.moveTo(x(curve.t[from] ?? 0), y(before));
    const pixel = 1 / (window.devicePixelRatio || 1);
    for (let index = from; index < curve.t.length && curve.t[Math.max(0, index - 1)] <= view[1]; index += 1) {
      const at = x(curve.t[index]);
      context.lineTo(at, y(before));
      // Of steps that share a pixel the lowest, the highest and the last: thousands would be invisible.
      let [low, high] = [before = curve.y[index], curve.y[index]];
      while (index + 1 < curve.t.length && x(curve.t[index + 1]) - at < pixel) {
        index += 1;
        before = curve.y[index];
        low = Math.min(low, before);
        high = Math.max(high, before);
      }
      if (low !== high) {
        context.lineTo(at, y(low));
        context.lineTo(at, y(high));
      }
      context.lineTo(at, y(before));
    }
    context.lineTo(x(load.end), y(before));
    context.stroke();
    context.setLineDash([]);
    if (look.fill === undefined) return;
    context.lineTo(x(load.end), y(0));
    context.lineTo(x(curve.t[from] ?? 0), y(0));
    context.fillStyle = look.fill;
    context.globalCompositeOperation = "multiply";
    context.fill();
    context.globalCompositeOperation = "source-over";
  }

  function drawWire(context, top) {
    drawSteps(context, load.wire, top, load.most, WIRE);
    if (load.window !== null) drawSteps(context, load.window, top, load.most, WINDOW);
  }

  function drawOver() {
    const context = contextOf(over), at = tops(), index = active();
    if (index !== null) {
      context.fillStyle = "rgba(255, 255, 255, 0.75)";
      context.fillRect(left, at.strip, width - left - RIGHT, STRIP);
      context.fillRect(0, at.rows, width, waterfall);
      clipped(context, () => drawPackets(context, at.strip, index));
      const { places, height } = shownRows(), place = places.get(index) ?? -1;
      if (place >= 0) {
        const high = Math.max(height, 4);
        const y = clamp(at.rows + place * height + (height - high) / 2, at.rows, at.rows + waterfall - high);
        clipped(context, () => drawBar(context, [index], y, high, 1));
        drawLabel(context, load.resources[index].label, y + high / 2);
      }
      clipped(context, () => {
        context.fillStyle = "#c2005f";
        for (const each of [load.resources[index].requested, load.resources[index].finished]) {
          context.fillRect(x(each) - 0.75, at.strip, 1.5, at.end - at.strip);
        }
      });
    }
    if (cursor !== null && cursor >= view[0] && cursor <= view[1]) {
      context.fillStyle = DARK;
      context.fillRect(x(cursor) - 0.5, AXIS - 6, 1, at.end - AXIS);
    }
    tell(index);
  }

  function tell(index) {
    const texts = [];
    if (cursor !== null) {
      const shares = load.progress.map((curve) => `${number(100 * valueAt(curve, cursor), 1)} % ${curve.name}`);
      const wire = hasWire() ? `; ${number(valueAt(load.wire, cursor) / 1000, 1)} kB on the wire` : "";
      texts.push(`${number(cursor, 2)} ms: ${shares.join(", ")}${wire}`);
      if (load.window !== null) texts.push(`window ${number(valueAt(load.window, cursor) / 1000, 1)} kB`);
      if (load.buffer !== null) texts.push(`send buffer ${number(valueAt(load.buffer, cursor) / 1000, 1)} kB`);
    }
    if (index !== null) {
      const row = load.resources[index];
      const [asked, arrived, first, done] = [row.requested, row.arrived, row.first, row.finished].map((at) => number(at, 2));
      texts.push(`${row.name}, ${row.kind}: ${number(row.bytes)} bytes, requested at ${asked}, first packet at ${arrived}, first byte delivered at ${first}, complete at ${done} ms`);
      if (cursor !== null) texts.push(`then ${stateAt(row, cursor)}`);
    }
    readout.textContent = texts.join("; ") || "Point at a packet or a row.";
  }

  // What a resource waits for at an instant.
  function stateAt(row, at) {
    if (at < row.requested) return "not requested";
    if (at >= row.finished) return "complete";
    if (row.held.some(([from, to]) => from <= at && at < to)) return "bytes have arrived and are held back";
    return at < row.arrived ? "nothing has arrived" : "all that has arrived is delivered";
  }

  function redraw(hasNewView = false) {
    if (hasNewView) [isStale, shown] = [true, null];
    if (waiting) return;
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      if (isStale) drawBase();
      drawOver();
    });
  }

  function look(from, to) {
    const span = clamp(to - from, LEAST_MS, load.end);
    const begin = clamp(from, 0, load.end - span);
    view = [begin, begin + span];
    redraw(true);
  }

  function zoom(factor, around = cursor ?? (view[0] + view[1]) / 2) {
    const at = clamp(around, ...view);
    look(at - (at - view[0]) * factor, at + (view[1] - at) * factor);
  }

  function resourceAt(px, py) {
    const at = tops(), ms = timeAt(px);
    if (px < left && py < at.rows) return null;
    if (py >= at.strip && py < at.strip + STRIP) {
      const { row, start, stop, level, height } = load.packets;
      const slack = ((view[1] - view[0]) / Math.max(1, width - left)) * 1.5;
      let best = null;
      for (let index = firstFrom(stop, ms - slack); index < stop.length && start[index] <= ms + slack; index += 1) {
        const high = STRIP / Math.max(height[index], 1);
        const isInside = start[index] <= ms && ms <= stop[index];
        if (best === null || (isInside && level[index] <= (at.strip + STRIP - py) / high)) best = row[index];
        if (stop[index] > ms + slack) break;
      }
      return best;
    }
    const row = rowAt(py);
    return row === null || row.group !== null ? null : row.members[0];
  }

  function rowAt(py) {
    const top = tops().rows, { rows, height } = shownRows();
    return py < top || py >= top + waterfall ? null : rows[Math.floor((py - top) / height)] ?? null;
  }

  function toggle(group) {
    if (!open.delete(group)) open.add(group);
    resize();
  }

  function mark() {
    for (const row of body.querySelectorAll(".on")) row.classList.remove("on");
    const row = active() === null ? null : body.children[active()];
    row?.classList.add("on");
    return row;
  }

  function hover(index) {
    if (index === hovered) return;
    hovered = index;
    mark();
  }

  function pin(index) {
    pinned = index;
    hovered = null;
    const row = mark();
    if (row) scroller.scrollTop = row.offsetTop - scroller.clientHeight / 2;
    redraw();
  }

  // 20,000 packets are drawn in a frame: their numbers lie side by side.
  for (const { packets } of loads) {
    for (const key of Object.keys(packets)) packets[key] = Float64Array.from(packets[key]);
  }

  function choose(chosen) {
    load = loads[chosen];
    load.groups = new Map();
    const mattering = new Set(load.matters);
    load.resources.forEach((row, index) => {
      if (mattering.has(index)) return;
      if (!load.groups.has(row.kind)) load.groups.set(row.kind, []);
      load.groups.get(row.kind).push(index);
    });
    load.highest = load.packets.height.reduce((most, each) => Math.max(most, each), 1);
    load.most = Math.max(1, ...[load.wire, load.window ?? load.wire].map(({ y }) => y.reduce((most, each) => Math.max(most, each), 0)));
    load.mostBuffered = load.buffer === null ? 1 : load.buffer.y.reduce((most, each) => Math.max(most, each), 1);
    hovered = null;
    if (pinned >= load.resources.length) pinned = null;
    const cells = (row) => [row.name, row.kind, row.bytes, row.requested, row.arrived, row.first, row.finished];
    body.replaceChildren(
      ...load.resources.map((row, index) => {
        const line = document.createElement("tr");
        cells(row).forEach((value, column) => {
          const cell = line.appendChild(document.createElement(column === 0 ? "th" : "td"));
          if (column === 0) cell.scope = "row";
          cell.textContent = typeof value !== "number" ? value : column === 2 ? number(value) : tenths.format(value);
        });
        line.addEventListener("pointerenter", () => { hover(index); redraw(); });
        line.addEventListener("pointerleave", () => { hover(null); redraw(); });
        line.addEventListener("click", () => pin(pinned === index ? null : index));
        return line;
      }),
    );
    const end = Math.max(...loads.map((each) => each.end));
    for (const each of loads) each.end = end;
    if (view === undefined) view = [0, end];
    mark();
    resize();
  }

  function resize() {
    width = stage.clientWidth;
    left = width < 640 ? 100 : 220;
    const sizes = [...load.groups].map(([group, { length }]) => (open.has(group) ? 1 + length : 1));
    const rows = folding.checked ? sizes.reduce((sum, each) => sum + each, load.matters.length) : load.resources.length;
    // As many as are not folded at first are high enough for their labels.
    waterfall = clamp(rows * 18, 60, Math.max(420, Math.min(rows, MANY_ROWS) * 12));
    redraw(true);
  }

  const step = (direction) => {
    const next = (pinned ?? (direction > 0 ? -1 : load.resources.length)) + direction;
    pin(clamp(next, 0, load.resources.length - 1));
    cursor = load.resources[pinned].finished;
    if (cursor < view[0] || cursor > view[1]) look(cursor - (view[1] - view[0]) / 2, cursor + (view[1] - view[0]) / 2);
  };
  const move = (direction) => {
    const span = view[1] - view[0];
    cursor = clamp((cursor ?? view[0]) + (direction * span) / 100, 0, load.end);
    if (cursor < view[0] || cursor > view[1]) look(view[0] + (direction * span) / 2, view[1] + (direction * span) / 2);
  };
  const KEYS = {
    ArrowLeft: () => move(-1),
    ArrowRight: () => move(1),
    ArrowUp: () => step(-1),
    ArrowDown: () => step(1),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    Home: () => look(0, load.end),
    Escape: () => pin(null),
    Enter: () => {
      if (folding.checked && pinned !== null && !load.matters.includes(pinned)) toggle(load.resources[pinned].kind);
    },
  };
  stage.addEventListener("keydown", (event) => {
    if (!Object.hasOwn(KEYS, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    KEYS[event.key]();
    redraw();
  });

  let drag = null;
  const place = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  stage.addEventListener("pointerdown", (event) => {
    drag = { from: place(event)[0], view: [...view], moved: false };
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointermove", (event) => {
    const [px, py] = place(event);
    if (drag !== null && Math.abs(px - drag.from) > 3) drag.moved = true;
    if (drag?.moved) {
      const shift = ((drag.from - px) / (width - left - RIGHT)) * (drag.view[1] - drag.view[0]);
      look(drag.view[0] + shift, drag.view[1] + shift);
      return;
    }
    cursor = px < left ? null : clamp(timeAt(px), 0, load.end);
    hover(resourceAt(px, py));
    redraw();
  });
  stage.addEventListener("pointerup", (event) => {
    if (drag !== null && !drag.moved) {
      const [px, py] = place(event), row = rowAt(py), index = resourceAt(px, py);
      if (row !== null && row.group !== null) toggle(row.group);
      else pin(index === pinned ? null : index);
    }
    drag = null;
  });
  stage.addEventListener("pointercancel", () => { drag = null; });
  stage.addEventListener("pointerleave", () => {
    hover(null);
    cursor = null;
    redraw();
  });
  // Without a key the wheel scrolls the page, as everywhere.
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, timeAt(place(event)[0]));
  }, { passive: false });
  part("[data-do=in]").addEventListener("click", () => zoom(0.5));
  part("[data-do=out]").addEventListener("click", () => zoom(2));
  part("[data-do=all]").addEventListener("click", () => look(0, load.end));
  chooser.addEventListener("change", () => choose(chooser.selectedIndex));
  folding.checked = loads[0].resources.length > MANY_ROWS;
  folding.addEventListener("change", resize);
  new ResizeObserver(() => { if (stage.clientWidth !== width) resize(); }).observe(stage);
  choose(0);
}
