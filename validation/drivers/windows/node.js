// node.js get|put WARM URL BYTES: the seconds of the second exchange of a connection of node:http2.
const http2 = require("node:http2");
const [what, warm, url, size] = process.argv.slice(2);
const client = http2.connect(new URL(url).origin);

function exchange(method, path, body, done) {
  const stream = client.request({ ":method": method, ":path": path }, { endStream: !body });
  stream.resume();
  stream.on("end", done);
  if (body) stream.end(body);
}

exchange("GET", new URL(warm).pathname, null, () => {
  const began = process.hrtime.bigint();
  const body = what === "put" ? Buffer.alloc(Number(size)) : null;
  exchange(body ? "PUT" : "GET", new URL(url).pathname, body, () => {
    console.log(Number(process.hrtime.bigint() - began) / 1e9);
    client.close();
  });
});
