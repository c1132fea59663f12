"use strict";
// Draws the packets of a load at an instant. All it knows stands in the element "scene": packets as
// [shown, came or null, gone, resource, bytes, given by QUIC or null, given by TCP or null] in ms.
(() => {
  const scene = JSON.parse(document.getElementById("scene").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const COLUMNS = 52, LEFT = 16, CELL = 18, SIZE = 15, WIRE_Y = 52, WIRE_LEFT = 70, WIRE_RIGHT = 890;
  const ROWS = [{ top: 148 }, { top: 258 }];
  const DROP = 30;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const packets = scene.packets;
  const instants = [...new Set(packets.flatMap((p) => [p[0], p[1], p[1] === null ? p[2] : null, p[5], p[6]])
    .filter((t) => t !== null))].sort((a, b) => a - b);
  const by = (id) => document.getElementById(id);
  const slider = by("time"), play = by("play"), status = by("status"), speed = by("speed");
  let now = instants[0] ?? 0, last = null, timer = null;

  function state(p, order, t) {
    if (t < p[0]) return "ahead";
    if (p[1] === null) return t >= p[2] ? "lost" : "wire";
    if (t < p[1]) return "wire";
    const given = p[5 + order];
    if (given === null) return "copy";
    return t >= given ? "given" : "held";
  }

  function add(parent, name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  }

  function square(parent, x, y, p, look) {
    const colour = scene.colours[p[3]];
    const fill = { wire: colour.face, held: colour.face, given: colour.face }[look] ?? "#ffffff";
    const edge = look === "held" ? "#c00000" : look === "ahead" ? "#b8b8b8" : "#5a5a5a";
    const box = add(parent, "rect", { x, y, width: SIZE, height: SIZE, fill, stroke: edge,
      "stroke-width": look === "held" ? 2.5 : 1, "stroke-dasharray": look === "ahead" ? "2 2" : "none",
      opacity: look === "wire" ? 0.45 : 1 });
    if (look === "lost") {
      add(parent, "path", { d: `M${x + 3} ${y + 3}l${SIZE - 6} ${SIZE - 6}m0 ${6 - SIZE}l${6 - SIZE} ${SIZE - 6}`,
        stroke: "#c00000", "stroke-width": 2, fill: "none" });
    } else if (scene.numbers && ["held", "given"].includes(look)) {
      add(parent, "text", { x: x + SIZE / 2, y: y + SIZE - 4, "text-anchor": "middle", "font-size": 10,
        fill: colour.ink }, String(p[3] + 1));
    }
    return box;
  }

  function draw() {
    const wire = by("wire"), shown = packets.findLastIndex((p) => p[0] <= now);
    wire.replaceChildren();
    packets.forEach((p) => {
      const until = p[1] === null ? 2 * p[2] - p[0] : p[1];
      if (now < p[0] || now >= until) return;
      const x = WIRE_LEFT + (WIRE_RIGHT - WIRE_LEFT - SIZE) * (now - p[0]) / (until - p[0]);
      square(wire, x, WIRE_Y, p, state(p, 0, now) === "lost" ? "lost" : "given");
    });
    const first = Math.max(0, Math.min(packets.length - COLUMNS, Math.floor((shown - COLUMNS + 12) / 4) * 4));
    const told = scene.orders.map((name, order) => {
      const cells = by(`order-${order}`);
      cells.replaceChildren();
      let held = 0, heldBytes = 0, given = 0;
      packets.forEach((p, index) => {
        const look = state(p, order, now);
        if (look === "held") { held += 1; heldBytes += p[4]; }
        if (look === "given") given += p[4];
        if (index < first || index >= first + COLUMNS) return;
        const y = ROWS[order].top + (["given", "copy"].includes(look) ? DROP : 0);
        square(cells, LEFT + (index - first) * CELL, y, p, look);
      });
      const words = `holds back ${held} packet${held === 1 ? "" : "s"} (${(heldBytes / 1000).toFixed(1)} kB), `
        + `has delivered ${(given / 1000).toFixed(1)} kB`;
      by(`count-${order}`).textContent = words;
      return `${name.split(":")[0]} ${words}`;
    });
    by("clock").textContent = `${now.toFixed(1)} ms`;
    slider.value = String(now);
    slider.setAttribute("aria-valuetext", `${now.toFixed(0)} milliseconds`);
    return `At ${now.toFixed(1)} ms ${told.join("; ")}.`;
  }

  function show(t, aloud) {
    now = Math.min(scene.end, Math.max(instants[0] ?? 0, t));
    const words = draw();
    // Nobody can listen to it as fast as it plays.
    if (aloud) status.textContent = words;
  }

  const next = (t) => instants.find((at) => at > t + 1e-9) ?? scene.end;
  const before = (t) => instants.findLast((at) => at < t - 1e-9) ?? instants[0] ?? 0;

  function pause() {
    if (timer !== null) cancelAnimationFrame(timer);
    timer = last = null;
    play.textContent = "Play";
    show(now, true);
  }

  function tick(at) {
    const perSecond = Number(speed.value) * scene.interval;
    if (last === null) last = at;
    if (!calm.matches) {
      show(now + perSecond * (at - last) / 1000, false);
      last = at;
    } else if (at - last >= 700) {
      show(Math.max(next(now), now + 0.7 * perSecond), false);
      last = at;
    }
    if (now >= scene.end) pause(); else timer = requestAnimationFrame(tick);
  }

  function toggle() {
    if (timer !== null) { pause(); return; }
    if (now >= scene.end) now = instants[0] ?? 0;
    play.textContent = "Pause";
    timer = requestAnimationFrame(tick);
  }

  function step(t) {
    if (timer !== null) pause();
    show(t, true);
  }

  function toLoss() {
    const at = scene.moments.find((t) => t > now + 1e-9) ?? scene.moments[0];
    if (at !== undefined) step(at);
  }

  const acts = { play: toggle, back: () => step(before(now)), forward: () => step(next(now)),
    restart: () => step(instants[0] ?? 0), loss: toLoss };
  for (const [id, act] of Object.entries(acts)) by(id).addEventListener("click", act);
  slider.addEventListener("input", () => step(Number(slider.value)));
  const keys = { " ": toggle, ArrowLeft: acts.back, ArrowRight: acts.forward, Home: acts.restart, l: toLoss };
  document.addEventListener("keydown", (event) => {
    const taken = event.target.closest("input, select, button, summary, a, .scroll");
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    if (taken && !(event.key === "l" && !taken.matches("select"))) return;
    event.preventDefault();
    keys[event.key]();
  });
  for (const id of ["back", "forward", "play", "restart", "loss", "time", "speed"]) by(id).disabled = false;
  by("loss").disabled = scene.moments.length === 0;
  // What teaches: the first moment at which something waits.
  show(scene.start, true);
})();
