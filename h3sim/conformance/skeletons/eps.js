// Driver of a small EPS scheduler (RFC 9218): non-incremental responses of an urgency first.
"use strict";
const fs = require("node:fs");

let streams = new Map();
let now = 0; // the number of requests so far

const before = (s, t) =>
  s.urgency - t.urgency || s.incremental - t.incremental ||
  (s.incremental ? s.place - t.place : s.id - t.id);

function answer(request) {
  const s = streams.get(request.stream);
  now += 1;
  switch (request.op) {
    case "hello":
      return { protocol: request.protocol, name: "js-eps" };
    case "reset":
      streams = new Map();
      break;
    case "open":
    case "update": {
      const { urgency = 3, incremental = false } = request.signal ?? {};
      if (!s) streams.set(request.stream, { id: request.stream, urgency, incremental, place: now });
      else if (s.urgency !== urgency || s.incremental !== incremental)
        Object.assign(s, { urgency, incremental, place: now });
      break;
    }
    case "activate":
      if (!s.active) Object.assign(s, { active: true, place: now });
      break;
    case "deactivate":
      s.active = false;
      break;
    case "close":
      streams.delete(request.stream);
      break;
    case "charge":
      s.place = now;
      break;
    case "pick": {
      let best = null;
      for (const t of streams.values())
        if (t.active && (best === null || before(t, best) < 0)) best = t;
      return { stream: best === null ? null : best.id };
    }
  }
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
