import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tls from "node:tls";
import { issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";
import { Portico } from "../../testkit/portico.js";
import { newStack } from "../../testkit/stacks.js";
import { Action, Delivery, Host, ReverseProxy, TlsMaterial, TlsPolicy } from "../../src/index.js";

/** Certificates that something else makes, ECDSA as certbot's are and RSA, with the policies of stacks. */

const folder = mkdtempSync(join(tmpdir(), "portico-keys-"));
const at = (name: string): string => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true }));

const KINDS = ["ec", "rsa"] as const;
type Kind = (typeof KINDS)[number];

beforeAll(async () => {
  for (const kind of KINDS) {
    const { key, cert } = await issue({ names: ["files.example.org"], type: kind });
    writeFileSync(at(`${kind}.key`), key, { mode: 0o600 });
    writeFileSync(at(`${kind}.pem`), cert);
  }
  // As an earlier deployment left it.
  mkdirSync(at("etc/portico/tls"), { recursive: true });
  writeFileSync(at("etc/portico/tls/cacert.pem"), (await issue({ type: "ec" })).cert);
});

const material = (kind: Kind, dhparam?: false): TlsMaterial =>
  TlsMaterial.fromFiles({ certificate: at(`${kind}.pem`), key: at(`${kind}.key`), dhparam });

/** A proxy on this machine, with `own` as the certificate of a virtual server. */
function proxyWith(port: number, main: TlsMaterial, policy?: TlsPolicy, own?: TlsMaterial, root = "/") {
  const stack = newStack();
  const host = new Host(stack, "host", { address: "192.0.2.10", delivery: Delivery.local({ root }) });
  const logs = { access: "off", error: "off" } as const;
  const proxy = new ReverseProxy(stack, "proxy", { host, workers: 1, logs });
  const https = proxy.addListener("https", {
    port,
    address: "127.0.0.1",
    tls: { material: main, policy },
  });
  const server = proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [https], default: true });
  server.addRoute("all", { path: "/", action: Action.respond(204) });
  if (own !== undefined) {
    const named = { serverNames: ["own.example.org"], listeners: [https], tls: own };
    proxy.addVirtualServer("own", named).addRoute("all", { path: "/", action: Action.respond(204) });
  }
  return proxy;
}

/** What a client of this version gets: the cipher, or the alert. */
async function negotiated(port: number, version: tls.SecureVersion): Promise<string> {
  const options = { minVersion: version, maxVersion: version, rejectUnauthorized: false };
  const socket = tls.connect({ port, host: "127.0.0.1", ...options });
  try {
    await once(socket, "secureConnect");
    return socket.getCipher().name;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code!;
  } finally {
    socket.destroy();
  }
}

const PROTOCOL_VERSION = "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION";

test.each([
  ["ec", undefined, /^ECDHE-ECDSA-/, /^TLS_/],
  ["rsa", undefined, /^ECDHE-RSA-/, /^TLS_/],
  ["rsa", TlsPolicy.fileSync(), /^ECDHE-RSA-/, PROTOCOL_VERSION],
] as const)(
  "a certificate from files with a key of type %s serves, policy: %j",
  async (kind, policy, over12, over13) => {
    const [port] = await freePorts(1);
    const proxy = proxyWith(port!, material(kind, false), policy);
    expect(proxy.problems).toEqual([]);
    const portico = await Portico.start(proxy.config);
    try {
      expect(await negotiated(port!, "TLSv1.2")).toMatch(over12);
      expect(await negotiated(port!, "TLSv1.3")).toMatch(over13);
    } finally {
      await portico.stop();
    }
  },
);

const policyOf = (proxy: ReverseProxy): unknown => proxy.config.listeners[0]!.tls!.policy;

test("the service's own policy is that of the keys that it names, made by Terraform or by ACME", () => {
  const acme = TlsMaterial.acme({ email: "admin@files.test", agreeToTerms: true });
  expect(policyOf(proxyWith(443, TlsMaterial.selfSigned()))).toBe("file-sync");
  expect(policyOf(proxyWith(443, acme))).toBe("file-sync");
});

test("a certificate of a virtual server from files is served as well, beside a self-signed one", () => {
  const proxy = proxyWith(443, TlsMaterial.selfSigned(), undefined, material("ec"));
  expect(policyOf(proxy)).toBe("mozilla-intermediate");
  expect(proxy.problems).toEqual([]);
});

test("what an earlier deployment left where the new certificate goes is not looked at", () => {
  const proxy = proxyWith(443, TlsMaterial.selfSigned(), undefined, undefined, folder);
  expect(proxy.problems).toEqual([]);
});

const ONLY_ECDSA = {
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
  ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256",
  curves: ["prime256v1"],
} as const;

test.each([
  ["ec", TlsPolicy.fileSync(), "ECDSA"],
  ["ec", TlsPolicy.fileSync({ tls13: true }), "ECDSA"],
  ["rsa", TlsPolicy.custom(ONLY_ECDSA), "RSA"],
] as const)("a policy that excludes the key is refused at synth: %s, %j", (kind, policy, name) => {
  for (const proxy of [
    proxyWith(443, material(kind), policy),
    proxyWith(443, TlsMaterial.selfSigned(), policy, material(kind)),
  ]) {
    expect(proxy.problems).toMatchObject([
      {
        code: "tls.bad-policy",
        path: "stack/proxy/Listeners/https.tls.policy",
        message: `excludes ${name} keys, but the certificate ${at(`${kind}.pem`)} has such a key`,
        fix:
          "Use `TlsPolicy.mozillaIntermediate()`, in the config `mozilla-intermediate`, which allows ECDSA and RSA keys, or " +
          "use a certificate whose key the policy allows (certbot creates an RSA key with `--key-type rsa`).",
      },
    ]);
  }
});

test("a host that cannot be looked at from here refuses it before anything is stopped, with the same fix", async () => {
  const [port] = await freePorts(1);
  const { config } = proxyWith(port!, material("ec", false), TlsPolicy.fileSync());
  const { code, errors } = await Portico.start(config);
  expect(code).toBe(1);
  expect(errors).toMatch(
    /listeners\[0\]\.tls\.policy: no client can complete a handshake[\s\S]*fix: +Use `TlsPolicy.mozillaIntermediate\(\)`, in the config `mozilla-intermediate`/,
  );
});
