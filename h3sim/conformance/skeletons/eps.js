// Driver of a small EPS scheduler (RFC 9218): non-incremental responses of an urgency first.
"use strict";
const fs = require("node:fs");

/** Replace what its methods do by calls of yours. */
class Scheduler {
  streams = new Map();
  now = 0;

  open(id, { urgency, incremental }) {
    this.streams.set(id, { id, urgency, incremental, turn: 0 }); // turn 0: nothing to send
  }
  update(id, { urgency, incremental }) {
    const s = this.streams.get(id);
    if (s.turn && (s.urgency !== urgency || s.incremental !== incremental)) s.turn = ++this.now;
    Object.assign(s, { urgency, incremental });
  }
  activate(id) {
    this.streams.get(id).turn ||= ++this.now;
  }
  deactivate(id) {
    this.streams.get(id).turn = 0;
  }
  close(id) {
    this.streams.delete(id);
  }
  charge(id, bytes) {
    this.streams.get(id).turn = ++this.now;
  }
  pick() {
    const before = (s, t) =>
      s.urgency - t.urgency || s.incremental - t.incremental ||
      (s.incremental ? s.turn - t.turn : s.id - t.id);
    let best = null;
    for (const s of this.streams.values())
      if (s.turn && (best === null || before(s, best) < 0)) best = s;
    return best === null ? null : best.id;
  }
}

let scheduler = new Scheduler();

function answer({ op, protocol, stream, signal, bytes }) {
  if (op === "hello") return { protocol, name: "js-eps" };
  if (op === "pick") return { stream: scheduler.pick() };
  if (op === "reset") scheduler = new Scheduler();
  else if (op === "charge") scheduler.charge(stream, bytes);
  else scheduler[op](stream, signal ?? { urgency: 3, incremental: false });
}

let rest = "";
process.stdin.setEncoding("utf8").on("data", (text) => {
  const lines = (rest + text).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    const found = answer(JSON.parse(line));
    if (found) fs.writeSync(1, JSON.stringify(found) + "\n");
  }
});
