import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { ProxyConfig } from "../../src/model/index.js";
import { certificateWarnings } from "../../src/runtime/load/certificateExpiry.js";
import { credentials } from "../../src/runtime/load/credentials.js";
import { handOver, ownerOf } from "../../src/runtime/load/credentialSet.js";
import { issue } from "../../testkit/certificates.js";
import { NOBODY, openFolder } from "../../testkit/portico.js";

/** Renewed TLS files on their way to a service that may not read them. */

let folder: string;
let directory: string;
const owner = { uid: NOBODY, gid: NOBODY };

const at = (name: string): string => join(folder, name);
const sources = ["key.pem", "cert.pem"].map((name) => ({
  name,
  get file() {
    return at(name);
  },
}));

beforeEach(() => {
  folder = openFolder();
  directory = at("credentials");
  renew("one");
});

function renew(text: string): void {
  writeFileSync(at("key.pem"), `key ${text}`, { mode: 0o600 });
  writeFileSync(at("cert.pem"), `cert ${text}`);
}

const env = (): NodeJS.ProcessEnv => ({ PORTICO_CREDENTIALS: directory });

async function found(name: string, environment = env()): Promise<string | undefined> {
  const file = await (await credentials(environment))(`/etc/portico/tls/${name}`);
  return file === undefined ? undefined : readFileSync(file, "utf8");
}

async function handedOver() {
  const result = await handOver(directory, sources, owner);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  process.seteuid!(NOBODY);
  return work().finally(() => process.seteuid!(0));
}

const asRoot = process.getuid!() === 0 ? test : test.skip;

asRoot("are copied for the service's user alone, where only root can write, whatever the umask", async () => {
  const umask = process.umask(0o077);
  await handedOver().finally(() => process.umask(umask));
  const set = join(directory, readlinkSync(join(directory, "current")));
  const modes = [directory, set, join(set, "key.pem"), join(set, "cert.pem")].map((path) => {
    const { mode, uid, gid } = statSync(path);
    return [(mode & 0o7777).toString(8), uid, gid];
  });
  expect(modes).toEqual([
    ["755", 0, 0],
    ["711", 0, 0],
    ["400", NOBODY, NOBODY],
    ["400", NOBODY, NOBODY],
  ]);
});

asRoot("are taken in place of those of the start, and as one set", async () => {
  mkdirSync(at("start"));
  writeFileSync(at("start/key.pem"), "key zero");
  writeFileSync(at("start/other.pem"), "other zero");
  const environment = { ...env(), CREDENTIALS_DIRECTORY: at("start") };
  expect(await found("key.pem", environment)).toBe("key zero");
  await handedOver();
  const before = await credentials(environment);
  renew("two");
  await (await handedOver()).keep();
  // Who began to read the set before goes on with it.
  const [key, cert] = await Promise.all([before("/x/key.pem"), before("/x/cert.pem")]);
  expect([key, cert].map((file) => readFileSync(file!, "utf8"))).toEqual(["key one", "cert one"]);
  expect([await found("key.pem", environment), await found("cert.pem", environment)]).toEqual([
    "key two",
    "cert two",
  ]);
  expect(await found("other.pem", environment)).toBe("other zero");
  expect(await found("none.pem", environment)).toBeUndefined();
});

asRoot("that may not be read are not passed over for older ones", async () => {
  mkdirSync(at("start"));
  writeFileSync(at("start/key.pem"), "key zero");
  await handedOver();
  chmodSync(directory, 0o700);
  const environment = { ...env(), CREDENTIALS_DIRECTORY: at("start") };
  const file = await asNobody(async () => (await credentials(environment))("/x/key.pem"));
  expect(file).toBe(join(directory, "current/key.pem"));
});

asRoot("that were refused are taken back", async () => {
  const first = await handedOver();
  await first.takeBack();
  expect(readdirSync(directory)).toEqual([]);
  expect(await found("key.pem")).toBeUndefined();
  await (await handedOver()).keep();
  renew("bad");
  await (await handedOver()).takeBack();
  expect(await found("key.pem")).toBe("key one");
  expect(readdirSync(directory)).toHaveLength(2);
});

asRoot("do not pile up", async () => {
  for (const text of ["1", "2", "3", "4"]) {
    renew(text);
    await (await handedOver()).keep();
  }
  expect(readdirSync(directory)).toHaveLength(3);
  expect(await found("key.pem")).toBe("key 4");
});

asRoot("are not copied where others can write, nor through a link", async () => {
  const unsafe: [string, () => void][] = [
    ["writable for all", () => (mkdirSync(directory), chmodSync(directory, 0o777))],
    ["a link", () => (mkdirSync(at("elsewhere")), symlinkSync(at("elsewhere"), directory))],
    ["a file", () => writeFileSync(directory, "")],
  ];
  for (const [, make] of unsafe) {
    folder = openFolder();
    directory = at("credentials");
    renew("one");
    make();
    const result = await handOver(directory, sources, owner);
    expect(result).toMatchObject({ ok: false, problems: [{ code: "files.bad-directory" }] });
    expect(existsSync(at("elsewhere")) ? readdirSync(at("elsewhere")) : []).toEqual([]);
  }
});

asRoot("that cannot be read change nothing", async () => {
  await (await handedOver()).keep();
  const before = readdirSync(directory).sort();
  const result = await handOver(directory, [...sources, { name: "dh.pem", file: at("dh.pem") }], owner);
  expect(result).toMatchObject({ ok: false, problems: [{ code: "files.unreadable", path: at("dh.pem") }] });
  expect(readdirSync(directory).sort()).toEqual(before);
});

test("belong to the user of a process", async () => {
  expect(await ownerOf(process.pid)).toEqual({ uid: process.getuid!(), gid: process.getgid!() });
  expect(await ownerOf(2 ** 30)).toBeUndefined();
});

test("the daily check of certificates in use names those that expire soon, have expired or are not yet valid", async () => {
  const DAY = 86_400_000;
  const [leaf, root] = [await issue({ to: 60 }), await issue({ from: -70, to: 20 })];
  const tls = { certificate: "/etc/c.pem", key: "/etc/k.pem", certificates: [] };
  const config = {
    listeners: [{ name: "plain" }, { name: "a", tls }, { name: "b", tls }],
  } as unknown as ProxyConfig;
  const contents = { id: "/etc/c.pem", source: "files", key: leaf.key, cert: leaf.cert + root.cert } as const;
  const files = { certificates: [contents] };
  const seen = (days: number): string[] =>
    certificateWarnings(config, { a: files, b: files }, Date.now() + days * DAY - 60_000).map(
      ({ code, path, message }) => `${code} ${path} ${message.replace(/\d{4}-[^\s,]+/g, "DATE")}`,
    );
  const label = "listeners[1].tls.certificate (/etc/c.pem)";
  expect(seen(0)).toEqual([]);
  expect(seen(5)).toEqual([]);
  expect(seen(7)).toEqual([
    `files.certificate-expires-soon ${label} certificate 2 of the chain expires on DATE, in 13 days`,
  ]);
  expect(seen(21)).toEqual([`files.certificate-expired ${label} certificate 2 of the chain expired on DATE`]);
  expect(seen(60)).toEqual([
    `files.certificate-expired ${label} certificate 2 of the chain expired on DATE`,
    `files.certificate-expires-soon ${label} expires on DATE, in less than a day`,
  ]);
  expect(seen(-80)).toHaveLength(2);
});
