import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import fc from "../../testkit/property.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { connectTo, LoopbackServer } from "../../testkit/peers.js";
import { readEntry } from "../../src/host/diagnosis/logs/logEntry.js";
import { shownClient, shownIn } from "../../src/runtime/logs/loggedClient.js";

/** Addresses of clients, in each line of each log that names one. */

let front: EveryProtocol;
/** Ends each connection at once, so that error logs name the client. */
const upstream = new LoopbackServer((socket) => socket.destroy());
beforeAll(() => upstream.listen());
afterAll(() => upstream.close());
afterEach(() => front.close());

/** The same client over both versions of HTTP; a trusted proxy names it. */
async function requestFrom(address: string): Promise<void> {
  const client = await connectTo(front.plainPort);
  client.send(`GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${address}\r\nConnection: close\r\n\r\n`);
  await client.until(({ ended, closed }) => ended || closed);
  const session = connectHttp2(front.securePort);
  await ask(session, { ":path": "/", "x-forwarded-for": address });
  session.destroy();
}

const SHOWN = {
  full: ["203.0.113.77", "2001:db8:1:2::9"],
  network: ["203.0.113.0", "2001:db8:1::"],
  none: ["-", "-"],
} as const;

describe.each([[undefined], ["json"]] as const)("an access log of the format %s", (format) => {
  test.each(["full", "network", "none"] as const)("shows %s, and so does the error log", async (how) => {
    front = await startEveryProtocol({
      routes: [{ name: "a", path: "/", action: { type: "proxy", upstream: "web" } }],
      upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
      config: { trustedProxies: ["127.0.0.1"] },
      format,
      clientAddress: how,
    });
    for (const address of SHOWN.full) await requestFrom(address);
    // This one concerns a connection, and no request.
    front.serving.mainError.write("info", `connection closed, client: ${SHOWN.full[1]}, listener: a`);
    const [ipv4, ipv6] = SHOWN[how];
    const access = (await front.accessLog()).trimEnd().split("\n");
    const clients = access.map((line) =>
      line.startsWith("{") ? (JSON.parse(line).remote_addr ?? "-") : line.split(" ")[0],
    );
    expect(clients).toEqual([ipv4, ipv4, ipv6, ipv6]);
    const errors = (await front.errorLog()).trimEnd().split("\n");
    const named = errors.map((line) => /, client: ([^,]*), /.exec(line)?.[1]);
    expect(named).toEqual([ipv4, ipv4, ipv6, ipv6, ipv6]);
    if (how !== "full") expect([...access, ...errors].join("\n")).not.toMatch(/203\.0\.113\.77|2001:db8:1:2/);
    // `portico log` reads the lines back.
    const read = access.map((line) => readEntry("access", line));
    expect(read.map((entry) => entry?.kind === "access" && entry.client)).toEqual(
      clients.map((client) => (client === "-" ? "" : client)),
    );
  });
});

test("of no address, and in no message, is more shown than its network", () => {
  const network = shownClient("network");
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a, b, c] = address.split(".");
      expect(network(address)).toBe(`${a}.${b}.${c}.0`);
      expect(shownIn(`late, client: ${address}`, network)).toBe(`late, client: ${a}.${b}.${c}.0`);
    }),
  );
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const shown = network(address);
      expect(shown).toMatch(/^(?:[0-9a-f]{1,4}:){3}:$/);
      expect(shownIn(`failed, client: ${address}, listener: x`, network)).toBe(
        `failed, client: ${shown}, listener: x`,
      );
    }),
  );
  expect(["unknown", "", "fe80::1%eth0"].map(network)).toEqual(["-", "-", "fe80:0:0::"]);
});
