// Runs Python beside the page, so that the page never waits for it.

import { loadPyodide } from "./pyodide/pyodide.mjs";

async function fetched(url) {
  const response = await fetch(new URL(url, import.meta.url));
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return response;
}

// Shares of the time until Python runs, roughly: most of it goes into Pyodide.
const report = (share) => postMessage({ kind: "progress", share });

async function started() {
  report(0.05);
  const { wheels } = await (await fetched("./catalogue.json")).json();
  const source = await (await fetched("./simulator.py")).text();
  const pyodide = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  report(0.6);
  for (const [index, name] of wheels.entries()) {
    pyodide.unpackArchive(await (await fetched(`./wheels/${name}`)).arrayBuffer(), "wheel");
    report(0.6 + (0.3 * (index + 1)) / wheels.length);
  }
  const module = pyodide.runPython("import types; simulator = types.ModuleType('simulator'); simulator");
  pyodide.runPython(source, { globals: module.__dict__, filename: "simulator.py" });
  return { simulate: module.simulate, read_page: module.read_page };
}

const functions = started();
functions.then(
  () => postMessage({ kind: "ready" }),
  (error) => postMessage({ kind: "failed", message: String(error) }),
);

onmessage = async ({ data: { id, name, args } }) => {
  try {
    const answer = (await functions)[name](...args);
    postMessage({ kind: "answer", id, answer: JSON.parse(answer) });
  } catch (error) {
    // Every mistake in what was given is an answer; what comes here is none of the user's.
    const last = String(error.message ?? error).trim().split("\n").at(-1);
    postMessage({ kind: "answer", id, answer: { problems: [last] } });
  }
};
