import { specRoutes, startProxy } from "./harness.js";
import { connectTo, RawUpstream } from "./peers.js";
test("one byte chunks", async () => {
  const up = await new RawUpstream((p) => { p.socket.removeAllListeners("data"); p.socket.resume(); }).listen();
  const proxy = await startProxy({ routes: specRoutes(), upstreams: [{ name: "web", url: `http://127.0.0.1:${up.port}` }] });
  for (const mode of ["direct", "proxied"]) {
    const c = await connectTo(mode === "direct" ? up.port : proxy.port);
    c.send("PUT /sync/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    await new Promise((r) => setTimeout(r, 200));
    const conn = up.connections.at(-1)!.socket; const b0 = conn.bytesRead;
    const p = Buffer.from("1\r\nX\r\n".repeat(175000)); const t = process.cpuUsage();
    c.socket.write(p);
    while (conn.bytesRead - b0 < p.length) await new Promise((r) => setTimeout(r, 10));
    const u = process.cpuUsage(t); console.log(mode, (u.user + u.system) / 1000);
    c.socket.destroy();
  }
  await proxy.close(); await up.close();
}, 60000);
