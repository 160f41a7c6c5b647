// Runs as a thread: asks a server for something small again and again, and keeps how long the longest answer took. It has
// a loop of its own, because that of whoever starts it may be held up as well.
const net = require("node:net");
const { parentPort } = require("node:worker_threads");

const PAUSE_MS = 3;

let port = 0;
let socket;
let longest = 0;
let askedAt;
/** How much later than they should timers came so far: then nobody on this machine is served. */
let starved = 0;
let due = performance.now() + PAUSE_MS;

setInterval(() => {
  const now = performance.now();
  starved += Math.max(0, now - due);
  due = now + PAUSE_MS;
}, PAUSE_MS).unref();

function ask() {
  if (port === 0) return;
  socket ??= connect();
  askedAt = performance.now() - starved;
  socket.write("GET /here HTTP/1.1\r\nHost: h\r\n\r\n");
}

function connect() {
  const opened = net.connect({ port, host: "127.0.0.1", noDelay: true });
  opened.on("data", () => {
    if (askedAt === undefined) return;
    longest = Math.max(longest, performance.now() - starved - askedAt);
    askedAt = undefined;
    if (port === 0) leave();
    else setTimeout(ask, PAUSE_MS);
  });
  opened.on("error", () => undefined);
  opened.on("close", () => {
    if (socket !== opened) return;
    socket = undefined;
    askedAt = undefined;
    if (port === 0) leave();
    else setTimeout(ask, PAUSE_MS);
  });
  return opened;
}

/** Says what it found, once the last question is answered and the connection is closed. */
function leave() {
  const said = longest;
  const last = socket;
  socket = undefined;
  if (last === undefined || last.destroyed) return parentPort.postMessage(said);
  last.on("close", () => parentPort.postMessage(said));
  last.destroy();
}

parentPort.on("message", (asked) => {
  if (asked.port !== undefined) {
    port = asked.port;
    longest = 0;
    return ask();
  }
  port = 0;
  if (askedAt === undefined) leave();
});
