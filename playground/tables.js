// The same in numbers: a table beside each picture. Names are text, whatever markup stands in them.

const FIGURES = [
  ["ByteIndex, all, ms", (result) => result.byte_index_ms, 1],
  ["ByteIndex, above the fold, ms", (result) => result.byte_index_above_the_fold_ms, 1],
  ["Last above the fold, ms", (result) => result.above_the_fold_at_ms, 0],
  ["Page load, ms", (result) => result.page_load_ms, 0],
  ["HOL-blocked bytes here", (result) => result.blocked_bytes, 0],
  ["with streams' own orders (QUIC)", (result) => result.blocked_in_stream_order, 0],
  ["in one order (TCP)", (result) => result.blocked_in_one_order, 0],
  ["Packets lost", (result) => result.lost, 0],
];

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") made.className = value;
    else if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function shown(value, digits) {
  if (value === null || value === undefined) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function headings(names) {
  return element("tr", {}, ...names.map(([name, isText]) => element("th", { scope: "col", class: isText ? "text" : "" }, name)));
}

export function fillFigures(table, results) {
  table.tHead.replaceChildren(headings([["Scheme", true], ...FIGURES.map(([name]) => [name, false])]));
  // Where all are alike none is the best.
  const best = FIGURES.map(([, value]) => {
    const values = results.map(value).filter((each) => each !== null);
    return new Set(values).size > 1 ? Math.min(...values) : null;
  });
  const rows = results.map((result) => {
    const cells = FIGURES.map(([, value, digits], index) => {
      const isBest = best[index] !== null && value(result) === best[index];
      return element("td", { class: isBest ? "best" : "" }, shown(value(result), digits));
    });
    return element("tr", {}, element("th", { scope: "row", class: "text" }, result.scheme), ...cells);
  });
  table.tBodies[0].replaceChildren(...rows);
}

export function fillResources(table, result) {
  const names = [["No.", false], ["Resource", true], ["Kind", true], ["Bytes", false], ["Above the fold", true]];
  const times = ["Requested", "First byte", "Complete"].map((name) => [name, false]);
  table.tHead.replaceChildren(headings([...names, ...times]));
  const rows = result.resources.map((row, index) =>
    element(
      "tr",
      { "data-resource": String(result.numbers[index]) },
      element("td", {}, String(result.numbers[index] + 1)),
      element("th", { scope: "row", class: "text" }, row.id),
      element("td", { class: "text" }, row.kind),
      element("td", {}, shown(row.bytes, 0)),
      element("td", { class: "text" }, row.above_the_fold ? "yes" : ""),
      ...[row.requested_ms, row.first_byte_ms, row.finished_ms].map((at) => element("td", {}, shown(at, 0))),
    ),
  );
  table.tBodies[0].replaceChildren(...rows);
}

export function shortened(name, limit = 28) {
  const text = name.replace(/^https?:\/\/(?=.)/, "");
  if (text.length <= limit) return text;
  const front = Math.floor((limit - 1) / 3);
  return `${text.slice(0, front)}…${text.slice(text.length - (limit - 1 - front))}`;
}
