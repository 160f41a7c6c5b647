import { randomBytes } from "node:crypto";
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { issue } from "../../testkit/certificates.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { killAll, openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";

/**
 * A worker reads the bytes of clients. Whoever makes a worker send its memory gets what the worker needs to serve, and no
 * more: each secret of a config is searched for in the memory of master and worker.
 */

let folder: string;
const at = (name: string): string => join(folder, name);
beforeAll(() => (folder = openFolder()));
afterAll(killAll);

function secret(name: string, text: string): string {
  writeFileSync(at(name), text, { mode: 0o600 });
  return at(name);
}

const SECRETS = {
  binding: randomBytes(48).toString("base64url"),
  update: randomBytes(48).toString("base64"),
  token: randomBytes(24).toString("hex"),
  tickets: randomBytes(48).toString("base64"),
  field: randomBytes(24).toString("hex"),
};

/** A worker needs these to serve: the value of a request field, and the key of a certificate. */
const OF_WORKERS = ["field", "key"];

async function config(): Promise<{ readonly input: ProxyConfigInput; readonly key: string }> {
  const [http, https, bound, byDns, closed] = (await freePorts(5)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const { key, cert } = await issue({ type: "ec", names: ["a.example"] });
  const authority = {
    directory: `https://127.0.0.1:${closed}/directory`,
    email: "a@example.org",
    agreeToTerms: true as const,
  };
  const updates = `key "k" {\n\talgorithm hmac-sha256;\n\tsecret "${SECRETS.update}";\n};\n`;
  const tls = {
    policy: "mozilla-intermediate" as const,
    certificate: secret("certificate", cert),
    key: secret("key", key),
  };
  const input = oneServer({
    workers: 1,
    listeners: [
      loopback("http", http),
      loopback("https", https, tls),
      loopback("bound", bound, { acme: { authority: "bound", names: ["b.example.net"] } }),
      loopback("dns", byDns, { acme: { authority: "dns", names: ["c.example.net"] } }),
    ],
    certificateAuthorities: [
      {
        ...authority,
        name: "bound",
        externalAccountBinding: { keyId: "id", keyFile: secret("binding", SECRETS.binding) },
      },
      {
        ...authority,
        name: "dns",
        dns: {
          type: "rfc2136",
          zone: "example.net",
          server: { address: "127.0.0.1", port: closed },
          keyFile: secret("update", updates),
        },
      },
    ],
    notifications: {
      targets: [
        {
          name: "hook",
          type: "webhook",
          url: `https://127.0.0.1:${closed}/hook`,
          tokenFile: secret("token", SECRETS.token),
        },
      ],
    },
    ticketKeys: { file: secret("tickets", SECRETS.tickets) },
    upstreams: [{ name: "u", url: `http://127.0.0.1:${closed}` }],
    routes: [
      {
        name: "r",
        path: "/",
        action: {
          type: "proxy",
          upstream: "u",
          setHeadersFromCredential: { "X-Api-Key": secret("field", SECRETS.field) },
        },
      },
    ],
  });
  return { input, key };
}

/** The longest line of a key in PEM: a process that was given the key has it. */
const lineOf = (pem: string): string =>
  pem
    .split("\n")
    .filter((line) => !line.startsWith("-"))
    .reduce((longest, line) => (line.length > longest.length ? line : longest), "");

/** Which of the texts a process has in its memory. */
function inMemory(pid: number, texts: Readonly<Record<string, string>>): string[] {
  const found = new Set<string>();
  const memory = openSync(`/proc/${pid}/mem`, "r");
  for (const line of readFileSync(`/proc/${pid}/maps`, "latin1").split("\n")) {
    const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    if (from === undefined) continue;
    const [start, end] = [Number.parseInt(from, 16), Number.parseInt(to!, 16)];
    const bytes = Buffer.alloc(end - start);
    try {
      readSync(memory, bytes, 0, bytes.length, start);
    } catch {
      continue;
    }
    for (const [name, text] of Object.entries(texts)) if (bytes.includes(text, 0, "latin1")) found.add(name);
  }
  closeSync(memory);
  return [...found].sort();
}

/** Names of the open files of a process that are in the folder. */
const openFiles = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/fd`)
    .map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
    .filter((target) => target.startsWith(folder));

test("a worker has no secret in its memory that it does not need, and no file of secrets open", async () => {
  for (const name of ["state", "runtime"]) mkdirSync(at(name), { mode: 0o700 });
  const { input, key } = await config();
  const env = { STATE_DIRECTORY: at("state"), RUNTIME_DIRECTORY: at("runtime") };
  const portico = await Portico.start(input, { env });
  const texts = { ...SECRETS, key: lineOf(key) };
  const [worker] = portico.workers() as [number];
  // The search finds what is there.
  expect(inMemory(portico.pid, texts)).toEqual(Object.keys(texts).sort());
  expect(inMemory(worker, texts)).toEqual(OF_WORKERS);
  expect(openFiles(worker)).toEqual([]);
  await portico.stop();
});
