// Runs simulator.py under Node's Pyodide: arguments are the built site and a file of requests.
// Prints what each request was answered, and what Python had loaded in the end, as JSON.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [site, requests] = process.argv.slice(2).map((path) => resolve(path));

async function main() {
  const { loadPyodide } = await import(pathToFileURL(join(site, "pyodide", "pyodide.mjs")));
  const pyodide = await loadPyodide({ indexURL: join(site, "pyodide") });
  for (const name of JSON.parse(readFileSync(join(site, "catalogue.json"), "utf8")).wheels) {
    pyodide.unpackArchive(new Uint8Array(readFileSync(join(site, "wheels", name))), "wheel");
  }
  pyodide.runPython(readFileSync(join(site, "simulator.py"), "utf8"));
  const answers = JSON.parse(readFileSync(requests, "utf8")).map(([name, ...args]) =>
    JSON.parse(pyodide.globals.get(name)(...args)),
  );
  const modules = pyodide.runPython("import sys; ' '.join(sorted(sys.modules))").split(" ");
  process.stdout.write(JSON.stringify({ answers, modules }));
}

// Without this Node prints the line in which it failed, and that line is all of Pyodide.
main().catch((error) => {
  console.error(String(error.message ?? error));
  process.exit(1);
});
