import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import type { ProxyConfigInput } from "../../src/model/index.js";

/** Request fields whose values are in files of the host. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

function site(port: number, upstream: number, file: string): ProxyConfigInput {
  const setHeadersFromCredential = { Authorization: file };
  return oneServer({
    logs: { access: "off", error: "off" },
    listeners: [loopback("http", port)],
    upstreams: [{ name: "app", url: `http://127.0.0.1:${upstream}` }],
    routes: [
      { name: "app", path: "/", action: { type: "proxy", upstream: "app", setHeadersFromCredential } },
    ],
  });
}

test("are read at the start and at a reload, replace the client's, and are in no config or log", async () => {
  const heads: string[] = [];
  const upstream = await new RawUpstream((peer) => {
    responding(OK)(peer);
    peer.socket.on("data", (data: Buffer) => heads.push(data.toString("latin1")));
  }).listen();
  const port = await freePort();
  const folder = openFolder();
  const secret = (value: string): void =>
    writeFileSync(join(folder, "office"), `${value}\n`, { mode: 0o600 });
  secret("Bearer one");
  // As systemd hands it over: the file itself is one that only root can read.
  const portico = await Portico.start(site(port, upstream.port, "/root/secrets/office"), {
    env: { CREDENTIALS_DIRECTORY: folder },
  });
  const request = "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic own\r\nConnection: close\r\n\r\n";
  await exchange(port, request);
  expect(heads.at(-1)).toMatch(/\r\nAuthorization: Bearer one\r\n/);
  expect(heads.at(-1)).not.toContain("Basic own");
  secret("Bearer two");
  portico.signal("SIGHUP");
  await eventually(async () => {
    await exchange(port, request);
    return heads.at(-1)!.includes("Authorization: Bearer two\r\n");
  }, "for the new value");
  // A value that no field may have is refused, and is in no message.
  secret("Bearer\u0001three");
  portico.signal("SIGHUP");
  await eventually(
    () => portico.errors.includes("setHeadersFromCredential.Authorization"),
    "for the refusal",
    {
      seen: () => portico.errors,
    },
  );
  await exchange(port, request);
  expect(heads.at(-1)).toContain("Authorization: Bearer two\r\n");
  expect(portico.output + portico.errors).not.toContain("Bearer");
  portico.signal("SIGTERM");
  await Promise.all([portico.gone, upstream.close()]);
});
