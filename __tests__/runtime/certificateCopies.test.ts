import { generateKeyPairSync, randomBytes, X509Certificate } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect as connectPlain, createServer as createPlain, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import { once } from "node:events";
import type { WantedCertificate } from "../../src/model/serving.js";
import { copiesOf, takeCopies } from "../../src/runtime/acme/copies.js";
import { type CopyLink, listenForCopies, sendCopies } from "../../src/runtime/acme/copyLink.js";
import { CertificateSharing, type SharingOptions } from "../../src/runtime/acme/sharing.js";
import { listenProblem } from "../../src/runtime/listen/sockets.js";
import {
  CLIENTS_ONLY,
  type CertificateOptions,
  issue,
  type Issued,
  POISON,
} from "../../testkit/certificates.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Certificates by ACME that one host of a pair gives to the other. */

const AUTHORITY = {
  name: "ca",
  directory: "https://ca.example/dir",
  agreeToTerms: true,
} as const;
const WANTED: WantedCertificate = {
  id: "ca-0123456789abcdef",
  names: ["a.example.net", "b.example.net"],
  keyType: "ecdsa-p256",
  authority: AUTHORITY,
  challenge: "http-01",
};
const { names } = WANTED;
/** Its folder is on the disks of hosts: another name would be another account. */
const ACCOUNT = "ca-1242d0bc";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-copies-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/** One that signs what hosts get, and a stranger of the same name. */
let ca: Issued;
let stranger: Issued;
const newIssuer = (name: string, issuer?: Issued): Promise<Issued> =>
  issue({ name, type: "ec", ca: true, issuer });
beforeAll(async () => {
  ca = await newIssuer("ca");
  stranger = await newIssuer("ca");
});
const selfIssued = async (): Promise<string> => {
  const { key, cert } = await issue({ names, type: "ec" });
  return key + cert;
};

const textOf = async (options: CertificateOptions = {}): Promise<string> => {
  const { key, cert } = await issue({ names, type: "ec", issuer: ca, ...options });
  return key + cert + (options.issuer ?? ca).cert;
};
const certificates = (text: unknown): object => ({ certificates: { [WANTED.id]: text } });
const place = (host: string): string => join(folder, host, "certificates", WANTED.id, "certificate.pem");
const take = (message: unknown, host = "here") =>
  takeCopies(join(folder, host), [WANTED], message, Date.now());
const newAccountKey = (namedCurve = "P-256"): string =>
  generateKeyPairSync("ec", { namedCurve }).privateKey.export({ type: "pkcs8", format: "pem" }) as string;

function keep(host: string, text: string): void {
  mkdirSync(dirname(place(host)), { recursive: true });
  writeFileSync(place(host), text);
}

describe("what a host takes", () => {
  test("is a certificate that it wants, with its key, for its owner alone", async () => {
    const text = await textOf();
    expect(await take(certificates(text))).toEqual({
      taken: ["certificate for a.example.net, b.example.net"],
      refused: [],
    });
    expect(readFileSync(place("here"), "utf8").replaceAll("\n", "")).toBe(text.replaceAll("\n", ""));
    expect([statSync(place("here")).mode & 0o777, statSync(dirname(place("here"))).mode & 0o777]).toEqual([
      0o600, 0o700,
    ]);
    expect(readdirSync(dirname(place("here")))).toEqual(["certificate.pem"]);
    // The same once more is no news.
    expect(await take(certificates(text))).toEqual({ taken: [], refused: [] });
  });

  test("is a newer one in place of an older one, and an older one in place of one that has expired", async () => {
    keep("here", await textOf({ from: -10 }));
    const newer = await textOf({ from: -2 });
    expect((await take(certificates(newer))).taken).toHaveLength(1);
    keep("here", await textOf({ from: -5, to: -1 }));
    expect((await take(certificates(await textOf({ from: -9 })))).taken).toHaveLength(1);
  });

  test("is one of another issuer that the config names as a root, by way of another one", async () => {
    keep("here", await textOf({ from: -10 }));
    const roots = join(folder, "roots.pem");
    writeFileSync(roots, stranger.cert);
    const between = await newIssuer("between", stranger);
    const message = certificates(await textOf({ issuer: between }));
    const wanted = { ...WANTED, authority: { ...AUTHORITY, roots } };
    const takeIt = () => takeCopies(join(folder, "here"), [wanted], message, Date.now());
    expect((await take(message)).taken).toEqual([]);
    expect((await takeIt()).taken).toHaveLength(1);
  });

  test("is the key of an account, unless there is one", async () => {
    const [key, other] = [newAccountKey(), newAccountKey()];
    expect(await copiesOf(join(folder, "here"), [WANTED])).toEqual({ accounts: {}, certificates: {} });
    const account = (text: string): object => ({ accounts: { [ACCOUNT]: text } });
    expect(await take(account(key))).toEqual({ taken: ["account at ca"], refused: [] });
    expect(await take(account(other))).toEqual({ taken: [], refused: [] });
    const kept = await textOf();
    keep("here", kept);
    expect(await copiesOf(join(folder, "here"), [WANTED])).toEqual({
      accounts: { [ACCOUNT]: key },
      certificates: { [WANTED.id]: kept.replace(/\n+$/, "\n") },
    });
  });

  const KEYS = {
    "P-256": { type: "ec" },
    "P-384": { type: "ec", key: newAccountKey("P-384") },
    "RSA 1024": { type: "rsa", bits: 1024 },
    "RSA 2048": { type: "rsa" },
  } as const satisfies Record<string, CertificateOptions>;
  test.each([
    ["ecdsa-p256", ["P-256"]],
    ["rsa-2048", ["RSA 2048"]],
    ["rsa-3072", []],
    ["rsa-4096", []],
  ] as const)("is of the type that it wants: %s", async (keyType, fitting) => {
    const taken: string[] = [];
    for (const [name, options] of Object.entries(KEYS)) {
      const message = certificates(await textOf(options));
      const wanted = { ...WANTED, keyType };
      const done = await takeCopies(join(folder, name), [wanted], message, Date.now());
      if (done.taken.length > 0) taken.push(name);
      else expect(done.refused).toEqual([expect.stringContaining(`not of the type ${keyType}`)]);
    }
    expect(taken).toEqual(fitting);
  });

  test("is valid now, or within an hour, which is as far as clocks differ", async () => {
    const text = await textOf();
    const { validFrom, validTo } = new X509Certificate(text);
    const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
    const at = (now: number) => takeCopies(join(folder, "here"), [WANTED], certificates(text), now);
    expect(await at(from - 3_600_001)).toEqual({
      taken: [],
      refused: [
        `certificate for ${names.join(", ")}: it is not valid before ${new Date(from).toISOString()}`,
      ],
    });
    expect(await at(to)).toEqual({
      taken: [],
      refused: [`certificate for ${names.join(", ")}: it expired on ${new Date(to).toISOString()}`],
    });
    expect((await at(from - 3_600_000)).taken).toHaveLength(1);
    rmSync(place("here"));
    expect((await at(to - 1)).taken).toHaveLength(1);
    // One of the same moment is not newer; one that ends now makes way for an older one.
    const moment = Math.floor(Date.now() / 1_000) * 1_000 - 499_500;
    const [here, other] = [await textOf({ from: daysTo(moment) }), await textOf({ from: daysTo(moment) })];
    keep("here", here);
    expect(await take(certificates(other))).toEqual({ taken: [], refused: [] });
    keep("here", await textOf({ to: 1 }));
    const end = Date.parse(new X509Certificate(readFileSync(place("here"))).validTo);
    const older = certificates(await textOf({ from: -9 }));
    const takenAt = async (now: number) =>
      (await takeCopies(join(folder, "here"), [WANTED], older, now)).taken.length;
    expect([await takenAt(end - 1), await takenAt(end)]).toEqual([0, 1]);
  });
});

const daysTo = (at: number): number => (at - Date.now()) / 86_400_000;

describe("a host that was taken over gets nothing in:", () => {
  const BLOCK = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const own = (more?: CertificateOptions) => () => textOf(more).then(certificates);
  test.each<[string, () => unknown, RegExp | undefined]>([
    ["no object", () => "text", undefined],
    ["nothing", () => null, undefined],
    ["lists", () => ({ accounts: [], certificates: [] }), undefined],
    ["a long list", () => ({ accounts: [], certificates: [0, 0, 0] }), undefined],
    ["no text", () => certificates({ length: 1 }), undefined],
    ["an empty text", () => certificates(""), /not a complete certificate/],
    ["a text that is too long", async () => certificates((await textOf()) + " ".repeat(200_000)), undefined],
    [
      "no key",
      async () => certificates((await issue({ names, type: "ec" })).cert),
      /not a complete certificate/,
    ],
    [
      "the key of another certificate",
      async () => certificates((await issue({ type: "ec" })).key + (await issue({ names, type: "ec" })).cert),
      /not a complete certificate/,
    ],
    ["a damaged chain", async () => certificates((await textOf()) + BLOCK), /not a complete certificate/],
    [
      "a chain without end",
      async () => certificates((await textOf()) + (await issue({ type: "ec" })).cert.repeat(12)),
      /not a complete certificate/,
    ],
    ["a certificate for other names", own({ names: ["a.example.net"] }), /does not cover b\.example\.net/],
    ["a key of another type", own({ type: "rsa", bits: 1024 }), /not of the type ecdsa-p256/],
    ["a certificate that has expired", own({ from: -9, to: -1 }), /expired on/],
    ["one that would be newer than all others", own({ from: 2 }), /not valid before/],
    ["an older one", own({ from: -20 }), undefined],
    ["one that ends in a moment", own({ to: 20 / 86_400 }), /it ends on .*, before the certificate/],
    ["one for clients", own({ extensions: [CLIENTS_ONLY] }), /extended key usage does not allow servers/],
    [
      "a precertificate",
      own({ extensions: [POISON] }),
      /critical extension 1\.3\.6\.1\.4\.1\.11129\.2\.4\.3$/,
    ],
    ["one for years", own({ to: 400 }), /valid for more than 398 days/],
    [
      "one that it issued to itself",
      async () => certificates(await selfIssued()),
      /nor one of the authority's roots/,
    ],
    [
      "one of a stranger with the issuer's name",
      async () => certificates(await textOf({ issuer: stranger })),
      /nor one of the authority's roots/,
    ],
    [
      "one of a stranger with the issuer's own certificate behind it",
      async () => certificates((await textOf({ issuer: stranger })) + ca.cert),
      /nor one of the authority's roots/,
    ],
    [
      "a certificate that is not wanted",
      async () => ({ certificates: { "ca-ffffffffffffffff": await textOf() } }),
      /does not contain it/,
    ],
    ["a path", async () => ({ certificates: { "../../other": await textOf() } }), /does not contain it/],
    [
      "a name that every object has",
      () => ({ certificates: JSON.parse('{"__proto__":"x"}') }),
      /does not contain/,
    ],
    [
      "the account of another authority",
      () => ({ accounts: { "other-00000000": newAccountKey() } }),
      undefined,
    ],
    ["an account's key that is none", () => ({ accounts: { [ACCOUNT]: "key" } }), /not an ECDSA P-256 key/],
    [
      "one of another kind",
      () => ({ accounts: { [ACCOUNT]: newAccountKey("P-384") } }),
      /not an ECDSA P-256 key/,
    ],
  ])("%s", async (_, sent, reason) => {
    const here = await textOf({ from: -10 });
    keep("here", here);
    const { taken, refused } = await take(await sent());
    expect(taken).toEqual([]);
    if (reason === undefined) expect(refused).toEqual([]);
    else expect(refused).toEqual([expect.stringMatching(reason)]);
    expect(readFileSync(place("here"), "utf8")).toBe(here);
    expect(readdirSync(folder)).toEqual(["here"]);
    expect(readdirSync(join(folder, "here"))).toEqual(["certificates"]);
  });
});

test("a file that cannot be written is said, and the others are taken", async () => {
  const other = { ...WANTED, id: "ca-1111111111111111" };
  mkdirSync(join(folder, "here", "certificates"), { recursive: true });
  writeFileSync(join(folder, "here", "certificates", WANTED.id), "no directory");
  const text = await textOf();
  const message = { certificates: { [WANTED.id]: text, [other.id]: text } };
  const outcome = await takeCopies(join(folder, "here"), [WANTED, other], message, Date.now());
  expect(outcome.taken).toHaveLength(1);
  expect(outcome.refused).toEqual([
    expect.stringMatching(/^certificate for .*certificate\.pem cannot be read/),
  ]);
});

describe("between two hosts", () => {
  const key = randomBytes(32);
  const stopping: (() => void)[] = [];
  afterEach(() => stopping.splice(0).forEach((stop) => stop()));

  const linkOf = (port: number, own: string, peer: string): CopyLink => ({ own, peer, port, key });
  const listen = async (link: CopyLink, got: unknown[]): Promise<void> => {
    const close = await listenForCopies(
      link,
      async (message) => {
        got.push(message);
        return { taken: ["all"], refused: [] };
      },
      () => undefined,
    );
    stopping.push(() => void close());
  };
  /** One host's side, with what tests change. */
  const sharing = (link: CopyLink, log: (line: string) => void, more: Partial<SharingOptions> = {}) =>
    new CertificateSharing({
      link,
      directory: join(folder, link.own),
      wanted: () => Promise.resolve([WANTED]),
      log,
      cannotListen: (error) => listenProblem(error, "copyPort", { address: link.own, port: link.port }),
      clock: { now: () => Date.now(), elapsed: () => Date.now(), wait: () => sleep(20) },
      ...more,
    });

  test("a port that is taken is said", async () => {
    const port = await freePort();
    const link = linkOf(port, "127.0.0.1", "127.0.0.2");
    await listen(link, []);
    await expect(listen(link, [])).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  test("whoever has not the key is neither heard nor believed, and others do not get so far", async () => {
    const port = await freePort();
    const [first, second] = [linkOf(port, "127.0.0.1", "127.0.0.2"), linkOf(port, "127.0.0.2", "127.0.0.1")];
    const got: unknown[] = [];
    await listen(second, got);
    const copies = { accounts: {}, certificates: { a: "text" } };
    const wrong = { ...first, key: randomBytes(32) };
    await expect(sendCopies(wrong, copies)).rejects.toThrow();
    await expect(sendCopies({ ...first, own: "127.0.0.3" }, copies)).rejects.toThrow();
    const withoutKey = connect({
      port,
      host: "127.0.0.2",
      localAddress: "127.0.0.1",
      rejectUnauthorized: false,
    } as object);
    await expect(once(withoutKey, "secureConnect")).rejects.toThrow();
    const plain = connectPlain({ port, host: "127.0.0.2", localAddress: "127.0.0.1" });
    plain.end(`${JSON.stringify(copies)}\n`);
    plain.resume();
    await once(plain, "close");
    expect(got).toEqual([]);
    expect(await sendCopies(first, copies)).toEqual({ taken: ["all"], refused: [] });
    expect(got).toEqual([copies]);
  });

  const LINE_MAX = 16 * 1024 * 1024;
  /** Whoever has the key, and says what it likes. */
  const speak = (port: number, text: string, identity = "portico") => {
    const socket = connect({
      socket: connectPlain({ port, host: "127.0.0.2", localAddress: "127.0.0.1" }),
      ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
      maxVersion: "TLSv1.2",
      pskCallback: () => ({ psk: key, identity }),
      checkServerIdentity: () => undefined,
    });
    socket.on("error", () => undefined).resume();
    socket.write(text);
    return new Promise((resolve) => socket.once("close", resolve));
  };

  test("what is as long as it may be is heard, of whom it is meant for", async () => {
    const port = await freePort();
    const got: unknown[] = [];
    await listen(linkOf(port, "127.0.0.2", "127.0.0.1"), got);
    await speak(port, "{}\n", "other");
    expect(got).toEqual([]);
    const text = "x".repeat(LINE_MAX - 3);
    await speak(port, `"${text}"\n`);
    expect(got.map((one) => one === text)).toEqual([true]);
  });

  test.each([
    ["what is no JSON", "{\n"],
    ["two lines", "{}\n{}\n"],
    ["lists in lists", `${"[".repeat(20_000)}${"]".repeat(20_000)}\n`],
    ["more than any host has", " ".repeat(LINE_MAX + 1)],
  ])("%s ends the connection, and the next one is heard", async (_, text) => {
    const port = await freePort();
    const [first, second] = [linkOf(port, "127.0.0.1", "127.0.0.2"), linkOf(port, "127.0.0.2", "127.0.0.1")];
    const got: unknown[] = [];
    await listen(second, got);
    await speak(port, text);
    expect(got).toEqual([]);
    await sendCopies(first, { accounts: {}, certificates: {} });
    expect(got).toHaveLength(1);
  });

  test("each gets what the other one got, when that one is there again, and from then on", async () => {
    const port = await freePort();
    const logs: Record<string, string[]> = { first: [], second: [] };
    const begun = Date.now();
    const start = (name: string, own: string, peer: string): void => {
      const stop = new AbortController();
      stopping.push(() => stop.abort());
      void sharing(linkOf(port, own, peer), (line) => logs[name]!.push(line), {
        directory: join(folder, name),
        // A hundred times as fast.
        clock: {
          now: () => begun + (Date.now() - begun) * 100,
          elapsed: () => begun + (Date.now() - begun) * 100,
          wait: () => sleep(20),
        },
      }).run(stop.signal);
    };
    const kept = (host: string): string => readFileSync(place(host), "utf8").replaceAll("\n", "");
    const same = (): boolean => existsSync(place("second")) && kept("second") === kept("first");
    keep("first", await textOf({ from: -10 }));
    start("first", "127.0.0.1", "127.0.0.2");
    await eventually(() => logs["first"]!.length > 0);
    expect(logs["first"]).toEqual(["not copied to 127.0.0.2: (111: Connection refused); retried every 10 s"]);
    start("second", "127.0.0.2", "127.0.0.1");
    await eventually(same);
    await eventually(() => logs["first"]!.length > 1);
    expect(logs["first"]!.slice(1)).toEqual([
      "copied to 127.0.0.2: certificate for a.example.net, b.example.net",
    ]);
    expect(logs["second"]).toEqual(["taken from 127.0.0.1: certificate for a.example.net, b.example.net"]);
    keep("first", await textOf({ from: -8 }));
    await eventually(same);
    keep("second", await textOf({ from: -6 }));
    await eventually(same);
    const taken = "taken from 127.0.0.2: certificate for a.example.net, b.example.net";
    await eventually(() => logs["first"]!.at(-1) === taken);
  });

  test("hosts with different keys both end, to be started with the key that is there then", async () => {
    const port = await freePort();
    const [first, second] = [linkOf(port, "127.0.0.1", "127.0.0.2"), linkOf(port, "127.0.0.2", "127.0.0.1")];
    const logs: string[] = [];
    const start = (link: CopyLink, signal = AbortSignal.timeout(10_000)): Promise<void> =>
      sharing(link, (line) => logs.push(line)).run(signal);
    const old = start(second);
    // It has sent what it has, and would not do so again for minutes.
    const before = await listenForCopies(
      first,
      async () => ({ taken: ["all"], refused: [] }),
      () => undefined,
    );
    await eventually(() => logs.includes("copied to 127.0.0.1: all"));
    await before();
    // As systemd does, which starts it again.
    const other = { ...first, key: randomBytes(32) };
    const stop = new AbortController();
    void old.then(() => stop.abort());
    while (!stop.signal.aborted) await start(other, stop.signal);
    expect(logs).toContain("not copied to 127.0.0.2: it has another key; retried every 10 s");
    // Unless it tried before the other one listened.
    expect(logs).toContainEqual(
      expect.stringMatching(
        /^not copied to 127\.0\.0\.1: (?:it has another key|\(111: Connection refused\));/,
      ),
    );
  });

  test("the response of the other host stays on a line of ours", async () => {
    const port = await freePort();
    const close = await listenForCopies(
      linkOf(port, "127.0.0.2", "127.0.0.1"),
      async () => ({ taken: ["a\nroot logged in\u001b[2J"], refused: [] }),
      () => undefined,
    );
    stopping.push(() => void close());
    const logs: string[] = [];
    const stop = new AbortController();
    await sharing(linkOf(port, "127.0.0.1", "127.0.0.2"), (line) => logs.push(line), {
      clock: { now: () => Date.now(), elapsed: () => Date.now(), wait: async () => stop.abort() },
    }).run(stop.signal);
    expect(logs).toEqual(["copied to 127.0.0.2: a\\nroot logged in\\u001b[2J"]);
  });

  test("the words of the other host do not fill the log", async () => {
    const port = await freePort();
    let responses = 0;
    const close = await listenForCopies(
      linkOf(port, "127.0.0.2", "127.0.0.1"),
      async () => ({
        taken: [],
        refused: Array(500).fill(`${++responses} ${"\u0007".repeat(100)}`),
      }),
      () => undefined,
    );
    stopping.push(() => void close());
    const logs: string[] = [];
    let now = Date.now();
    const stop = new AbortController();
    const wait = async (): Promise<void> => {
      if (responses === 20) now += 3_600_000;
      if (responses === 40) stop.abort();
    };
    await sharing(linkOf(port, "127.0.0.1", "127.0.0.2"), (line) => logs.push(line), {
      clock: { now: () => now, elapsed: () => now, wait },
    }).run(stop.signal);
    expect(responses).toBe(40);
    expect(logs).toHaveLength(1002);
    expect(logs[500]).toBe("more than 500 lines in an hour: the next one is in the hour after");
    expect(Math.max(...logs.map((line) => line.length))).toBe(501);
  });

  /** A user of the other host, who has no key. */
  const user = (port: number): Promise<Socket> => {
    const socket = connectPlain({ port, host: "127.0.0.2", localAddress: "127.0.0.1" });
    socket.on("error", () => undefined).resume();
    stopping.push(() => socket.destroy());
    return once(socket, "connect").then(() => socket);
  };
  const closed = (socket: Socket): boolean => socket.closed || socket.readableEnded;

  test("connections without the key keep none out that has it, and have little time", async () => {
    const port = await freePort();
    const got: unknown[] = [];
    await listen(linkOf(port, "127.0.0.2", "127.0.0.1"), got);
    const silent: Socket[] = [];
    for (let i = 0; i < 70; i++) silent.push(await user(port));
    const began = Date.now();
    await eventually(() => silent.filter(closed).length === 6);
    expect(silent.slice(0, 6).every(closed)).toBe(true);
    // A connection that has shown the key keeps its place, whoever comes.
    const slow = connect({
      socket: await user(port),
      ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
      maxVersion: "TLSv1.2",
      pskCallback: () => ({ psk: key, identity: "portico" }),
      checkServerIdentity: () => undefined,
    });
    await once(slow, "secureConnect");
    for (let i = 0; i < 40; i++) await user(port);
    const copies = { accounts: {}, certificates: { a: "text" } };
    expect(await sendCopies(linkOf(port, "127.0.0.1", "127.0.0.2"), copies)).toEqual({
      taken: ["all"],
      refused: [],
    });
    slow.end("{}\n");
    await eventually(() => got.length === 2);
    await eventually(() => silent.every(closed), "for the handshake's time limit", { ms: 30_000 });
    expect(Date.now() - began).toBeLessThan(20_000);
  });

  test("a port that another process has is said with it, and copies are still sent", async () => {
    const port = await freePort();
    const [first, second] = [linkOf(port, "127.0.0.1", "127.0.0.2"), linkOf(port, "127.0.0.2", "127.0.0.1")];
    const got: unknown[] = [];
    await listen(second, got);
    const squatter = createPlain().listen(port, "127.0.0.1");
    await once(squatter, "listening");
    stopping.push(() => void squatter.close());
    const logs: string[] = [];
    const stop = new AbortController();
    const running = sharing(first, (line) => logs.push(line)).run(stop.signal);
    await eventually(() => got.length > 0 && logs.length > 1);
    const owner = `\\S+ \\(pid ${process.pid}\\)`;
    expect(logs[0]).toMatch(
      new RegExp(
        `^copyPort: cannot listen on 127\\.0\\.0\\.1:${port}: ${owner} already listens there; ` +
          `copies are still sent, and none are taken; fix: Stop ${owner}, or choose another port\\.$`,
      ),
    );
    await sleep(100);
    expect(logs.slice(1)).toEqual(["copied to 127.0.0.2: all"]);
    squatter.close();
    await eventually(() => logs.includes("takes copies again"));
    await sendCopies(second, { accounts: {}, certificates: {} });
    // A user who says nothing does not delay the end.
    connectPlain({ port, host: "127.0.0.1", localAddress: "127.0.0.2" }).on("error", () => undefined);
    const began = Date.now();
    stop.abort();
    await running;
    expect(Date.now() - began).toBeLessThan(1_000);
  });

  test.each([
    ["another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n"],
    ["an alert", "\x15\x03\x03\0\x02\x02\x28"],
  ])("%s on the other host's port is no other key", async (_, text) => {
    const port = await freePort();
    const squatter = createPlain((socket) => {
      socket.on("error", () => undefined).resume();
      socket.end(Buffer.from(text, "latin1"));
    }).listen(port, "127.0.0.2");
    stopping.push(() => void squatter.close());
    await once(squatter, "listening");
    const logs: string[] = [];
    const stop = new AbortController();
    let ended = false;
    const running = sharing(linkOf(port, "127.0.0.1", "127.0.0.2"), (line) => logs.push(line))
      .run(stop.signal)
      .finally(() => (ended = true));
    await eventually(() => logs.length > 0);
    await sleep(100);
    expect([ended, logs]).toEqual([
      false,
      [
        `not copied to 127.0.0.2: another program responds there; retried every 10 s; fix: on that host, stop the program that listens on port ${port} (ss -ltnp): it is not portico-copies.service`,
      ],
    ]);
    stop.abort();
    await running;
  });

  test("a program that never responds does not delay the end", async () => {
    const port = await freePort();
    let accepted = 0;
    const squatter = createPlain((socket) => {
      accepted += 1;
      socket.on("error", () => undefined).resume();
    }).listen(port, "127.0.0.2");
    stopping.push(() => void squatter.close());
    await once(squatter, "listening");
    const stop = new AbortController();
    const logs: string[] = [];
    const running = sharing(linkOf(port, "127.0.0.1", "127.0.0.2"), (line) => logs.push(line)).run(
      stop.signal,
    );
    await eventually(() => accepted === 1);
    const began = Date.now();
    stop.abort();
    await running;
    expect([Date.now() - began < 1_000, logs]).toEqual([true, []]);
  });
});
