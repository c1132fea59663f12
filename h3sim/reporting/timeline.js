"use strict";
// One linked timeline per figure: strip, waterfall, progress and bytes on the wire over one axis.
// All it knows is in the figure's JSON. Names are only ever drawn or set as text.
for (const figure of document.querySelectorAll("figure.timeline")) {
  const part = (selector) => figure.querySelector(selector);
  const loads = JSON.parse(part("script").textContent);
  const [stage, base, over] = [part(".stage"), part("canvas"), part("canvas + canvas")];
  const [readout, chooser, body, scroller] = [part("output"), part("select"), part("tbody"), part(".rows")];
  const AXIS = 24, STRIP = 72, GAP = 24, CURVE = 90, RIGHT = 14, LEAST_MS = 0.5;
  const DARK = "#1b1b1b", GREY = "#595959", LINE = "#dddddd";
  const PROGRESS = ["#1b1b1b", "#0b4f8c"], WIRE = "#9bb8d6", WINDOW = "#c4500a", LOST = "#c00000";
  let load, view, width, left, waterfall, pinned = null, hovered = null, cursor = null, waiting = 0, isStale = true;

  const x = (at) => left + ((at - view[0]) / (view[1] - view[0])) * (width - left - RIGHT);
  const timeAt = (px) => view[0] + ((px - left) / (width - left - RIGHT)) * (view[1] - view[0]);
  const tops = () => {
    const strip = AXIS, rows = strip + STRIP + GAP, progress = rows + waterfall + GAP, wire = progress + CURVE + GAP;
    return { strip, rows, progress, wire, end: wire + CURVE + 6 };
  };
  const number = (value, digits = 0) => value.toLocaleString("en", { maximumFractionDigits: digits });
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

  // Only rows that something happens in within the view: zooming in makes them higher.
  function shownRows() {
    const rows = [];
    load.resources.forEach((row, index) => {
      if (row.requested <= view[1] && row.finished >= view[0]) rows.push(index);
    });
    return { rows, height: Math.min(18, waterfall / Math.max(1, rows.length)) };
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
    context.fillText("complete", left - 8, at.progress + CURVE / 2);
    context.fillText(`${number(load.most / 1000)} kB`, left - 8, at.wire + 6);
    context.fillText(load.window === null ? "on the wire" : "wire, window", left - 8, at.wire + CURVE / 2);
    clipped(context, () => {
      drawPackets(context, at.strip, null);
      context.fillStyle = LOST;
      for (const ms of load.lost) context.fillRect(x(ms) - 0.75, at.strip + STRIP + 2, 1.5, 6);
      drawFold(context, at);
      load.progress.forEach((curve, index) => drawSteps(context, curve, at.progress, 1, PROGRESS[index], index === 1));
      drawWire(context, at.wire);
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
      context.fillText(number(tick, 3), clamp(x(tick), left + 12, width - 26), 2);
    }
    context.textAlign = "right";
    context.fillText("ms", left - 8, 2);
  }

  // Packets in view: all, or those of one resource.
  function drawPackets(context, top, only) {
    const { row, start, stop, level, height } = load.packets;
    const alone = 1 / (1 + 0.27 * (Math.min(load.highest, 8) - 1));
    const share = (of) => (load.highest === 1 ? 1 : alone + ((1 - alone) * (of - 1)) / (load.highest - 1));
    let [colour, lastTo, lastLevel] = [null, -1, 0];
    for (let index = firstFrom(stop, view[0]); index < stop.length && start[index] <= view[1]; index += 1) {
      if (only !== null && row[index] !== only) continue;
      const [from, to] = [x(start[index]), x(stop[index])];
      // Of packets narrower than half a pixel some are enough.
      if (to - lastTo < 0.5 && level[index] <= lastLevel) continue;
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
    const { rows, height } = shownRows();
    const isHigh = height >= 6;
    clipped(context, () => {
      rows.forEach((index, place) => drawBar(context, index, top + place * height, height, isHigh ? 0.3 : 1));
      if (isHigh) drawArrivals(context, top, height, new Map(rows.map((index, place) => [index, place])));
    });
    if (height >= 10) rows.forEach((index, place) => drawLabel(context, index, top + (place + 0.5) * height));
  }

  // Bars are in full colour only where bytes came.
  function drawArrivals(context, top, height, places) {
    const { row, start, stop } = load.packets;
    for (let index = firstFrom(stop, view[0]); index < stop.length && start[index] <= view[1]; index += 1) {
      context.fillStyle = load.resources[row[index]].row_face;
      const from = x(start[index]);
      context.fillRect(from, top + (places.get(row[index]) + 0.14) * height, Math.max(0.5, x(stop[index]) - from), height * 0.72);
    }
  }

  function drawBar(context, index, y, height, opacity) {
    const row = load.resources[index], thick = Math.max(0.6, height * 0.72), middle = y + height / 2;
    context.fillStyle = GREY;
    context.fillRect(x(row.requested), middle - 0.5, x(row.first) - x(row.requested), 1);
    context.fillStyle = row.row_face;
    context.globalAlpha = opacity;
    context.fillRect(x(row.first), middle - thick / 2, Math.max(1, x(row.finished) - x(row.first)), thick);
    context.globalAlpha = 1;
  }

  function drawLabel(context, index, middle) {
    context.fillStyle = DARK;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText(load.resources[index].label, left - 8, middle);
  }

  function drawSteps(context, curve, top, most, colour, isDashed) {
    const y = (value) => top + CURVE - (value / most) * CURVE;
    context.strokeStyle = colour;
    context.lineWidth = 1.75;
    context.setLineDash(isDashed ? [6, 3] : []);
    context.beginPath();
    const from = Math.max(0, firstFrom(curve.t, view[0]) - 1);
    let before = from < curve.t.length ? curve.y[from] : 0;
    context.moveTo(x(curve.t[from] ?? 0), y(before));
    for (let index = from; index < curve.t.length && curve.t[Math.max(0, index - 1)] <= view[1]; index += 1) {
      context.lineTo(x(curve.t[index]), y(before));
      context.lineTo(x(curve.t[index]), y(curve.y[index]));
      before = curve.y[index];
    }
    context.lineTo(x(load.end), y(before));
    context.stroke();
    context.setLineDash([]);
  }

  function drawWire(context, top) {
    drawSteps(context, load.wire, top, load.most, WIRE, false);
    if (load.window !== null) drawSteps(context, load.window, top, load.most, WINDOW, true);
  }

  function drawOver() {
    const context = contextOf(over), at = tops(), index = active();
    if (index !== null) {
      context.fillStyle = "rgba(255, 255, 255, 0.75)";
      context.fillRect(left, at.strip, width - left - RIGHT, STRIP);
      context.fillRect(0, at.rows, width, waterfall);
      clipped(context, () => drawPackets(context, at.strip, index));
      const { rows, height } = shownRows(), place = rows.indexOf(index);
      if (place >= 0) {
        const high = Math.max(height, 4);
        const y = clamp(at.rows + place * height + (height - high) / 2, at.rows, at.rows + waterfall - high);
        clipped(context, () => drawBar(context, index, y, high, 1));
        drawLabel(context, index, y + high / 2);
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
      texts.push(`${number(cursor, 2)} ms: ${shares.join(", ")}; ${number(valueAt(load.wire, cursor) / 1000, 1)} kB on the wire`);
      if (load.window !== null) texts.push(`window ${number(valueAt(load.window, cursor) / 1000, 1)} kB`);
    }
    if (index !== null) {
      const row = load.resources[index];
      const [asked, first, done] = [row.requested, row.first, row.finished].map((at) => number(at, 2));
      texts.push(`${row.name}, ${row.kind}: ${number(row.bytes)} bytes, requested at ${asked}, first byte at ${first}, complete at ${done} ms`);
    }
    readout.textContent = texts.join("; ") || "Point at a packet or a row.";
  }

  function redraw(hasNewView = false) {
    isStale ||= hasNewView;
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
    if (py >= at.rows && py < at.rows + waterfall) {
      const { rows, height } = shownRows();
      return rows[Math.floor((py - at.rows) / height)] ?? null;
    }
    return null;
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

  function choose(chosen) {
    load = loads[chosen];
    load.highest = load.packets.height.reduce((most, each) => Math.max(most, each), 1);
    load.most = Math.max(1, ...[load.wire, load.window ?? load.wire].map(({ y }) => y.reduce((most, each) => Math.max(most, each), 0)));
    hovered = null;
    if (pinned >= load.resources.length) pinned = null;
    const cells = (row) => [row.name, row.kind, row.bytes, row.requested, row.first, row.finished];
    body.replaceChildren(
      ...load.resources.map((row, index) => {
        const line = document.createElement("tr");
        cells(row).forEach((value, column) => {
          const cell = line.appendChild(document.createElement(column === 0 ? "th" : "td"));
          if (column === 0) cell.scope = "row";
          cell.textContent = typeof value === "number" ? number(value, 1) : value;
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
    left = width < 640 ? 84 : 220;
    waterfall = clamp(load.resources.length * 18, 60, 420);
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
      const index = resourceAt(...place(event));
      pin(index === pinned ? null : index);
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
  new ResizeObserver(() => { if (stage.clientWidth !== width) resize(); }).observe(stage);
  choose(0);
}
