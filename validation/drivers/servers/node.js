// Serves the files of a folder over HTTP/2 in cleartext: `node node.js FOLDER PORT`. Each body is
// written at once, so that what is sent when is a matter of Node's session alone.
const fs = require("node:fs");
const http2 = require("node:http2");
const path = require("node:path");

const [folder, port] = process.argv.slice(2);
const bodies = new Map(fs.readdirSync(folder).map((name) => ["/" + name, path.join(folder, name)]));

const server = http2.createServer();
server.on("stream", (stream, headers) => {
  stream.on("error", () => {}); // the client is gone
  stream.respond({ ":status": 200 });
  stream.end(fs.readFileSync(bodies.get(headers[":path"])));
});
server.on("sessionError", () => {});
server.listen(Number(port), "127.0.0.1");
