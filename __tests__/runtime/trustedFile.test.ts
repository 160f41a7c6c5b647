import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { FileRefused } from "../../src/runtime/files/trustedFile.js";
import { checkProgram, openLog, readTrusted } from "../../src/runtime/files/trustedFile.js";
import { loadConfig } from "../../src/runtime/load/loadConfig.js";
import { openFolder } from "../../testkit/portico.js";

/** Every object that can be in the place of a file, and everyone who can put it there. */

const asRoot = process.geteuid!() === 0 ? test : test.skip;
/** The application's user, the service's, and the content that neither may see by our rights. */
const [APP, SERVICE] = [42_424, 42_425];
const SECRET = "root's secret\n";

let folder: string;
const at = (...names: string[]): string => join(folder, ...names);
/** The file that a config names. */
const theFile = (): string => at("conf/file");
const write = (name: string, content: string, mode = 0o644): void => {
  writeFileSync(at(name), content);
  chmodSync(at(name), mode);
};

beforeEach(() => {
  folder = openFolder();
  mkdirSync(at("conf"), { mode: 0o755 });
  mkdirSync(at("root"), { mode: 0o755 });
  mkdirSync(at("state"), { mode: 0o700 });
  write("root/secret", SECRET, 0o600);
  write("state/token", SECRET, 0o600);
  write("conf/file", "content\n");
  // CI may have no root; these are for the tests that need it.
  if (process.geteuid!() !== 0) return;
  chownSync(at("state"), SERVICE, SERVICE);
  chownSync(at("state/token"), SERVICE, SERVICE);
});

/** Does something as a user who is not root. */
async function as<T>(uid: number, act: () => Promise<T> | T): Promise<T> {
  process.seteuid!(uid);
  try {
    return await act();
  } finally {
    process.seteuid!(0);
  }
}

/** The content, or why there is none. */
const outcome = (act: () => unknown): Promise<unknown> =>
  Promise.resolve()
    .then(act)
    .catch((error: NodeJS.ErrnoException) => error.code);
const read = (): Promise<unknown> => outcome(async () => (await readTrusted(theFile())).bytes.toString());
const descriptors = (): number => readdirSync("/proc/self/fd").length;

const theirs = (...names: string[]): void => {
  for (const name of names) lchownSync(at(name), APP, APP);
};

/** The objects, with what root and the service say to them. */
type Case = [what: string, put: () => unknown, root: string | undefined, service: string | undefined];
const UNTRUSTED = "files.untrusted-path";
const KIND = "files.not-a-file";
const inTheirs = (act: () => unknown) => (): unknown => {
  const made = act();
  theirs("conf");
  return made;
};
const link = (target: string) => (): void => {
  rmSync(theFile());
  symlinkSync(target.startsWith("/") ? target : at(target), theFile());
  theirs("conf/file");
};
const instead = (act: () => unknown) => (): unknown => (rmSync(theFile()), act());

const CASES: Case[] = [
  ["a file", () => undefined, "content\n", "content\n"],
  ["another user's file in root's directory", () => theirs("conf/file"), "content\n", "content\n"],
  ["a file in another user's directory", inTheirs(() => undefined), UNTRUSTED, "content\n"],
  [
    "root's link in root's directory",
    () => (renameSync(theFile(), at("root/file")), symlinkSync("../root/file", theFile())),
    "content\n",
    "content\n",
  ],
  ["another user's link in root's directory", link("root/secret"), UNTRUSTED, UNTRUSTED],
  ["another user's link to /etc/shadow", inTheirs(link("/etc/shadow")), UNTRUSTED, UNTRUSTED],
  ["another user's link to root's secret", inTheirs(link("root/secret")), UNTRUSTED, UNTRUSTED],
  ["another user's link to the service's token", inTheirs(link("state/token")), UNTRUSTED, UNTRUSTED],
  ["another user's dangling link", inTheirs(link("none")), UNTRUSTED, UNTRUSTED],
  [
    "a link in place of the directory",
    () => {
      renameSync(at("conf"), at("conf.old"));
      renameSync(at("state/token"), at("state/file"));
      symlinkSync(at("state"), at("conf"));
      theirs("conf");
    },
    UNTRUSTED,
    UNTRUSTED,
  ],
  ["root's dangling link", instead(() => symlinkSync("none", theFile())), "ENOENT", "ENOENT"],
  ["nothing", instead(() => undefined), "ENOENT", "ENOENT"],
  ["a FIFO", instead(() => execFileSync("mkfifo", [theFile()])), KIND, KIND],
  ["another user's FIFO", inTheirs(instead(() => execFileSync("mkfifo", [theFile()]))), UNTRUSTED, KIND],
  ["a directory", instead(() => mkdirSync(theFile())), KIND, KIND],
  ["a device", instead(() => execFileSync("mknod", [theFile(), "c", "1", "5"])), KIND, KIND],
  [
    "a socket",
    instead(
      () =>
        new Promise((done) =>
          createServer()
            .listen(theFile(), () => done(undefined))
            .unref(),
        ),
    ),
    KIND,
    KIND,
  ],
  ["a file of 1 GiB", () => truncateSync(theFile(), 2 ** 30), "files.too-large", "files.too-large"],
  [
    "a file below a file",
    () => (rmSync(at("conf"), { recursive: true }), writeFileSync(at("conf"), "")),
    "ENOTDIR",
    "ENOTDIR",
  ],
  ["a directory that its group may write to", () => chmodSync(at("conf"), 0o775), UNTRUSTED, "content\n"],
  ["a directory that everyone may write to", () => chmodSync(at("conf"), 0o777), UNTRUSTED, "content\n"],
  ["a sticky directory", () => chmodSync(at("conf"), 0o1777), "content\n", "content\n"],
  [
    "another user's file in a sticky directory",
    () => (chmodSync(at("conf"), 0o1777), theirs("conf/file")),
    UNTRUSTED,
    "content\n",
  ],
  ["a missing file in a sticky directory", instead(() => chmodSync(at("conf"), 0o1777)), UNTRUSTED, "ENOENT"],
];

asRoot.each(CASES)(
  "%s: root and the service read the file, or say why not, and nothing waits",
  async (_, put, root, service) => {
    await put();
    const before = descriptors();
    expect(await read()).toBe(root);
    expect(await as(SERVICE, read)).toBe(service);
    expect(descriptors()).toBeLessThanOrEqual(before);
  },
);

asRoot("the user of the process is trusted as root is", async () => {
  await as(SERVICE, async () => {
    symlinkSync("token", at("state/link"));
    expect((await readTrusted(at("state/link"))).bytes.toString()).toBe(SECRET);
  });
  await expect(readTrusted(at("state/token"))).rejects.toMatchObject({
    code: UNTRUSTED,
    message: `is at or below ${at("state")} (owner ${SERVICE}, mode 0700), which user ${SERVICE} can change`,
    fix: `Put the file below a directory that only root can change, such as /etc/portico. Or let only root change it: chown root: ${at("state")}`,
  });
});

asRoot(
  "a file that is replaced by links, while it is opened, leaks nothing to root and to the service",
  async () => {
    theirs("conf", "conf/file");
    // The attack: file, link, file, link, as fast as the user can.
    const secret = JSON.stringify(at("state/token"));
    const code = `const fs = require("fs"); process.chdir(${JSON.stringify(at("conf"))});
    fs.linkSync("file", "copy"); console.log("on");
    for (;;) {
      fs.symlinkSync(${secret}, "link"); fs.renameSync("link", "file");
      fs.linkSync("copy", "again"); fs.renameSync("again", "file");
    }`;
    const attacker = spawn(process.execPath, ["-e", code], {
      uid: APP,
      gid: APP,
      stdio: ["ignore", "pipe", "ignore"],
    });
    await new Promise((on) => attacker.stdout.once("data", on));
    try {
      const seen = new Map<unknown, number>();
      await as(SERVICE, async () => {
        for (let i = 0; i < 2_000; i++) {
          const content = await read();
          seen.set(content, (seen.get(content) ?? 0) + 1);
        }
      });
      expect(
        [...seen.keys()].filter((one) => !["content\n", UNTRUSTED, "ENOENT"].includes(String(one))),
      ).toEqual([]);
      expect(seen.size).toBeGreaterThan(1);
      for (let i = 0; i < 300; i++) expect(await read()).toBe(UNTRUSTED);
    } finally {
      attacker.kill("SIGKILL");
    }
  },
);

asRoot.each<[string, () => void, string | undefined]>([
  ["root's", () => undefined, undefined],
  [
    "behind root's link",
    () => (renameSync(theFile(), at("root/p")), symlinkSync("../root/p", theFile())),
    undefined,
  ],
  ["that is another user's", () => theirs("conf/file"), "chown root: AT && chmod go-w AT"],
  ["that its group can change", () => chmodSync(theFile(), 0o775), "chmod go-w AT"],
  ["that is setuid", () => chmodSync(theFile(), 0o4755), "chmod ug-s AT"],
  ["in another user's directory", () => theirs("conf"), "Or let only root change it: chown root: DIR"],
  [
    "in a directory that everyone can change",
    () => chmodSync(at("conf"), 0o777),
    "Or let only root change it: chmod go-w DIR",
  ],
  ["behind another user's link", link("root/secret"), "Or let only root change it: chown -h root: AT"],
])("a program %s is started by nobody unless it is safe", async (_, put, fix) => {
  chmodSync(theFile(), 0o755);
  put();
  const told = async (): Promise<string | undefined> => {
    const refused = await checkProgram(theFile()).then(
      () => undefined,
      (error: unknown) => error as FileRefused,
    );
    if (refused === undefined) return undefined;
    expect(refused.code).toBe(UNTRUSTED);
    return refused.fix
      .replace(/^Put the file .*? Or/, "Or")
      .replaceAll(theFile(), "AT")
      .replaceAll(at("conf"), "DIR");
  };
  expect(await told()).toBe(fix);
  expect(await as(SERVICE, told)).toBe(fix);
});

asRoot("a program that cannot be executed is refused by the system's error", async () => {
  expect(await outcome(() => checkProgram(theFile()))).toBe("EACCES");
  expect(await outcome(() => checkProgram(at("conf/none")))).toBe("ENOENT");
});

asRoot("a log is never written behind another user's link, and is made where the path leads", async () => {
  const make = (path: Buffer): number => {
    writeFileSync(path, "", { flag: "wx" });
    return openLog(path.toString(), () => -1);
  };
  const log = (name: string): unknown => openLog(at(name), make);
  theirs("conf");
  symlinkSync(at("state/token"), at("conf/access.log"));
  symlinkSync(at("state"), at("conf/logs"));
  theirs("conf/access.log", "conf/logs");
  await as(SERVICE, async () => {
    expect(await outcome(() => log("conf/access.log"))).toBe(UNTRUSTED);
    expect(await outcome(() => log("conf/logs/token"))).toBe(UNTRUSTED);
    expect(await outcome(() => log("conf/logs/new"))).toBe(UNTRUSTED);
    expect(log("state/access.log")).toEqual(expect.any(Number));
  });
  expect(readdirSync(at("state")).sort()).toEqual(["access.log", "token"]);
  expect(readFileSync(at("state/token"), "utf8")).toBe(SECRET);
});

asRoot.each<[string, (file: string) => object]>([
  [
    "the value of a field",
    (file) => serverOf({ type: "proxy", upstream: "u", setHeadersFromCredential: { "x-api-key": file } }),
  ],
  ["a page", (file) => serverOf(undefined, { errorPages: [{ statuses: [404], file }] })],
  ["the secret of tickets", (file) => ({ ticketKeys: { file } })],
  [
    "roots of an upstream",
    (caFile) => ({ upstreams: [{ name: "u", url: "https://127.0.0.1:2", tls: { caFile } }] }),
  ],
  [
    "a token",
    (tokenFile) => ({
      notifications: { targets: [{ type: "webhook", name: "n", url: "https://a.example/", tokenFile }] },
    }),
  ],
  [
    "the URL of a target",
    (urlFile) => ({ notifications: { targets: [{ type: "ntfy", name: "n", urlFile }] } }),
  ],
  [
    "roots of an authority",
    (roots) => ({
      certificateAuthorities: [{ name: "c", directory: "https://c.example/", agreeToTerms: true, roots }],
    }),
  ],
  [
    "the key of an account",
    (keyFile) => ({
      certificateAuthorities: [
        {
          name: "c",
          directory: "https://c.example/",
          agreeToTerms: true,
          externalAccountBinding: { keyId: "i", keyFile },
        },
      ],
    }),
  ],
  [
    "a key of DNS updates",
    (keyFile) => dnsBy({ type: "rfc2136", server: { address: "192.0.2.53" }, zone: "a.example", keyFile }),
  ],
  [
    "accounts of acme-dns",
    (accountsFile) => dnsBy({ type: "acme-dns", url: "https://d.example/", accountsFile }),
  ],
  ["the token of a DNS provider", (tokenFile) => dnsBy({ type: "desec", tokenFile })],
  [
    "the secret of a DNS program",
    (credentialFile) => dnsBy({ type: "program", command: "/bin/true", credentialFile }),
  ],
  ["a DNS program", (command) => dnsBy({ type: "program", command })],
  ["a certificate", (certificate) => tlsOf({ certificate, key: "/none" })],
  ["a key", (key) => tlsOf({ certificate: "/none", key })],
  ["DH parameters", (dhparam) => tlsOf({ certificate: "/none", key: "/none", dhparam })],
])(
  "%s of a config in another user's directory is refused, and nothing of it is shown",
  async (name, named) => {
    const config = {
      version: 1,
      listeners: [{ name: "l", address: "127.0.0.1", port: 1, protocol: "http" }],
      upstreams: [{ name: "u", url: "http://127.0.0.1:2" }],
      ...serverOf(),
      ...named(theFile()),
    };
    write("portico.json", JSON.stringify(config));
    for (const [put, code] of [
      [inTheirs(link("root/secret")), UNTRUSTED],
      [inTheirs(instead(() => execFileSync("mkfifo", [theFile()]))), UNTRUSTED],
      [() => (lchownSync(at("conf"), 0, 0), undefined), KIND],
    ] as const) {
      put();
      const loaded = await loadConfig({ file: at("portico.json"), logToStderr: true });
      const problems = loaded.ok ? [] : loaded.problems;
      // A page is sent to clients, by the rule of static files.
      const isLink = lstatSync(theFile()).isSymbolicLink();
      const expected = name === "a page" && isLink ? "files.unreadable" : code;
      expect(problems.filter((p) => p.path.includes(theFile())).map((p) => p.code)).toEqual([expected]);
      expect(JSON.stringify(loaded)).not.toContain(SECRET.trim());
    }
  },
);

const serverOf = (action: object = { type: "proxy", upstream: "u" }, more: object = {}): object => ({
  virtualServers: [
    {
      ...{ name: "a", default: true, serverNames: ["a.example"], listeners: ["l"] },
      routes: [{ name: "r", path: "/", match: "prefix", action }],
      ...more,
    },
  ],
});
const dnsBy = (dns: object): object => ({
  certificateAuthorities: [
    { name: "c", directory: "https://c.example/", agreeToTerms: true, challenge: "dns-01", dns },
  ],
});
const tlsOf = (tls: object): object => ({
  listeners: [{ name: "l", address: "127.0.0.1", port: 1, protocol: "https", tls }],
});
