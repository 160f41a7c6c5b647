import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SecureVersion } from "node:tls";
import { dhParametersPem } from "../../src/render/dhParameters.js";
import { type ListenerConfig, type TlsPolicySettings, tlsPolicySettings } from "../../src/model/index.js";
import { sessionContext } from "../../src/runtime/tls/listenerTls.js";
import { issue } from "../../testkit/certificates.js";
import { everywhere, loopback, oneServer } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { knowsGroup, seenHandshake } from "../../testkit/serverHello.js";
import { eventually } from "../../testkit/waiting.js";
import { logEntries } from "../../testkit/logEntries.js";

/** Key exchange groups: which one the policies lead to, on the wire and in the access log. */

const POLICIES = ["file-sync", "file-sync-tls13", "mozilla-intermediate", "mozilla-modern"] as const;
type Policy = (typeof POLICIES)[number];

const HYBRID = "X25519MLKEM768";
const NUMBERS: Readonly<Record<string, number>> = {
  prime256v1: 0x17,
  secp384r1: 0x18,
  X25519: 0x1d,
  [HYBRID]: 0x11ec,
};

let portico: Portico;
let ports: Record<Policy | "plain", number>;
let log: string;

beforeAll(async () => {
  const folder = openFolder();
  const at = (name: string): string => join(folder, name);
  log = at("access.log");
  const [plain, ...free] = await freePorts(POLICIES.length + 1);
  ports = { plain, ...Object.fromEntries(POLICIES.map((name, i) => [name, free[i]!])) } as typeof ports;
  const { key, cert } = await issue();
  writeFileSync(at("key.pem"), key, { mode: 0o600 });
  writeFileSync(at("cert.pem"), cert);
  writeFileSync(at("dh.pem"), dhParametersPem());
  const files = { certificate: at("cert.pem"), key: at("key.pem"), dhparam: at("dh.pem") };
  const config = oneServer({
    logs: { access: { path: log, format: "json" }, error: { path: at("error.log") } },
    listeners: [
      loopback("plain", plain!),
      ...POLICIES.map((policy) => loopback(policy, ports[policy], { ...files, policy })),
    ],
    routes: [everywhere({ type: "respond", status: 200 })],
  });
  portico = await Portico.start(config);
  expect(portico.ended).toBe(false);
});

afterAll(() => portico.stop());

let requests = 0;

/** What a client sees that offers these groups, and then what the log says of it. */
async function negotiated(policy: Policy, version: SecureVersion, offer: string, session?: Buffer) {
  const target = `/${++requests}`;
  const ecdhCurve = { ecdhCurve: offer, ...(session && { session }) };
  const { socket, group, asked } = await seenHandshake(ports[policy], { maxVersion: version, ...ecdhCurve });
  let kept: Buffer | undefined;
  socket.on("session", (bytes: Buffer) => (kept = bytes));
  const info = socket.getEphemeralKeyInfo() as { name?: string; type?: string };
  const resumed = socket.isSessionReused();
  // A ticket of TLS 1.3 comes with the response.
  const responded = new Promise((done) => socket.once("data", done));
  socket.write(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await responded;
  kept ??= socket.getSession();
  socket.destroy();
  return { info, group, asked, resumed, session: kept, logged: await logged(target) };
}

async function logged(target: string): Promise<unknown> {
  const found = () => logEntries(readFileSync(log, "utf8")).find((entry) => entry["target"] === target);
  await eventually(() => found() !== undefined, `for the line of ${target}`);
  return found()!["tls_group"];
}

/** Offers with the hybrid group are cases only where this OpenSSL has it; the same configs are served without it. */
const PQ = knowsGroup(HYBRID);

test("Node from 24 on has the hybrid group", () => {
  if (Number(process.versions.node.split(".")[0]) >= 24) expect(PQ).toBe(true);
});

type Case = [policy: Policy, offer: string, group: string, askedFor?: boolean];
const CASES: Case[] = [
  ["mozilla-modern", "X25519", "X25519"],
  ["mozilla-modern", "prime256v1", "prime256v1"],
  ["mozilla-intermediate", "X25519", "X25519"],
  ["mozilla-intermediate", "secp384r1", "secp384r1"],
  ["file-sync-tls13", "secp384r1", "secp384r1"],
  ["file-sync-tls13", "X25519", "X25519"],
  // A key that was sent is taken: no round trip for a better group.
  ["file-sync-tls13", "X25519:secp384r1", "X25519"],
  ["file-sync-tls13", "prime256v1:secp384r1", "secp384r1", true],
];
const HYBRID_CASES: Case[] = (["mozilla-modern", "mozilla-intermediate", "file-sync-tls13"] as const).flatMap(
  (policy): Case[] => [
    [policy, HYBRID, HYBRID],
    [policy, `${HYBRID}:X25519`, HYBRID],
    [policy, `X25519:${HYBRID}`, "X25519"],
    [policy, `secp521r1:${HYBRID}:X25519`, HYBRID, true],
  ],
);

test.each([...CASES, ...(PQ ? HYBRID_CASES : [])])(
  "%s over TLS 1.3: an offer of %s comes to %s",
  async (policy, offer, expected, askedFor = false) => {
    const first = await negotiated(policy, "TLSv1.3", offer);
    expect(first).toMatchObject({ group: NUMBERS[expected], asked: askedFor, logged: expected });
    // A resumed session exchanges keys again, and maybe others.
    const again = await negotiated(policy, "TLSv1.3", offer, first.session);
    expect(again).toMatchObject({ resumed: true, group: NUMBERS[expected], logged: expected });
    const other = expected === "X25519" ? "secp384r1" : "X25519";
    const changed = await negotiated(policy, "TLSv1.3", other, first.session);
    expect(changed).toMatchObject({ resumed: true, group: NUMBERS[other], logged: other });
  },
);

type OldCase = [policy: Policy, offer: string, logged: string | null];
test.each<OldCase>([
  ["file-sync", "secp384r1", "secp384r1"],
  ["file-sync", "X25519:secp384r1", "secp384r1"],
  ["file-sync", "X25519", null],
  ["file-sync-tls13", "secp384r1", "secp384r1"],
  ["file-sync-tls13", "X25519:secp384r1", "secp384r1"],
  ["file-sync-tls13", "X25519:prime256v1", "X25519"],
  ["file-sync-tls13", "prime256v1", null],
  ["mozilla-intermediate", "prime256v1", "prime256v1"],
  ...(PQ ? [["file-sync-tls13", `${HYBRID}:secp384r1`, "secp384r1"] satisfies OldCase] : []),
])("%s over TLS 1.2: an offer of %s comes to %s", async (policy, offer, expected) => {
  const first = await negotiated(policy, "TLSv1.2", offer);
  const seen = expected === null ? { type: "DH", size: 2048 } : { type: "ECDH", name: expected };
  expect(first).toMatchObject({ info: seen, resumed: false, logged: expected });
  // A resumed session exchanges no keys.
  const again = await negotiated(policy, "TLSv1.2", offer, first.session);
  expect(again).toMatchObject({ resumed: true, logged: expected });
});

test("what a session belongs to is the same whatever the host's OpenSSL knows", () => {
  const listener = (policy: Policy | TlsPolicySettings) => ({ name: "a", tls: { policy } }) as ListenerConfig;
  const contextOf = (policy: Policy | TlsPolicySettings): string =>
    sessionContext(listener(policy), { id: "", source: "files", key: "", cert: "" });
  const { curvesIfKnown, ...modern } = tlsPolicySettings("mozilla-modern");
  expect(contextOf("mozilla-modern")).toBe(
    contextOf({ ...modern, curves: [...curvesIfKnown!, ...modern.curves] }),
  );
  expect(contextOf("mozilla-modern")).not.toBe(contextOf(modern));
});

test("without TLS there is none", async () => {
  await fetch(`http://127.0.0.1:${ports.plain}/plain`);
  expect(await logged("/plain")).toBeNull();
});
