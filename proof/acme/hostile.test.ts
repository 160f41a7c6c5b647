import { generateKeyPairSync, webcrypto, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import "../../build/reflectMetadata.js";
import * as x509 from "@peculiar/x509";
import { eventually } from "../../testkit/waiting.js";
import type { Step } from "./between.js";
import { TestCa } from "./ca.js";
import { issued, type Stage, startStage } from "./stage.js";

/** What an authority could do to the proxy if it wanted to, or if somebody else responded in its place. */

let ca: TestCa;
beforeAll(async () => (ca = await TestCa.start()));
afterAll(() => ca.stop());

let stage: Stage;
beforeEach(async () => (stage = await startStage({}, ca)));
afterEach(() => stage.stop());

const DAY = 24 * 3_600_000;
const ID = "ca-hostile";

const isDownload = ({ path }: Step): boolean => path.startsWith("/certZ/");

/** Starts with one certificate, and waits for its failure. */
async function failed(names: readonly string[] = ["a.example.net"]) {
  const certificates = stage.engine();
  certificates.lookAfter([stage.wanted(names, { id: ID, authority: { profile: "default" } })]);
  await eventually(() => certificates.status()[0]!.state === "waiting", "for the failure", {
    seen: () => stage.host.lines.join("\n"),
  });
  return { certificates, status: certificates.status()[0]!, error: certificates.status()[0]!.lastError! };
}

/** A certificate for the key of a request, from nobody in particular. */
async function forged(
  csr: string,
  { days = 90, extensions = [] }: { days?: number; extensions?: x509.Extension[] } = {},
): Promise<string> {
  const request = new x509.Pkcs10CertificateRequest(Buffer.from(csr, "base64url"));
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, false, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: "01",
      subject: "",
      issuer: "CN=Nobody",
      notBefore: new Date(Date.now() - 100 * DAY),
      notAfter: new Date(Date.now() + days * DAY),
      signingAlgorithm: algorithm,
      publicKey: request.publicKey,
      signingKey: keys.privateKey,
      extensions: [
        new x509.SubjectAlternativeNameExtension([{ type: "dns", value: "a.example.net" }]),
        ...extensions,
      ],
    },
    webcrypto,
  );
  return certificate.toString("pem") + "\n";
}

/** Has the authority send something else than the certificate that it issued. */
function replaceCertificate(make: (real: string, csr: string) => string | Promise<string>): void {
  let csr = "";
  stage.between.before = async ({ payload }) => {
    csr = (payload as { csr?: string } | undefined)?.csr ?? csr;
  };
  stage.between.after = async (step, response) =>
    isDownload(step) ? { ...response, body: await make(response.body, csr) } : undefined;
}

describe("a certificate that would do harm is refused, and the one that there is stays:", () => {
  const badTime = (pem: string): string => {
    const der = Buffer.from(pem.replace(/-----.*-----|\s/g, ""), "base64");
    // The second UTCTime is the end.
    const at = der.indexOf("\x17\x0d", der.indexOf("\x17\x0d") + 2, "latin1");
    der.write("991399999999Z", at + 2, "latin1");
    return `-----BEGIN CERTIFICATE-----\n${der.toString("base64")}\n-----END CERTIFICATE-----\n`;
  };
  const CASES: readonly [string, (real: string, csr: string) => string | Promise<string>, RegExp][] = [
    ["it has expired", (_, csr) => forged(csr, { days: -1 }), /: it expired on 20/],
    [
      "its end is no time",
      async (_, csr) => badTime(await forged(csr)),
      /it is not a valid certificate for the key/,
    ],
    ["its chain is endless", (real) => real + real.repeat(20), /it is not a valid certificate for the key/],
    [
      "it is another's",
      (real) => real.split(/(?=-----BEGIN)/).at(-1)!,
      /it is not a valid certificate for the key/,
    ],
  ];

  test.each(CASES)("%s", async (_, make, message) => {
    const one = stage.wanted(["a.example.net"], { id: ID });
    const certificates = stage.engine();
    certificates.lookAfter([one]);
    await issued(stage, ID);
    const before = stage.host.installed.get(ID)!;
    replaceCertificate(make);
    expect(await certificates.renewNow()).toMatchObject({ ok: false });
    const { lastError } = certificates.status()[0]!;
    expect(lastError).toMatchObject({
      code: "unusableCertificate",
      message: expect.stringContaining("the authority issued a certificate that cannot be used: "),
    });
    expect(lastError!.message).toMatch(message);
    expect(stage.host.installed.get(ID)).toBe(before);
    const file = readFileSync(join(stage.state, "certificates", ID, "certificate.pem"), "utf8");
    expect(file).toBe(before.key + before.cert);
    // The authority counts what it issued.
    const limits = JSON.stringify(await limitsOf());
    expect(JSON.parse(limits).issued["a.example.net"]).toHaveLength(2);
  });

  test("listeners cannot use it", async () => {
    stage.host.unfit = () => Promise.resolve("no client can complete a handshake");
    const { error } = await failed();
    expect(error).toMatchObject({
      code: "unusableCertificate",
      message: expect.stringContaining("no client can complete a handshake"),
    });
    expect(stage.host.installed.size).toBe(0);
  });
});

async function limitsOf(): Promise<{ issued: Record<string, number[]>; failures: object }> {
  const { readdir, readFile } = await import("node:fs/promises");
  const all = await readdir(stage.state);
  const folder = all.find((name) => name !== "certificates")!;
  return JSON.parse(await readFile(join(stage.state, folder, "limits.json"), "utf8"));
}

test("what is between the certificates of a chain never reaches OpenSSL", async () => {
  const other = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const pem = other.privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  replaceCertificate((real) => {
    const [leaf] = /-----BEGIN[^]+?-----END CERTIFICATE-----\n/.exec(real)!;
    // OpenSSL takes blocks of this name for certificates, too, and the first one for the server's.
    const odd = real.slice(leaf.length).replaceAll(" CERTIFICATE-", " X509 CERTIFICATE-");
    return `${pem}${odd}${leaf}text\n${odd}`;
  });
  stage.engine().lookAfter([stage.wanted(["a.example.net"], { id: ID })]);
  await issued(stage, ID);
  const { key, cert } = stage.host.installed.get(ID)!;
  expect(cert).toBe(new X509Certificate(cert).toString());
  expect(() => createSecureContext({ key, cert })).not.toThrow();
});

test("a certificate with a malformed key identifier is renewed like others", async () => {
  // A length beyond its end.
  const malformed = new x509.Extension("2.5.29.35", false, Buffer.from("30128010", "hex"));
  replaceCertificate((_, csr) => forged(csr, { extensions: [malformed] }));
  const certificates = stage.engine();
  certificates.lookAfter([stage.wanted(["a.example.net"], { id: ID })]);
  await issued(stage, ID);
  replaceCertificate((real) => real);
  expect(await certificates.renewNow()).toMatchObject({ ok: true });
  expect(new X509Certificate(stage.host.installed.get(ID)!.cert).issuer).toMatch(/Pebble/);
});

test.each([
  ["seconds", { "retry-after": "999999999" }],
  ["a date", { "retry-after": "Fri, 12 Sep 275760 00:00:00 GMT", date: "Thu, 01 Jan 1970 00:00:00 GMT" }],
])("a wait of decades, in %s, ends after a day", async (_, headers: Record<string, string>) => {
  stage.between.before = ({ path }) =>
    Promise.resolve(path === "/order-plz" ? { status: 503, headers, body: "" } : undefined);
  const { status } = await failed();
  const wait = status.nextAttempt! - stage.clock.now();
  expect(wait).toBeGreaterThan(0.9 * DAY);
  expect(wait).toBeLessThanOrEqual(DAY);
  stage.between.before = () => Promise.resolve();
  stage.clock.advance(DAY + 60_000);
  await issued(stage, ID);
});

test("what an authority says cannot control a terminal, forge a line of the log, or fill it", async () => {
  const odd = "\u001b]0;owned\u0007\u009b31m\nportico: all is well\u202e";
  const type = "urn:ietf:params:acme:error:";
  const body = JSON.stringify({
    type: `${type}userActionRequired`,
    detail: odd.repeat(1_000),
    subproblems: [
      { type: `${type}${odd}`, detail: "x", identifier: { value: odd } },
      { type: `${type}dns`, detail: odd.repeat(1_000), identifier: { value: odd.repeat(1_000) } },
      {
        type: `${type}userActionRequired`,
        detail: odd,
        instance: `https://ca.example.net/${odd.repeat(100)}`,
      },
    ],
  });
  stage.between.before = ({ path }) =>
    Promise.resolve(path === "/order-plz" ? { status: 403, headers: {}, body } : undefined);
  const { error } = await failed();
  const all = [error.code, error.message, error.fix, ...stage.host.lines].join("");
  expect(all).not.toMatch(/[\0-\x1f\x7f-\x9f\u202e]/);
  expect(error.message).not.toContain("bank");
  expect(all.length).toBeLessThan(5_000);
});

test("an authority that does not respond holds up no other", async () => {
  const { between, ca, host, wanted, engine } = stage;
  let waiting = 0;
  between.before = () => {
    waiting += 1;
    return new Promise((resolve) => setTimeout(() => resolve("cut"), 10_000));
  };
  const slow = Array.from({ length: 6 }, (_, i) => wanted([`s${i}.example.net`], { id: `slow-${i}` }));
  const other = wanted(["a.example.net"], { id: ID, authority: { name: "b", directory: ca.directory } });
  engine().lookAfter([...slow, other]);
  await eventually(() => waiting > 0, "for the slow one");
  await sleep(10);
  const began = Date.now();
  await issued(stage, ID);
  expect(Date.now() - began).toBeLessThan(9_000);
  expect([...host.installed.keys()]).toEqual([ID]);
});
