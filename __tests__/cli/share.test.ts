import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { issue } from "../../testkit/certificates.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { run } from "../../src/cli/program.js";
import { parseConfig } from "../../src/model/index.js";
import { wantedCertificates } from "../../src/runtime/load/wantedCertificates.js";

/** `portico certificates share`, as portico-copies.service runs it on the hosts of a pair. */

const folder = mkdtempSync(join(tmpdir(), "portico-share-"));
const at = (...names: string[]): string => join(folder, ...names);
// What is seen to be replaced; read when the command is loaded.
const [, started] = process.argv;
process.argv[1] = at("portico.mjs");
afterAll(() => {
  process.argv[1] = started!;
  rmSync(folder, { recursive: true });
});

const names = ["a.example.net"];
const CONFIG = {
  version: 1,
  certificateAuthorities: [{ name: "ca", agreeToTerms: true }],
  listeners: [
    {
      name: "https",
      address: "127.0.0.1",
      port: 8443,
      protocol: "https",
      tls: { acme: { authority: "ca", names } },
    },
  ],
  virtualServers: [{ name: "site", serverNames: ["_"], listeners: ["https"], default: true, routes: [] }],
};

let port: number;
const printed = { "127.0.0.1": { out: "", err: "" }, "127.0.0.2": { out: "", err: "" } };
type Own = keyof typeof printed;
const peerOf = (own: Own): Own => (own === "127.0.0.1" ? "127.0.0.2" : "127.0.0.1");

beforeEach(async () => {
  port = await freePort();
  for (const one of Object.values(printed)) Object.assign(one, { out: "", err: "" });
  writeFileSync(at("portico.mjs"), "");
  for (const own of Object.keys(printed)) writeFileSync(at(`${own}.json`), JSON.stringify(CONFIG));
  writeFileSync(at("key"), Buffer.alloc(32, 7).toString("base64"));
});

function share(own: Own, ...more: string[]): Promise<number> {
  const to = printed[own];
  const output = {
    out: (text: string) => void (to.out += text),
    err: (text: string) => void (to.err += text),
  };
  const args = ["--own", own, "--peer", peerOf(own), "--port", String(port), ...more];
  return run(["certificates", "share", at(`${own}.json`), ...args], output);
}

test("each host gives the other what it has, by the config that it has, until its programs are replaced", async () => {
  const parsed = parseConfig(CONFIG);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const { id } = wantedCertificates(parsed.value)[0]!;
  const place = (own: Own): string => at(own, "acme/certificates", id, "certificate.pem");
  const issuer = await issue({ name: "authority", ca: true });
  const { key, cert } = await issue({ names, issuer });
  mkdirSync(dirname(place("127.0.0.1")), { recursive: true });
  writeFileSync(place("127.0.0.1"), key + cert + issuer.cert);
  // As systemd gives them to a service; of several directories, the first counts.
  const state = `${at("127.0.0.2")}:/nowhere`;
  Object.assign(process.env, { CREDENTIALS_DIRECTORY: folder, STATE_DIRECTORY: state });
  const second = share("127.0.0.2", "--key", "key");
  await eventually(() => printed["127.0.0.2"].out !== "");
  for (const name of ["CREDENTIALS_DIRECTORY", "STATE_DIRECTORY"]) delete process.env[name];
  const first = share("127.0.0.1", "--key", at("key"), "--state", at("127.0.0.1"));
  await eventually(() => printed["127.0.0.1"].out !== "");
  expect(printed["127.0.0.1"].out).toBe("copied to 127.0.0.2: certificate for a.example.net\n");
  expect(printed["127.0.0.2"].out).toBe(
    "not copied to 127.0.0.1: (111: Connection refused); retried every 10 s\n" +
      "taken from 127.0.0.1: certificate for a.example.net\n",
  );
  expect(existsSync(place("127.0.0.2"))).toBe(true);
  // A config that cannot be used is reported once, and changes nothing: a newer certificate is still given away.
  writeFileSync(at("127.0.0.1.json"), "{");
  await eventually(() => printed["127.0.0.1"].err !== "");
  const newer = await issue({ names, issuer });
  writeFileSync(place("127.0.0.1"), newer.key + newer.cert + issuer.cert);
  const copied = (): boolean => readFileSync(place("127.0.0.2"), "utf8").includes(newer.cert.slice(28, 400));
  await eventually(copied);
  expect(printed["127.0.0.1"].err).toMatch(
    /^[^\n]*127\.0\.0\.1\.json: [^]*\[config\.not-json\][^]*: 1 problem\n$/,
  );
  expect(printed["127.0.0.1"].err.match(/config\.not-json\]/g)).toHaveLength(1);
  appendFileSync(at("portico.mjs"), "// another release\n");
  expect(await first).toBe(0);
  process.emit("SIGTERM");
  expect(await second).toBe(0);
});

test.each(["SIGTERM", "SIGINT"] as const)("%s stops it", async (signal) => {
  const running = share("127.0.0.1", "--key", at("key"), "--state", at("none"));
  await eventually(() => printed["127.0.0.1"].out !== "");
  process.emit(signal);
  expect(await running).toBe(0);
});

test("a key of fewer than 32 bytes is none", async () => {
  writeFileSync(at("key"), Buffer.alloc(31, 7).toString("base64"));
  await expect(share("127.0.0.1", "--key", at("key"), "--state", at("none"))).rejects.toThrow(
    `${at("key")} is too short: a secret has at least 32 bytes`,
  );
});
