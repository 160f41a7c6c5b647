import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "../../src/cli/program.js";
import { issue } from "../../testkit/certificates.js";

/** `portico check --security`: what it says of a config, in each form, and its exit codes. */

const root = mkdtempSync(join(tmpdir(), "portico-review-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function write(file: string, content: string): string {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), content);
  return join(root, file);
}

const CERTIFICATE = "/etc/portico/own.pem";
const tls = { certificate: CERTIFICATE, key: "/etc/portico/own.key" };
const config = (more: object = {}): string =>
  JSON.stringify(
    {
      version: 1,
      ...more,
      listeners: [{ name: "https", address: "0.0.0.0", port: 443, protocol: "https", tls }],
      upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
      virtualServers: [
        {
          ...{ name: "wiki", serverNames: ["wiki.example.org"], default: true, listeners: ["https"] },
          ...{ privatePaths: ["/admin"] },
          routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
        },
      ],
    },
    undefined,
    2,
  );

async function review(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await run(["check", "--security", ...args], {
    out: (text) => (out += text),
    err: (text) => (err += text),
  });
  return { code, out, err };
}

const FILE = "etc/portico/portico.json";

beforeAll(async () => {
  const { cert } = await issue({ names: ["wiki.example.org"], type: "ec" });
  write(CERTIFICATE, cert);
  write(FILE, config());
});

test("findings with place, value and fix; exit code 1", async () => {
  const { code, out, err } = await review("--root", root);
  expect([code, err]).toEqual([1, ""]);
  expect(out.replaceAll(root, "")).toMatchInlineSnapshot(`
"error: virtualServers[0].routes[0]: a path that the application's manual tells to close is open to everyone [security.private-open]
    here: /admin
    fix:  Remove \`access: "open"\` of the route, or give the route an \`access\` with \`allow\`.
warning: listeners[0]: the certificate is self-signed: users learn to ignore the warning of their browser [security.self-signed]
    here: /etc/portico/own.pem
    fix:  Use \`TlsMaterial.acme()\`, or \`TlsMaterial.fromFiles()\` with a certificate of an authority.
/etc/portico/portico.json: 2 risks to act on
"
`);
});

test("accepted findings have the reason; exit code 0 if no other is left", async () => {
  const acceptedRisks = ["security.private-open", "security.self-signed"].map((finding) => ({
    ...{ finding, reason: "A lab without users." },
  }));
  const { code, out } = await review(write("accepted.json", config({ acceptedRisks })), "--root", root);
  expect(code).toBe(0);
  expect(out.replaceAll(root, "")).toMatchInlineSnapshot(`
"accepted: virtualServers[0].routes[0]: a path that the application's manual tells to close is open to everyone [security.private-open]
    here: /admin
    why:  A lab without users.
accepted: listeners[0]: the certificate is self-signed: users learn to ignore the warning of their browser [security.self-signed]
    here: /etc/portico/own.pem
    why:  A lab without users.
/accepted.json: no risks to act on, 2 accepted
"
`);
});

test("a certificate that cannot be read is unknown", async () => {
  const { out } = await review(join(root, FILE));
  expect(out).toContain("[security.unknown-certificate]");
});

test("JSON and SARIF, which knows what is suppressed", async () => {
  const risk = { finding: "security.private-open", at: "wiki", reason: "No secrets." };
  const file = write("some.json", config({ acceptedRisks: [risk] }));
  const { out } = await review(file, "--root", root, "--json");
  expect(JSON.parse(out)).toMatchObject({ ok: false, open: 1, findings: [{ accepted: "No secrets." }, {}] });
  const sarif = JSON.parse((await review(file, "--root", root, "--sarif")).out) as {
    runs: { results: { ruleId: string; suppressions?: object[]; locations: object[] }[] }[];
  };
  expect(sarif.runs[0]!.results.map(({ ruleId, suppressions }) => [ruleId, suppressions])).toEqual([
    ["security.private-open", [{ kind: "external", justification: "No secrets." }]],
    ["security.self-signed", undefined],
  ]);
});

test("a config that is refused, and options that exclude each other", async () => {
  expect((await review(write("bad.json", `{"version": 1}`))).code).toBe(1);
  expect((await review(join(root, FILE), "--live")).err).toContain("cannot be used together");
});
