import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CERTIFICATE_QUESTIONS } from "../../src/host/diagnosis/rows/certificateRows.js";
import type { Evidence } from "../../src/host/diagnosis/evidence.js";
import type { ListedCertificate } from "../../src/runtime/supervisor/control/certificateList.js";

/** Which row of `doctor` names a failure of an authority; proof/acme has the failures themselves. */

const NOW = Date.now();
const DAY = 86_400_000;

const certificate = (more: Partial<ListedCertificate>): ListedCertificate => ({
  names: ["files.example.org"],
  listeners: ["https"],
  source: "temporary",
  from: "letsencrypt",
  issuer: "temporary",
  notBefore: NOW,
  notAfter: NOW + 300 * DAY,
  state: "waiting",
  nextAttempt: NOW + DAY,
  ...more,
});

const failure = (code: string): ListedCertificate["lastError"] => ({
  code,
  message: `files.example.org: ${code}`,
  fix: `fix of ${code}`,
  at: NOW,
});

function rowsOf(...certificates: ListedCertificate[]): Record<string, { status: string; cause?: string }> {
  const failed = new Set<string>();
  const rows = CERTIFICATE_QUESTIONS.map(({ id, ask }) => {
    const verdict = ask({ certificates } as unknown as Evidence, failed);
    if (verdict.status === "failed") failed.add(id);
    return [id, verdict] as const;
  });
  return Object.fromEntries(rows);
}

test.each([
  ["clock", "acme-clock", "the clock of this host is wrong"],
  ["unreachable", "acme-authority", "this host gets no usable response from the certificate authority"],
  ["untrusted", "acme-authority", "this host gets no usable response from the certificate authority"],
  ["serverInternal", "acme-authority", "this host gets no usable response from the certificate authority"],
  ["externalAccountRequired", "acme-account", "the certificate authority does not accept the account"],
  ["rateLimited", "acme-limit", "the authority's rate limit is reached"],
  [
    "dns",
    "acme-dns",
    "a name has no address, resolves to another host, or has a CAA record that forbids the authority",
  ],
  [
    "unauthorized",
    "acme-dns",
    "a name has no address, resolves to another host, or has a CAA record that forbids the authority",
  ],
  [
    "caa",
    "acme-dns",
    "a name has no address, resolves to another host, or has a CAA record that forbids the authority",
  ],
  ["badResponse", "acme-authority", "this host gets no usable response from the certificate authority"],
  ["timeout", "acme-authority", "this host gets no usable response from the certificate authority"],
  ["userActionRequired", "acme-account", "the certificate authority does not accept the account"],
  ["invalidContact", "acme-account", "the certificate authority does not accept the account"],
  ["unsupportedContact", "acme-account", "the certificate authority does not accept the account"],
  ["accountDoesNotExist", "acme-account", "the certificate authority does not accept the account"],
  ["notAllowed", "acme-account", "the certificate authority does not accept the account"],
  [
    "incorrectResponse",
    "acme-dns",
    "a name has no address, resolves to another host, or has a CAA record that forbids the authority",
  ],
  ["dnsUpdate", "acme-record", "a name cannot be proved by a DNS record"],
  ["dnsRecord", "acme-record", "a name cannot be proved by a DNS record"],
  ["dnsProof", "acme-record", "a name cannot be proved by a DNS record"],
  ["tls", "acme-port", "the certificate authority cannot connect to this host"],
  ["connection", "acme-port", "the certificate authority cannot connect to this host"],
])("%s fails the row %s alone, which explains the certificate that is missing", (code, id, cause) => {
  const rows = rowsOf(certificate({ lastError: failure(code) }));
  expect(rows[id]).toEqual({
    status: "failed",
    cause,
    evidence: [`files.example.org: ${code} (${new Date(NOW).toISOString()})`],
    fix: `fix of ${code} Then request it again: portico certificates renew`,
  });
  expect(rows["acme-certificates"]).toMatchObject({ status: "explained", because: id });
  const others = Object.keys(rows).filter((one) => one !== id && one !== "acme-certificates");
  expect(others.map((one) => rows[one]!.status)).toEqual(others.map(() => "ok"));
});

test("any other failure is the certificate's own row, in the authority's words", () => {
  const rows = rowsOf(certificate({ lastError: failure("rejectedIdentifier") }));
  expect(rows["acme-certificates"]).toMatchObject({
    status: "failed",
    cause: "files.example.org: rejectedIdentifier",
    fix: "fix of rejectedIdentifier Then request it again: portico certificates renew",
  });
});

test("a certificate that is issued is in order; one that expired, or is not renewed, is not", () => {
  const issued = { source: "acme", state: "valid", notAfter: NOW + 60 * DAY } as const;
  expect(rowsOf(certificate(issued))["acme-certificates"]).toMatchObject({ status: "ok" });
  const late = certificate({ ...issued, lastError: failure("rateLimited") });
  expect(rowsOf(late)["acme-certificates"]).toMatchObject({ status: "explained", because: "acme-limit" });
  const unrenewed = { cause: "a certificate ends soon, and was not renewed" };
  const ends = (days: number) =>
    rowsOf(certificate({ ...issued, notBefore: NOW - 80 * DAY, notAfter: NOW + days * DAY }))[
      "acme-certificates"
    ];
  expect(ends(10)).toMatchObject({ ...unrenewed, status: "warning" });
  // The status page and notifications call the last days an error, too.
  expect(ends(2)).toMatchObject({ ...unrenewed, status: "failed" });
  const expired = certificate({ ...issued, notAfter: NOW - DAY });
  expect(rowsOf(expired)["acme-certificates"]).toMatchObject({ status: "failed" });
  // Those of files have rows of their own.
  const [until, next] = [NOW + 60 * DAY, NOW + DAY].map((at) => new Date(at).toISOString());
  expect(rowsOf({ ...expired, source: "files" }, certificate(issued))["acme-certificates"]).toEqual({
    status: "ok",
    evidence: [`files.example.org: from letsencrypt, valid until ${until}; next attempt: ${next}`],
  });
});

test("a proxy that asks no authority is distinguished from a slow authority", () => {
  const asking = rowsOf(certificate({ state: "ordering" }))["acme-certificates"]!;
  expect(asking.cause).toBe("a certificate is requested, but not issued yet");
  const { state: _, nextAttempt: __, ...idle } = certificate({});
  expect(rowsOf(idle)["acme-certificates"]!.cause).toMatch(/has no directory to store the certificate in/);
  expect(rowsOf(certificate({}), idle)["acme-certificates"]).toMatchObject({
    cause: expect.stringContaining("has no directory to store the certificate in"),
    evidence: [
      expect.stringMatching(
        /^files\.example\.org: a temporary certificate, until letsencrypt issues one; next/,
      ),
      "files.example.org: a temporary certificate, until letsencrypt issues one",
    ],
  });
});

test("the table in docs/certificates.md names each of these rows, and no other", () => {
  const docs = readFileSync(join(__dirname, "../../docs/certificates.md"), "utf8");
  const table = docs.slice(docs.indexOf("| cause  ")).split("\n\n")[0]!;
  const named = table
    .split("\n")
    .slice(2)
    .map((row) => row.split("|")[2]!.trim());
  expect(new Set(named)).toEqual(new Set(CERTIFICATE_QUESTIONS.map(({ title }) => title)));
});

describe("on a host without the address that decides who asks", () => {
  const elsewhere = { state: "none", nextAttempt: undefined, waitsFor: "192.0.2.20" } as const;

  test("nothing fails while a temporary certificate serves", () => {
    const rows = rowsOf(certificate(elsewhere));
    expect(Object.values(rows).map(({ status }) => status)).toEqual(Object.keys(rows).map(() => "ok"));
    expect(JSON.stringify(rows["acme-certificates"])).toContain("waiting for the address 192.0.2.20");
  });

  test("a certificate that has expired is reported", () => {
    const rows = rowsOf(certificate({ ...elsewhere, source: "acme", notAfter: NOW - DAY }));
    expect(rows["acme-certificates"]).toMatchObject({
      status: "failed",
      cause: "a certificate has expired, and the host that requests certificates has not shared one",
      fix: "Run `portico certificates` on the host that has the address 192.0.2.20.",
    });
  });
});
