"use strict";
// Draws loads of one page as viewports that fill in, with the wire below. All it knows is in the
// element "race": packets are [shown, arrived or null, gone, resource, bytes, delivered or null] in
// ms. Names are only ever drawn or set as text.
(() => {
  const race = JSON.parse(document.getElementById("race").textContent);
  const [WIDTH, HEIGHT] = race.size, WIRE = 44, FRAMES = 10, FRAME = 96, GAP = 8, LEFT = 110, SIZE = 9;
  const DARK = "#1b1b1b", GREY = "#767676", EMPTY = "#f4f4f4", RED = "#c00000", CHANGED = "#c4500a";
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const by = (id) => document.getElementById(id);
  const slider = by("time"), play = by("play"), status = by("status"), speed = by("speed");
  const [SEEN_WIDTH, SEEN_HEIGHT, IS_RECORDED] = race.viewport, SEEN_LEFT = (WIDTH - SEEN_WIDTH) / 2;
  const positions = new Map(race.resources.map((resource, position) => [resource, position]));
  // Each name once, in the largest box of its resource.
  const largest = new Map();
  race.boxes.forEach(([position, , , width, height], index) => {
    const [most] = largest.get(position) ?? [-1];
    if (width * height > most) largest.set(position, [width * height, index]);
  });
  // As precise as can be told apart on the slider.
  const digits = new Intl.NumberFormat("en", { maximumFractionDigits: race.end < 100 ? 1 : 0 });
  const ms = (at) => `${digits.format(at)} ms`;
  const times = [...new Set(race.loads.flatMap((load) => load.finished).filter((t) => t !== null))].sort((a, b) => a - b);
  let now = 0, last = null, timer = null;

  function firstFrom(list, at) {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Per box the times of its bytes and their sums, and the longest that a packet is on the wire.
  for (const load of race.loads) {
    load.progress = race.resources.map(() => ({ t: [], y: [] }));
    const delivered = load.packets.filter((p) => p[5] !== null && positions.has(p[3])).sort((a, b) => a[5] - b[5]);
    for (const p of delivered) {
      const curve = load.progress[positions.get(p[3])];
      curve.t.push(p[5]);
      curve.y.push((curve.y.at(-1) ?? 0) + p[4]);
    }
    load.shown = load.packets.map((p) => p[0]);
    load.until = load.packets.map((p) => (p[1] === null ? 2 * p[2] - p[0] : p[1]));
    load.longest = load.packets.reduce((most, p, index) => Math.max(most, load.until[index] - p[0]), 0);
  }

  function shareOf(load, box, at) {
    if (load.finished[box] !== null && load.finished[box] <= at) return 1;
    const { t, y } = load.progress[box], index = firstFrom(t, at + 1e-6) - 1;
    return index < 0 ? 0 : Math.min(0.999, y[index] / race.bytes[box]);
  }

  function contextOf(canvas, width, height) {
    // As many pixels as it is shown with: text stays sharp.
    const ratio = ((window.devicePixelRatio || 1) * (canvas.clientWidth || width)) / width;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
  }

  function drawViewport(context, load, at, hasLabels) {
    const shares = race.resources.map((_, position) => shareOf(load, position, at));
    race.boxes.forEach(([position, left, y, width, height], index) => {
      const share = shares[position], resource = race.resources[position];
      const x = y < SEEN_HEIGHT ? left + SEEN_LEFT : left;
      if (IS_RECORDED) {
        // Boxes may lie on others of their colour.
        context.fillStyle = "#ffffff";
        context.fillRect(x - 1.5, y - 1.5, width + 3, height + 3);
      }
      context.fillStyle = EMPTY;
      context.fillRect(x, y, width, height);
      context.fillStyle = race.colours[resource];
      context.globalAlpha = share === 1 ? 1 : 0.35;
      context.fillRect(x, y, width, height * share);
      context.globalAlpha = 1;
      context.strokeStyle = share === 1 ? DARK : "#b8b8b8";
      context.lineWidth = hasLabels ? 1 : 3;
      if (height > 4) context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
      if (hasLabels && width > 20 && height > 14 && largest.get(position)[1] === index) {
        context.save();
        context.beginPath();
        context.rect(x, y, width, height);
        context.clip();
        context.fillStyle = share === 1 ? race.inks[resource] : DARK;
        // Of a narrow box the number, which the legend and the table name.
        const label = race.labels[position];
        const room = (width - 8) / context.measureText(label).width;
        const short = width < 72 ? label.split(" ")[0] : `${label.slice(0, Math.max(1, Math.floor(room * label.length) - 1))}\u2026`;
        if (room >= 1 || context.measureText(short).width < width - 6) context.fillText(room < 1 ? short : label, x + 4, y + 14);
        context.restore();
      }
    });
    if (!IS_RECORDED) return;
    context.strokeStyle = GREY;
    context.lineWidth = hasLabels ? 1 : 3;
    context.strokeRect(SEEN_LEFT + 0.5, 0.5, SEEN_WIDTH - 1, SEEN_HEIGHT - 1);
    context.fillStyle = DARK;
    if (hasLabels && HEIGHT > SEEN_HEIGHT) context.fillText("Without a position:", 0, SEEN_HEIGHT + 14);
  }

  function drawWire(context, load) {
    const top = HEIGHT + 22, [from, to] = [48, WIDTH - 60];
    context.fillStyle = DARK;
    context.fillText("server", 0, top + SIZE);
    context.fillText("browser", to + 6, top + SIZE);
    context.fillStyle = GREY;
    context.fillRect(from, top + SIZE + 3, to - from, 1);
    for (let index = firstFrom(load.shown, now - load.longest); index < load.shown.length && load.shown[index] <= now; index += 1) {
      const p = load.packets[index], until = load.until[index];
      if (now >= until) continue;
      const x = from + ((to - from - SIZE) * (now - p[0])) / (until - p[0]);
      if (p[1] === null && now >= p[2]) {
        context.strokeStyle = RED;
        context.lineWidth = 2;
        context.beginPath();
        context.moveTo(x, top);
        context.lineTo(x + SIZE, top + SIZE);
        context.moveTo(x + SIZE, top);
        context.lineTo(x, top + SIZE);
        context.stroke();
      } else {
        context.fillStyle = race.colours[p[3]];
        context.fillRect(x, top, SIZE, SIZE);
        context.strokeStyle = DARK;
        context.lineWidth = 0.5;
        context.strokeRect(x, top, SIZE, SIZE);
      }
    }
  }

  function draw() {
    const told = race.loads.map((load, number) => {
      const context = contextOf(by(`page-${number}`), WIDTH, HEIGHT + WIRE);
      context.font = "12px system-ui, sans-serif";
      drawViewport(context, load, now, true);
      drawWire(context, load);
      const complete = load.finished.filter((at) => at !== null && at <= now).length;
      const words = `${complete} of ${race.resources.length} complete`;
      by(`clock-${number}`).textContent = `${ms(now)}: ${words}`;
      return `${load.name} ${words}`;
    });
    slider.value = String(now);
    slider.setAttribute("aria-valuetext", ms(now));
    return `At ${ms(now)}: ${told.join(", ")}.`;
  }

  // Frames at round times; what changed since the frame before has a thick edge.
  function drawFilm() {
    const power = 10 ** Math.floor(Math.log10(race.end / FRAMES));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each * FRAMES >= race.end);
    const frames = Math.ceil(race.end / step), scale = FRAME / WIDTH, high = HEIGHT * scale;
    const width = LEFT + frames * (FRAME + GAP), height = high + 24;
    race.loads.forEach((load, number) => {
      const canvas = by(`film-${number}`);
      [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
      const context = contextOf(canvas, width, height);
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = DARK;
      context.fillText(load.name, 0, high / 2 + 4, LEFT - 8);
      let before = race.resources.map(() => 0).join();
      for (let frame = 1; frame <= frames; frame += 1) {
        const at = frame * step, x = LEFT + (frame - 1) * (FRAME + GAP);
        context.save();
        context.translate(x, 4);
        context.scale(scale, scale);
        drawViewport(context, load, at, false);
        context.restore();
        const look = race.resources.map((_, index) => Math.round(20 * shareOf(load, index, at))).join();
        context.strokeStyle = look === before ? GREY : CHANGED;
        context.lineWidth = look === before ? 1 : 3;
        context.strokeRect(x, 4, FRAME, high);
        before = look;
        context.fillStyle = DARK;
        context.fillText(ms(at), x, high + 18);
      }
    });
  }

  function show(t, aloud, words = "") {
    now = Math.min(race.end, Math.max(0, t));
    const all = draw();
    // Nobody can listen to it as fast as it plays.
    if (aloud) status.textContent = words ? `${words} ${all}` : all;
  }

  const next = (t) => times.find((at) => at > t + 1e-6) ?? race.end;
  const before = (t) => times.findLast((at) => at < t - 1e-6) ?? 0;

  function pause() {
    if (timer !== null) cancelAnimationFrame(timer);
    timer = last = null;
    play.textContent = "Play";
    show(now, true);
  }

  function tick(at) {
    if (last === null) last = at;
    const passed = (at - last) * Number(speed.value);
    if (!calm.matches) {
      show(now + passed, false);
      last = at;
    } else if (at - last >= 700) {
      show(Math.max(next(now), now + passed), false);
      last = at;
    }
    if (now >= race.end) pause();
    else timer = requestAnimationFrame(tick);
  }

  function toggle() {
    if (timer !== null) { pause(); return; }
    if (now >= race.end) now = 0;
    play.textContent = "Pause";
    timer = requestAnimationFrame(tick);
  }

  function step(t, words) {
    if (timer !== null) pause();
    show(t, true, words);
  }

  function toDifference() {
    const found = race.differences.find(([at]) => at > now + 1e-6) ?? race.differences[0];
    if (found === undefined) return;
    const [at, resource, complete] = found;
    const names = (has) => race.loads.filter((_, index) => complete.includes(index) === has).map((load) => load.name).join(", ");
    step(at, `${race.labels[positions.get(resource)]} is complete with ${names(true)}, not yet with ${names(false)}.`);
  }

  const acts = { play: toggle, back: () => step(before(now)), forward: () => step(next(now)),
    restart: () => step(0), difference: toDifference };
  for (const [id, act] of Object.entries(acts)) by(id).addEventListener("click", act);
  slider.addEventListener("input", () => step(Number(slider.value)));
  const keys = { " ": toggle, ArrowLeft: acts.back, ArrowRight: acts.forward, Home: acts.restart, d: acts.difference };
  document.addEventListener("keydown", (event) => {
    const taken = event.target.closest("input, select, button, summary, a, .scroll");
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    if (taken && !(event.key === "d" && !taken.matches("select"))) return;
    event.preventDefault();
    keys[event.key]();
  });
  for (const id of [...Object.keys(acts), "time", "speed"]) by(id).disabled = false;
  by("difference").disabled = race.differences.length === 0;
  drawFilm();
  show(0, true);
  window.addEventListener("resize", () => { drawFilm(); draw(); });
})();
