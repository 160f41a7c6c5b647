import { X509Certificate } from "node:crypto";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { parseConfig, type ProxyConfig, type ProxyConfigInput } from "../../src/model/index.js";
import { checkAuthorityFiles, filesMark } from "../../src/runtime/load/authorityFiles.js";
import {
  certificatesOf,
  certificateWarnings,
  expiryWarnings,
  validityProblems,
} from "../../src/runtime/load/certificateExpiry.js";
import { nameWarnings } from "../../src/runtime/load/certificateNames.js";
import { handOver, ownerOf } from "../../src/runtime/load/credentialSet.js";
import { credentials } from "../../src/runtime/load/credentials.js";
import { logFix, readSecret } from "../../src/runtime/load/files.js";
import { loadedStateOf } from "../../src/runtime/load/loadConfig.js";
import { loadTicketSecret } from "../../src/runtime/load/ticketSecret.js";
import { handshakeProblem, policyProblems } from "../../src/runtime/tls/handshakeCheck.js";
import { hostPolicy } from "../../src/runtime/tls/tlsContexts.js";
import { wantedCertificates } from "../../src/runtime/load/wantedCertificates.js";
import { tlsPolicySettings } from "../../src/model/serving.js";
import { issue, type Issued } from "../../testkit/certificates.js";
import { openFolder } from "../../testkit/portico.js";
import { descriptorsOf } from "../../testkit/processes.js";
import { knowsGroup } from "../../testkit/serverHello.js";

/** What is found in the files that a config names: each finding whole, and the bounds between good and bad. */

const DAY = 24 * 3_600_000;
const USER = process.geteuid!();
const privileged = USER === 0 ? test : test.skip;
const nowhere = () => Promise.resolve(undefined);

let folder: string;
let ec: Issued;
beforeAll(async () => void (ec = await issue({ type: "ec", names: ["a.example.org"] })));
beforeEach(() => void (folder = openFolder()));

function write(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode });
  return path;
}

function parsed(input: ProxyConfigInput): ProxyConfig {
  const result = parseConfig(input);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

/** One https listener for each of these TLS sections, and http on port 80. */
function configOf(
  sections: readonly object[],
  more: Partial<ProxyConfigInput> = {},
  serverNames: readonly string[] = ["_"],
): ProxyConfig {
  const https = sections.map((tls, i) => ({
    ...{ name: `https${i}`, address: "127.0.0.1", port: 443 + i, protocol: "https" },
    tls: { policy: "mozilla-intermediate", ...tls },
  }));
  const http = { name: "http", address: "127.0.0.1", port: 80, protocol: "http" };
  const listeners = [http, ...https] as unknown as ProxyConfigInput["listeners"];
  const names = listeners.map(({ name }) => name);
  return parsed({
    version: 1,
    listeners,
    virtualServers: [{ name: "all", serverNames, default: true, listeners: names, routes: [] }],
    ...more,
  });
}

describe("the time of a certificate", () => {
  const EMPTY = "-----BEGIN CERTIFICATE----------END CERTIFICATE-----";
  let chain: X509Certificate[];
  let [from, to] = [0, 0];
  beforeAll(async () => {
    const leaf = new X509Certificate(ec.cert);
    const later = new X509Certificate((await issue({ type: "ec", from: 5, to: 60 })).cert);
    chain = [leaf, later];
    [from, to] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  });

  test("is over after its last moment, and begins with its first", () => {
    const iso = (at: number): string => new Date(at).toISOString();
    const leaf = chain.slice(0, 1);
    expect(validityProblems(leaf, "at", to)).toEqual([]);
    expect(validityProblems(leaf, "at", from)).toEqual([]);
    expect(validityProblems(leaf, "at", to + 1)).toEqual([
      expect.objectContaining({
        code: "files.certificate-expired",
        path: "at",
        message: `expired on ${iso(to)}`,
      }),
    ]);
    expect(validityProblems(chain, "at", from - 1)).toEqual([
      expect.objectContaining({
        code: "files.certificate-not-yet-valid",
        message: `is not valid before ${iso(from)}, but the time is ${iso(from - 1)}`,
      }),
      expect.objectContaining({
        message: expect.stringMatching(/^certificate 2 of the chain is not valid before /),
      }),
    ]);
  });

  test.each([
    // The last quarter, here.
    ["quarter", 1, undefined],
    ["quarter", 0, "7 days"],
    ["end", 2 * DAY - 1, "1 day"],
    ["end", DAY - 1, "less than a day"],
    ["end", 0, "less than a day"],
    ["end", -1, undefined],
  ] as const)("is warned of from its last %s, with %d ms: %j", (before, ms, words) => {
    const left = ms + (before === "quarter" ? (to - from) / 4 : 0);
    const expected = `expires on ${new Date(to).toISOString()}, in ${words}`;
    expect(expiryWarnings(chain.slice(0, 1), "at", to - left)).toEqual(
      words === undefined
        ? []
        : [
            expect.objectContaining({
              code: "files.certificate-expires-soon",
              path: "at",
              message: expected,
            }),
          ],
    );
  });

  test("is looked at once for each file in service, whatever listeners share it", () => {
    const files = { certificate: "/c.pem", key: "/k.pem" };
    const config = configOf([files, files]);
    const one = { id: "/c.pem", source: "files", key: ec.key, cert: `${EMPTY}\n${ec.cert}` } as const;
    const tls = { https0: { certificates: [one] }, https1: { certificates: [one] } };
    const all = (now: number): string[] =>
      certificateWarnings(config, tls, now).map(({ code, path }) => `${code} ${path}`);
    const path = "listeners[1].tls.certificate (/c.pem)";
    expect(all(to + 1)).toEqual([`files.certificate-expired ${path}`]);
    expect(all(to - 1)).toEqual([`files.certificate-expires-soon ${path}`]);
    expect(all(from)).toEqual([]);
    expect(
      certificateWarnings(config, { https0: { certificates: [] }, https1: { certificates: [] } }),
    ).toEqual([]);
  });

  test("is read from whole blocks", () => {
    const damaged = ec.cert.replace(/\n.{20}/, "\n");
    expect(certificatesOf(`x\n${EMPTY}\n${ec.cert}y\n${damaged}`)).toEqual([
      expect.any(X509Certificate),
      undefined,
    ]);
  });
});

describe("files of an authority", () => {
  const withAuthority = (authority: object): ProxyConfig =>
    configOf([], {
      certificateAuthorities: [
        {
          ...{ name: "ca", directory: "https://ca.example/dir", agreeToTerms: true, challenge: "http-01" },
          ...authority,
        } as never,
      ],
    });
  const found = async (authority: object): Promise<string[]> =>
    (await checkAuthorityFiles(withAuthority(authority), await credentials())).problems.map(
      ({ code, path, message }) => `${code} ${path} ${message}`.replaceAll(folder, ""),
    );
  const rootsAt = "certificateAuthorities[0].roots (/roots.pem)";

  // With another mark, a reload asks the authority anew, by the new files.
  test.each<[string, (file: string) => object]>([
    ["roots", (roots) => ({ roots })],
    ["key of the account", (keyFile) => ({ externalAccountBinding: { keyId: "a", keyFile } })],
    [
      "key of DNS updates",
      (keyFile) => ({
        challenge: "dns-01",
        dns: { type: "rfc2136", server: { address: "192.0.2.53" }, zone: "a.example", keyFile },
      }),
    ],
  ])(
    "another content of its only file, the %s, is another mark, and the same is the same",
    async (_, named) => {
      const file = join(folder, "marked");
      const mark = async (content: string): Promise<string | undefined> => {
        writeFileSync(file, content);
        return filesMark(withAuthority(named(file)).certificateAuthorities[0]!);
      };
      const first = await mark("one");
      expect(first).toMatch(/./);
      expect(await mark("two")).not.toBe(first);
      expect(await mark("one")).toBe(first);
      expect(await filesMark(withAuthority({}).certificateAuthorities[0]!)).toBeUndefined();
    },
  );

  test.each<[string, () => string, string[]]>([
    ["two good ones", () => ec.cert + ec.cert, []],
    [
      "no certificate",
      () => "text",
      [`files.bad-certificate ${rootsAt} contains no certificate in PEM form`],
    ],
    [
      "a damaged one",
      () => ec.cert + ec.cert.replace(/\n.{20}/, "\n"),
      [`files.bad-certificate ${rootsAt} contains a damaged certificate`],
    ],
  ])("roots: %s", async (_, text, problems) => {
    expect(await found({ roots: write("roots.pem", text()) })).toEqual(problems);
  });

  test.each<[string, boolean]>([
    ["Ab-_09==\n", true],
    ["A", true],
    ["", false],
    ["=", false],
    ["a b", false],
    ["a\nb", false],
    ["+a", false],
    ["a=b", false],
  ])("a MAC key of %j: good %j", async (text, isGood) => {
    const keyFile = write("mac", text);
    expect(await found({ externalAccountBinding: { keyId: "id", keyFile } })).toEqual(
      isGood
        ? []
        : [
            "files.bad-key certificateAuthorities[0].externalAccountBinding.keyFile (/mac) is not a key in base64url",
          ],
    );
  });

  test("that are missing, and those that were handed over in their place", async () => {
    const files = {
      roots: join(folder, "roots.pem"),
      externalAccountBinding: { keyId: "id", keyFile: join(folder, "mac") },
    };
    expect(await found(files)).toEqual([
      `files.unreadable ${rootsAt} does not exist`,
      "files.unreadable certificateAuthorities[0].externalAccountBinding.keyFile (/mac) does not exist",
    ]);
    const handed = openFolder();
    writeFileSync(join(handed, "roots.pem"), ec.cert);
    writeFileSync(join(handed, "mac"), "AAAA");
    process.env["CREDENTIALS_DIRECTORY"] = handed;
    try {
      expect(await found(files)).toEqual([]);
    } finally {
      delete process.env["CREDENTIALS_DIRECTORY"];
    }
  });
});

describe("names that no certificate covers", () => {
  const warnings = (config: ProxyConfig, index = 1): object[] =>
    nameWarnings(config, index, [{ id: "/c.pem", source: "files", key: ec.key, cert: ec.cert }]).map(
      ({ code, path, message, allowed }) => ({ code, path, message, allowed }),
    );
  const FILES = { certificate: "/c.pem", key: "/k.pem" };
  const at = "listeners[1].tls.certificate (/c.pem)";

  test("are those of the servers there, and of redirects that lead there by the client's name", () => {
    const redirect = (name: string, target: object, listeners = ["http"]) => ({
      ...{ name, serverNames: [`${name}.example.org`], listeners },
      routes: [
        {
          ...{ name, path: "/", match: "prefix" as const },
          action: { type: "redirect" as const, status: 301 as const, ...target },
        },
      ],
    });
    const config = configOf([FILES, FILES], {
      virtualServers: [
        {
          name: "here",
          serverNames: ["_", "a.example.org", "b.example.org"],
          default: true,
          listeners: ["https0"],
          routes: [],
        },
        { name: "there", serverNames: ["c.example.org"], default: true, listeners: ["https1"], routes: [] },
        { ...redirect("same", { scheme: "https" }), default: true },
        redirect("other", { scheme: "https", host: "a.example.org" }),
      ] as never,
    });
    expect(warnings(config)).toEqual([
      {
        code: "files.name-not-covered",
        path: at,
        message: "does not cover b.example.org, same.example.org, c.example.org",
        allowed: "DNS:a.example.org",
      },
    ]);
  });

  test("are not those that an authority is to issue for, nor addresses by SNI", () => {
    const authority = {
      name: "ca",
      directory: "https://ca.example/dir",
      agreeToTerms: true,
      challenge: "http-01",
    };
    const more = { certificateAuthorities: [authority as never] };
    const acme = (...names: string[]) => ({ acme: { authority: "ca", names } });
    const twice = configOf(
      [{ ...FILES, certificates: [acme("a.example.org", "d.example.org"), acme("d.example.org")] }],
      more,
      ["a.example.org", "d.example.org", "e.example.org"],
    );
    expect(warnings(twice)).toEqual([
      {
        code: "files.name-not-covered",
        path: "listeners[1].tls",
        message: "has no certificate for e.example.org",
        allowed: "DNS:a.example.org; DNS:a.example.org, DNS:d.example.org; DNS:d.example.org",
      },
      {
        code: "files.certificate-not-chosen",
        path: "listeners[1].tls.certificates[0].acme (a.example.org, d.example.org)",
        message: `is not used for a.example.org, for which clients get ${at}`,
        allowed: undefined,
      },
      {
        code: "files.certificate-not-chosen",
        path: "listeners[1].tls.certificates[1].acme (d.example.org)",
        message:
          "is not used for d.example.org, for which clients get listeners[1].tls.certificates[0].acme (a.example.org, d.example.org)",
        allowed: undefined,
      },
    ]);
    expect(
      wantedCertificates(twice).map(({ names, keyType, challenge }) => ({ names, keyType, challenge })),
    ).toEqual([
      { names: ["a.example.org", "d.example.org"], keyType: "ecdsa-p256", challenge: "http-01" },
      { names: ["d.example.org"], keyType: "ecdsa-p256", challenge: "http-01" },
    ]);
    // The order of its names, which decides nothing, makes no other of it.
    const again = acme("d.example.org", "a.example.org");
    const turned = configOf([{ ...FILES, certificates: [again, acme("d.example.org")] }], more);
    expect(wantedCertificates(turned).map(({ id }) => id)).toEqual(
      wantedCertificates(twice).map(({ id }) => id),
    );
  });
});

describe("files that are handed over", () => {
  const sources = (...names: string[]) => names.map((name) => ({ name, file: join(folder, name) }));
  const owner = { uid: USER, gid: process.getegid!() };
  const sets = (at: string): string[] => readdirSync(at).filter((name) => name !== "current");

  async function handed(at: string, ...names: string[]) {
    const done = await handOver(at, sources(...names), owner);
    if (!done.ok) throw new Error(JSON.stringify(done.problems));
    return done.value;
  }

  test("are copies for their owner in a set that becomes current at once", async () => {
    const at = join(folder, "run");
    write("key", "one");
    await handed(at, "key");
    const [first] = sets(at) as [string];
    expect(readlinkSync(join(at, "current"))).toBe(first);
    const mode = (name: string): number => statSync(join(at, name)).mode & 0o777;
    expect([mode("."), mode(first), mode(`${first}/key`)]).toEqual([0o755, 0o711, 0o400]);
    expect(descriptorsOf(process.pid).filter((path) => path.startsWith(at))).toEqual([]);
    const second = await handed(at, "key");
    const current = readlinkSync(join(at, "current"));
    expect(current).not.toBe(first);
    await second.takeBack();
    expect([readlinkSync(join(at, "current")), sets(at)]).toEqual([first, [first]]);
    mkdirSync(join(at, "other"));
    const third = await handed(at, "key");
    const now = readlinkSync(join(at, "current"));
    await third.keep();
    expect(sets(at).sort()).toEqual([first, now, "other"].sort());
    await (await handed(at, "key")).keep();
    expect(sets(at).sort()).toEqual([readlinkSync(join(at, "current")), now, "other"].sort());
  });

  test("that were the first leave nothing when they are refused", async () => {
    const at = join(folder, "run");
    write("key", "one");
    await (await handed(at, "key")).takeBack();
    expect(readdirSync(at)).toEqual([]);
  });

  test("of which some cannot be read change nothing", async () => {
    const at = join(folder, "run");
    write("key", "one");
    expect(await handOver(at, sources("none", "key", "gone"), owner)).toEqual({
      ok: false,
      problems: ["none", "gone"].map((name) =>
        expect.objectContaining({
          code: "files.unreadable",
          path: join(folder, name),
          message: expect.stringMatching(/^cannot be passed to the service: ENOENT/),
        }),
      ),
    });
    expect(readdirSync(at)).toEqual([]);
  });

  test.each<[string, (at: string) => void]>([
    ["others can write", (at) => (mkdirSync(at), chmodSync(at, 0o757))],
    ["its group can write", (at) => (mkdirSync(at), chmodSync(at, 0o775))],
    ["is a link", (at) => symlinkSync(folder, at)],
    ["is a file", (at) => writeFileSync(at, "")],
  ])("do not go where it %s", async (_, make) => {
    const at = join(openFolder(), "run");
    make(at);
    expect(await handOver(at, [], owner)).toEqual({
      ok: false,
      problems: [
        expect.objectContaining({
          code: "files.bad-directory",
          path: at,
          message: "is not safe for secrets: other users could write to it",
          fix: `Remove the directory: rm -rf ${at}`,
        }),
      ],
    });
  });

  test("are found in the current set, then where systemd passes them, by path or name", async () => {
    const [set, passed] = [openFolder(), openFolder()];
    const env = { PORTICO_CREDENTIALS: folder, CREDENTIALS_DIRECTORY: passed };
    const find = async (path: string, from: NodeJS.ProcessEnv = env) => (await credentials(from))(path);
    writeFileSync(join(passed, "key.pem"), "");
    expect(await find("/etc/key.pem")).toBe(join(passed, "key.pem"));
    symlinkSync(set, join(folder, "current"));
    expect(await find("/etc/key.pem")).toBe(join(passed, "key.pem"));
    writeFileSync(join(set, "key.pem"), "");
    expect(await find("/etc/key.pem")).toBe(join(set, "key.pem"));
    writeFileSync(join(set, "etc_key.pem"), "");
    expect(await find("/etc/key.pem")).toBe(join(set, "etc_key.pem"));
    expect(await find("/etc/other.pem")).toBeUndefined();
    expect(await find("/etc/key.pem", {})).toBeUndefined();
    expect(await find("/etc/key.pem", { CREDENTIALS_DIRECTORY: "" })).toBeUndefined();
  });

  privileged("that systemd read by the word of another user are not used", async () => {
    const passed = openFolder();
    const theirs = join(openFolder(), "conf");
    mkdirSync(theirs);
    const key = join(theirs, "apikey");
    writeFileSync(join(passed, "apikey"), "root's");
    const find = await credentials({ CREDENTIALS_DIRECTORY: passed });
    const read = async () => readSecret(key, "at", find);
    writeFileSync(key, "named");
    expect((await read()).text).toBe("root's");
    chownSync(theirs, 1234, 1234);
    expect(await find(key)).toBeUndefined();
    const { text, problems } = await read();
    expect({ text, problems }).toEqual({
      text: undefined,
      problems: [expect.objectContaining({ code: "files.untrusted-path" })],
    });
  });

  test("go to the user and group of a process", async () => {
    expect(await ownerOf(process.pid)).toEqual({ uid: process.getuid!(), gid: process.getgid!() });
    expect(await ownerOf(2 ** 30)).toBeUndefined();
  });
});

describe("a file with a secret", () => {
  privileged.each<[number, number, string | undefined]>([
    [0o600, 0, undefined],
    [0o601, 0, undefined],
    [0o610, 0, undefined],
    [0o602, 0, "every user of this host (mode 0602)"],
    [0o604, 0, "every user of this host (mode 0604)"],
    [0o640, 0, "its group (mode 0640)"],
    [0o620, 0, "its group (mode 0620)"],
    [0o040, 0, "its group (mode 0040)"],
    // As in a pod, where its group is the way to read it.
    [0o640, 1, undefined],
    [0o660, 1, "its group (mode 0660)"],
    [0o644, 1, "every user of this host (mode 0644)"],
  ])("of mode %o, of user %d, is open to %j", async (mode, uid, who) => {
    const file = write("secret", "x");
    chownSync(file, uid, 0);
    chmodSync(file, mode);
    expect((await readSecret(file, "at", nowhere)).warnings).toEqual(
      who === undefined
        ? []
        : [
            expect.objectContaining({
              code: "files.key-exposed",
              path: `at (${file})`,
              message: `can be read or written by ${who}`,
              fix: `Keep the file private: chmod 600 ${file}`,
            }),
          ],
    );
  });

  test("may be standard input, which has no mode", async () => {
    const saved = Object.getOwnPropertyDescriptor(process, "stdin")!;
    Object.defineProperty(process, "stdin", {
      value: Readable.from([Buffer.from("abc")]),
      configurable: true,
    });
    try {
      expect(await readSecret("/dev/stdin", "at", nowhere)).toMatchObject({ text: "abc", warnings: [] });
    } finally {
      Object.defineProperty(process, "stdin", saved);
    }
  });

  test.each<[string, string, (file: string) => object]>([
    [
      "the key of an account",
      "externalAccountBinding.keyFile",
      (keyFile) => ({ externalAccountBinding: { keyId: "a", keyFile } }),
    ],
    ["a TSIG key", "dns.keyFile", (keyFile) => ({ dns: { type: "rfc2136", keyFile } })],
    [
      "accounts of acme-dns",
      "dns.accountsFile",
      (accountsFile) => ({ dns: { type: "acme-dns", accountsFile } }),
    ],
    [
      "the token of a DNS provider",
      "dns.tokenFile",
      (tokenFile) => ({ dns: { type: "hetzner", tokenFile } }),
    ],
    [
      "the secret of a DNS program",
      "dns.credentialFile",
      (credentialFile) => ({ dns: { type: "program", command: "/bin/true", credentialFile } }),
    ],
  ])(
    "an authority's: %s that every user can read is a warning, unless it is a credential",
    async (_, field, named) => {
      const file = write("secret", "x", 0o644);
      const authorities = { certificateAuthorities: [named(file)] as never };
      const { warnings } = await checkAuthorityFiles(authorities, nowhere);
      expect(warnings.map(({ code, path }) => [code, path])).toEqual([
        ["files.key-exposed", `certificateAuthorities[0].${field} (${file})`],
      ]);
      const credential = write("credential", "x", 0o644);
      expect((await checkAuthorityFiles(authorities, () => Promise.resolve(credential))).warnings).toEqual(
        [],
      );
      chmodSync(file, 0o600);
      expect((await checkAuthorityFiles(authorities, nowhere)).warnings).toEqual([]);
    },
  );
});

describe("the advice for a log that cannot be written", () => {
  const saved = process.env["LOGS_DIRECTORY"];
  const { geteuid } = process;
  afterEach(() => {
    if (saved === undefined) delete process.env["LOGS_DIRECTORY"];
    else process.env["LOGS_DIRECTORY"] = saved;
    process.geteuid = geteuid!;
  });

  test.each<[directories: string | undefined, restart: boolean]>([
    [undefined, false],
    ["", false],
    ["/var/log/portico", true],
    ["/var/log/other:/var/log/portico", true],
    ["/var/log/portico:/var/log/other", true],
    ["/var/log/port", false],
    ["/log/portico", false],
    [":", false],
  ])("where systemd makes %j: a restart is enough: %j", (directories, restart) => {
    if (directories === undefined) delete process.env["LOGS_DIRECTORY"];
    else process.env["LOGS_DIRECTORY"] = directories;
    const made = `user ${USER}: mkdir -p /var/log/portico && chown ${USER} /var/log/portico`;
    expect(logFix("/var/log/portico/access.log")).toBe(
      restart
        ? "Restart the service; systemd then creates its log directory: systemctl restart portico.service"
        : `Create its directory for ${made}`,
    );
  });
});

describe("smaller things", () => {
  test("the secret of tickets is base64 of at least 32 bytes, on any number of lines", async () => {
    const found = async (text: string) => {
      const { secret, problems } = await loadTicketSecret({ file: write("secret", text) }, nowhere);
      return problems.length === 0
        ? secret
        : problems.map(({ code, path, message, allowed }) => [
            code,
            path.replace(folder, ""),
            message,
            allowed,
          ]);
    };
    const of = (bytes: number): string => Buffer.alloc(bytes, 7).toString("base64");
    const no = (message: string) => [
      ["files.bad-ticket-secret", "ticketKeys.file (/secret)", message, "base64 text of at least 32 bytes"],
    ];
    expect(await found(of(32))).toBe(of(32));
    expect(await found(`${of(48).slice(0, 20)}\n${of(48).slice(20)} \n`)).toBe(of(48));
    expect(await found(of(31))).toEqual(no("has only 31 bytes"));
    expect(await found(" \n")).toEqual(no("is empty"));
    expect(await found(`${of(32)}!`)).toEqual(no("is not base64 text"));
  });

  test("a loaded state is of what is installed, not of what an authority issued", () => {
    const config = configOf([{ certificate: "/c.pem", key: "/k.pem" }]);
    const of = (source: "files" | "acme", cert: string, dhparam?: string) =>
      loadedStateOf({
        config,
        warnings: [],
        tls: {
          https0: {
            certificates: [{ id: "x", source, key: "k", cert }],
            dhparam,
          },
        },
      });
    expect(of("files", "a").config).toMatch(/^[0-9a-f]{64}$/);
    expect(of("files", "a")).not.toEqual(of("files", "b"));
    expect(of("acme", "a")).toEqual(of("acme", "b"));
    expect(of("files", "a", "dh").tls).not.toBe(of("files", "a").tls);
  });

  test("ciphers and curves that OpenSSL does not know are named, by their fields or by the policy's name", () => {
    const policy = {
      ...tlsPolicySettings("mozilla-intermediate"),
      ciphers: "NOPE",
      curves: ["P-256", "P-0"],
    };
    const found = (isNamed: boolean) =>
      policyProblems(policy, "p", isNamed).map(({ code, path, received }) => ({ code, path, received }));
    const code = "tls.bad-policy";
    expect(found(false)).toEqual([
      { code, path: "p.ciphers", received: '"NOPE"' },
      { code, path: "p.curves[1]", received: '"P-0"' },
    ]);
    expect(found(true).map(({ path }) => path)).toEqual(["p", "p"]);
  });

  test.each(["file-sync-tls13", "mozilla-intermediate", "mozilla-modern"] as const)(
    "%s has the groups that this OpenSSL knows, and no other",
    (name) => {
      const { curves } = tlsPolicySettings(name);
      const known = knowsGroup("X25519MLKEM768") ? ["X25519MLKEM768"] : [];
      expect(hostPolicy(name)).toMatchObject({ curves: [...known, ...curves] });
      expect(policyProblems(hostPolicy(name), "p", true)).toEqual([]);
    },
  );

  test("a policy that is spelled out keeps all its groups, and is refused for one that OpenSSL does not know", () => {
    const curves = ["X25519MLKEM768", "P-0", "X25519"];
    const policy = hostPolicy({ ...hostPolicy("mozilla-modern"), curves });
    expect(policy.curves).toEqual(curves);
    const unknown = curves.flatMap((curve, i) => (knowsGroup(curve) ? [] : [`p.curves[${i}]`]));
    expect(unknown).toContain("p.curves[1]");
    expect(policyProblems(policy, "p", false).map(({ path }) => path)).toEqual(unknown);
  });

  test("why no handshake is possible is said by the server, which knows it", async () => {
    const policy = tlsPolicySettings("mozilla-intermediate");
    const contents = { id: "", source: "files", key: ec.key, cert: ec.cert } as const;
    const tried = (more: object) =>
      handshakeProblem({ ...policy, ...more }, { contents, keyType: "ec" }, undefined, "at");
    expect(await tried({})).toBeUndefined();
    expect(await tried({ maxVersion: "TLSv1.2", ciphers: "ECDHE-RSA-AES128-GCM-SHA256" })).toMatchObject({
      path: "at.policy",
      message: "no client can complete a handshake with this policy and a key of type ec: no shared cipher",
    });
  });
});
