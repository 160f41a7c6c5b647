import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openFolder } from "../../testkit/portico.js";
import { run } from "../../src/cli/program.js";

/** `portico resolve` and `portico why` by URL: what their options say of the request. */

const DESTINATION = "Destination: https://files.example.org/dav/b";
const tls = { certificate: "/unused.pem", key: "/unused.pem" };

const CONFIG = {
  version: 1,
  trustedProxies: ["192.0.2.7"],
  listeners: [
    { name: "public", address: "192.0.2.1", port: 443, protocol: "https", tls },
    { name: "private", address: "10.0.0.1", port: 443, protocol: "https", tls },
  ],
  upstreams: [{ name: "dav", url: "http://127.0.0.1:8080" }],
  virtualServers: [
    {
      ...{ name: "files", serverNames: ["files.example.org"], default: true, listeners: ["public"] },
      windowsDrives: true,
      routes: [
        { name: "media", path: "/media", action: { type: "staticFiles", directory: "/srv/media" } },
        { name: "dav", path: "/dav", action: { type: "proxy", upstream: "dav" } },
      ],
    },
    { name: "inside", serverNames: ["_"], default: true, listeners: ["private"], routes: [] },
  ],
};

test.each([
  ["/dav/a", [], /client +198\.51\.100\.7, an example/],
  ["/dav/a", ["--client", "203.0.113.9"], /client +203\.0\.113\.9\n/],
  // Believed of a proxy that is trusted, and of nobody else.
  [
    "/dav/a",
    ["--client", "192.0.2.7", "--header", "X-Forwarded-For: 203.0.113.9"],
    /client +203\.0\.113\.9\n/,
  ],
  ["/dav/a", ["--header", "X-Forwarded-For: 203.0.113.9"], /client +198\.51\.100\.7/],
  ["/dav/a", [], /listener +public\n[^]*virtual server +files/],
  ["/dav/a", ["--listener", "private"], /listener +private\n[^]*virtual server +inside/],
  ["/media/a", [], /^GET [^]*response +the file \/srv\/media\/a\n/],
  ["/media/a", ["--method", "PUT"], /^PUT [^]*response +405/],
  [
    "/dav/a",
    ["--header", DESTINATION, "--header", "Overwrite: F"],
    /destination: \/dav\/b\n +overwrite: F\n/,
  ],
  ["/", ["--method", "OPTIONS"], /response +404/],
  [
    "/",
    ["--method", "OPTIONS", "--header", "User-Agent: Microsoft-WebDAV-MiniRedir/10.0.19045"],
    /response +200 from the virtual server: Windows may map network drives/,
  ],
])("%s %j", async (path, options, said) => {
  const file = join(openFolder(), "portico.json");
  writeFileSync(file, JSON.stringify(CONFIG));
  const asked = async (command: string): Promise<unknown> => {
    let out = "";
    const add = (text: string): void => void (out += text);
    const args = [command, `https://files.example.org${path}`, "--config", file, ...options];
    return [await run(args, { out: add, err: add }), out];
  };
  expect(await asked("resolve")).toEqual([0, expect.stringMatching(said)]);
  const isOfResolveOnly = options.some((option) => ["--header", "--listener"].includes(option));
  if (!isOfResolveOnly) expect(await asked("why")).toEqual([0, expect.stringMatching(said)]);
});
