import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import type { ListenerInput, ProxyConfig, ProxyConfigInput, RouteInput } from "../../src/model/index.js";
import { formatProblem, ProblemError, problem } from "../../src/model/index.js";
import { dhParametersPem } from "../../src/render/dhParameters.js";
import { loadConfig, type LoadOptions } from "../../src/runtime/load/loadConfig.js";
import { type Issued, issue } from "../../testkit/certificates.js";
import { checkAsNobody, openFolder } from "../../testkit/portico.js";

let rsa: Issued;
let office: Issued;
let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  rsa = await issue();
  office = await issue({ names: ["office.example.org"] });
});

beforeEach(() => {
  folder = openFolder();
  writeFileSync(at("privkey.pem"), rsa.key, { mode: 0o600 });
  writeFileSync(at("cacert.pem"), rsa.cert);
  writeFileSync(at("dhparam2048.pem"), dhParametersPem());
});

type Tls = NonNullable<ListenerInput["tls"]>;

interface Change {
  readonly tls?: Partial<Tls>;
  readonly config?: Partial<ProxyConfigInput>;
  readonly routes?: readonly RouteInput[];
}

function config({ tls, config: more, routes = [] }: Change = {}): ProxyConfigInput {
  const material = {
    certificate: at("cacert.pem"),
    key: at("privkey.pem"),
    dhparam: at("dhparam2048.pem"),
    ...tls,
  };
  return {
    version: 1,
    listeners: [
      { name: "http", address: "127.0.0.1", port: 80, protocol: "http" },
      { name: "https", address: "127.0.0.1", port: 443, protocol: "https", tls: material },
    ],
    virtualServers: [
      { name: "only", serverNames: ["_"], default: true, listeners: ["http", "https"], routes },
    ],
    ...more,
  };
}

/** Problems of a load, as they are printed; empty if it succeeds. */
async function problemsOf(input: unknown, options: Partial<LoadOptions> = {}): Promise<string> {
  const file = at("portico.json");
  writeFileSync(file, typeof input === "string" ? input : JSON.stringify(input));
  const loaded = await loadConfig({ file, ...options });
  return loaded.ok ? "" : loaded.problems.map(formatProblem).join("\n");
}

async function load(input: ProxyConfigInput, options: Partial<LoadOptions> = {}) {
  const file = at("portico.json");
  writeFileSync(file, JSON.stringify(input));
  const loaded = await loadConfig({ file, ...options });
  if (!loaded.ok) throw new Error(loaded.problems.map(formatProblem).join("\n"));
  return loaded.value;
}

describe("a good config", () => {
  test("comes with its TLS files, and can be sent to a worker", async () => {
    const loaded = await load(config());
    expect(loaded.warnings).toEqual([]);
    const contents = { id: at("cacert.pem"), source: "files", key: rsa.key, cert: rsa.cert };
    expect(loaded.tls).toEqual({ https: { certificates: [contents], dhparam: dhParametersPem() } });
    expect(JSON.parse(JSON.stringify(loaded))).toEqual(loaded);
    expect(JSON.stringify(loaded.config)).not.toContain("PRIVATE KEY");
  });

  test("loads for every named policy, and with an EC key if the policy allows one", async () => {
    const ec = await issue({ type: "ec" });
    for (const policy of [
      "file-sync",
      "file-sync-tls13",
      "mozilla-intermediate",
      "mozilla-modern",
    ] as const) {
      expect(await problemsOf(config({ tls: { policy } }))).toBe("");
    }
    writeFileSync(at("privkey.pem"), ec.key);
    writeFileSync(at("cacert.pem"), ec.cert);
    expect(await problemsOf(config({ tls: { policy: "mozilla-intermediate" } }))).toBe("");
  });

  test("has all its paths below the root", async () => {
    mkdirSync(at("srv"));
    const routes: RouteInput[] = [
      {
        name: "media",
        path: "/m",
        accessLog: { path: "/log/m.log" },
        errorLog: { path: "/log/e.log" },
        action: { type: "staticFiles", directory: "/srv" },
      },
    ];
    write("office.pem", office.cert);
    write("office.key", office.key);
    const tls = {
      ...{ certificate: "/cacert.pem", key: "/privkey.pem", dhparam: "/dhparam2048.pem" },
      certificates: [{ certificate: "/office.pem", key: "/office.key" }],
    };
    const logs = { access: { path: "/log/access.log" }, error: { path: "/log/error.log" } };
    const loaded = await load(config({ tls, routes, config: { logs } }), { root: folder });
    const text = JSON.stringify(loaded.config);
    for (const name of ["cacert.pem", "privkey.pem", "dhparam2048.pem", "srv", "log/m.log", "log/e.log"]) {
      expect(text).toContain(JSON.stringify(at(name)));
    }
    expect(loaded.tls.https!.certificates.map(({ key }) => key)).toEqual([rsa.key, office.key]);
    expect(text).toContain(JSON.stringify(at("log/access.log")));
    expect(text).toContain(JSON.stringify(at("log/error.log")));
    const others = { access: { stream: "stdout" }, error: "off" } as const;
    const { config: without } = await load(config({ tls, config: { logs: others } }), { root: folder });
    expect(without.logs).toMatchObject(others);
  });

  test("has logs that can be written, or warnings of them where it serves without", async () => {
    writeFileSync(at("file"), "");
    const logs = { access: { path: at("file/access.log") }, error: { path: at("error.log") } };
    const found = [expect.objectContaining({ code: "files.log-not-writable" })];
    const text = config({ config: { logs } });
    expect(await problemsOf(text)).toMatch(/^logs\.access\.path .*\[files\.log-not-writable\]/);
    expect((await load(text, { logs: "warning" })).warnings).toEqual(found);
    expect((await load(text, { logToStderr: true })).warnings).toEqual([]);
  });

  test("says which limits it sets itself, below a root as well", async () => {
    expect((await load(config())).givenLimits).toEqual([]);
    const limits = { connectionsMax: 9_000, concurrentStreamsMax: 16 };
    const given = ["connectionsMax", "concurrentStreamsMax"];
    expect((await load(config({ config: { limits } }))).givenLimits).toEqual(given);
    const tls = { certificate: "/cacert.pem", key: "/privkey.pem", dhparam: "/dhparam2048.pem" };
    const rooted = await load(config({ tls, config: { limits } }), { root: folder });
    expect(rooted.givenLimits).toEqual(given);
  });

  test("can be adjusted before its files are read", async () => {
    const adjust = (before: ProxyConfig): ProxyConfig => ({ ...before, workers: 7 });
    expect((await load(config(), { adjust })).config.workers).toBe(7);
    const refuse = (): never => {
      throw new ProblemError([problem("config.out-of-range", "listeners[0].port", "is too large")]);
    };
    expect(await problemsOf(config(), { adjust: refuse })).toContain("listeners[0].port: is too large");
  });
});

describe("the document", () => {
  test.each([
    [
      "is missing",
      "no/such.json",
      /no\/such\.json: does not exist: there is no .*\/no \[files\.unreadable\]/,
    ],
    ["is a directory", ".", /is a directory/],
    ["is a link to itself", "loop", /cannot be read \(40: Too many symbolic links encountered\)/],
    ["is below a file", "cacert.pem/x", /is below .*cacert\.pem, which is not a directory/],
  ])("%s", async (_what, name, expected) => {
    symlinkSync("loop", at("loop"));
    const loaded = await loadConfig({ file: at(name) });
    expect(loaded.ok ? "" : formatProblem(loaded.problems[0]!)).toMatch(expected);
  });

  test("is not JSON, or not a valid config", async () => {
    expect(await problemsOf("{")).toContain("[config.not-json]");
    expect(await problemsOf(config({ config: { workers: 0 } }))).toContain("workers: is too small");
  });
});

/** How the TLS files are spoilt, and what is said about it. */
const SPOILT: readonly (readonly [string, () => void | Promise<void>, RegExp])[] = [
  [
    "key is damaged",
    () => write("privkey.pem", rsa.key.replace(/\n.{20}/, "\n")),
    /tls\.key .*damaged.*\[files\.bad-key\]/,
  ],
  ["key is encrypted", encryptKey, /passphrase.*\[files\.bad-key\]\n.*openssl pkey -in/],
  [
    "certificate is a key",
    () => write("cacert.pem", rsa.key),
    /no certificate in PEM form, but a private key \[files\.bad-certificate\]/,
  ],
  [
    "certificate is damaged",
    () => write("cacert.pem", rsa.cert.replace(/\n.{20}/, "\n")),
    /cannot read its certificate/,
  ],
  [
    "chain is damaged",
    () => write("cacert.pem", rsa.cert + rsa.cert.replace(/\n.{20}/, "\n")),
    /cannot read certificate 2 of 2/,
  ],
  [
    "chain begins with another",
    async () => write("cacert.pem", (await issue({ name: "ca" })).cert + rsa.cert),
    /server's certificate at position 2, but it must be the first/,
  ],
  [
    "key too small",
    () => replace({ bits: 512 }),
    /OpenSSL refuses key and certificate: .*small.*\[files\.bad-certificate\]/,
  ],
  [
    "key no cipher takes",
    () => replace({ type: "ec" }),
    /listeners\[1\]\.tls\.policy: no client can complete a handshake .* type ec.*\[tls\.bad-policy\]/,
  ],
  [
    "no DH parameters",
    () => write("dhparam2048.pem", rsa.cert),
    /no usable DH parameters.*\[files\.bad-dhparam\]\n.*at least 2048 bits\n.*openssl dhparam/,
  ],
  [
    "DH parameters damaged",
    () => write("dhparam2048.pem", dhParametersPem().replace(/\n.{20}/, "\n")),
    /no usable DH parameters/,
  ],
  [
    "DH parameters too short",
    () => write("dhparam2048.pem", shortDh()),
    /prime of 1024 bits \[files\.bad-dhparam\]/,
  ],
];

let change: Change = {};
const write = (name: string, text: string): void => writeFileSync(at(name), text);

async function replace(options: Parameters<typeof issue>[0]): Promise<void> {
  const { key, cert } = await issue(options);
  write("privkey.pem", key);
  write("cacert.pem", cert);
}

function encryptKey(): void {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const cipher = "aes-256-cbc";
  write(
    "privkey.pem",
    privateKey.export({ type: "pkcs8", format: "pem", cipher, passphrase: "x" }) as string,
  );
}

/** SEQUENCE of a 1024-bit odd INTEGER and the INTEGER 2. */
function shortDh(): string {
  const prime = Buffer.alloc(129, 0xff).fill(0, 0, 1);
  const items = Buffer.concat([Buffer.of(0x02, 0x81, prime.length), prime, Buffer.of(0x02, 1, 2)]);
  const der = Buffer.concat([Buffer.of(0x30, 0x81, items.length), items]);
  return `-----BEGIN DH PARAMETERS-----\n${der.toString("base64")}\n-----END DH PARAMETERS-----\n`;
}

describe("TLS files that cannot be used are reported", () => {
  test.each(SPOILT)("%s", async (_what, spoil, expected) => {
    change = {};
    await spoil();
    const text = await problemsOf(config(change));
    expect(text).toMatch(expected);
    expect(text.match(/\[[a-z]+\.[a-z-]+\]/g)).toHaveLength(1);
    // Nothing of a key may end up in a log.
    for (const line of rsa.key.split("\n").slice(1, -2)) expect(text).not.toContain(line);
  });

  test("all at once", async () => {
    write("cacert.pem", "nothing");
    write("dhparam2048.pem", "nothing");
    const tls = { key: at("gone.pem"), policy: { ...POLICY, ciphers: "NOPE", curves: ["P-256", "P-0"] } };
    const routes: RouteInput[] = [
      { name: "a", path: "/a", action: { type: "staticFiles", directory: at("none/such") } },
      { name: "b", path: "/b", action: { type: "staticFiles", directory: at("cacert.pem") } },
      { name: "c", path: "/c", action: { type: "staticFiles", directory: at("none/such") } },
    ];
    const logs = { error: { path: at("cacert.pem/error.log") }, access: { path: folder } };
    const text = await problemsOf(config({ tls, routes, config: { logs } }));
    expect(text.split("\n").filter((line) => !line.startsWith(" "))).toEqual([
      expect.stringContaining("listeners[1].tls.key ("),
      expect.stringContaining("listeners[1].tls.certificate ("),
      expect.stringContaining("listeners[1].tls.dhparam ("),
      expect.stringContaining("listeners[1].tls.policy.ciphers: selects no cipher"),
      expect.stringContaining("listeners[1].tls.policy.curves[1]: is not a curve"),
      expect.stringContaining(
        `virtualServers[0].routes[0].action.directory (${at("none/such")}): does not exist`,
      ),
      expect.stringContaining("virtualServers[0].routes[1].action.directory ("),
      expect.stringContaining(`logs.access.path (${folder}): is a directory`),
      expect.stringContaining("logs.error.path ("),
    ]);
  });

  test("once, however many listeners share them", async () => {
    const input = config({ tls: { key: at("gone.pem") } });
    const second = { ...input.listeners[1]!, name: "https6", address: "::1" };
    const servers = input.virtualServers.map((v) => ({ ...v, listeners: [...v.listeners, "https6"] }));
    const text = await problemsOf({
      ...input,
      listeners: [...input.listeners, second],
      virtualServers: servers,
    });
    expect(text.match(/gone\.pem/g)).toHaveLength(1);
  });
});

const POLICY = {
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
  ciphers: "ECDHE-RSA-AES128-GCM-SHA256",
  curves: ["P-256"],
} as const;

describe("what does not keep a service from running is a warning", () => {
  test("an expired certificate when it starts", async () => {
    await replace({ from: -9, to: -1 });
    const { warnings } = await load(config(), { expiry: "warning" });
    expect(warnings.map((p) => p.code)).toEqual(["files.certificate-expired"]);
  });

  test("a private key that others can read", async () => {
    chmodSync(at("privkey.pem"), 0o644);
    const { warnings } = await load(config());
    expect(warnings.map(formatProblem).join()).toMatch(
      /every user of this host \(mode 0644\) \[files\.key-exposed\]/,
    );
    chmodSync(at("privkey.pem"), 0o640);
    expect((await load(config())).warnings.map(formatProblem).join()).toContain("by its group (mode 0640)");
  });

  test("a chain in the wrong order, but not one in the right order", async () => {
    const root = await issue({ name: "root", type: "ec" });
    const between = await issue({ name: "between", type: "ec", issuer: root });
    const leaf = await issue({ name: "leaf", issuer: between });
    write("privkey.pem", leaf.key);
    write("cacert.pem", leaf.cert + between.cert + root.cert);
    expect((await load(config())).warnings).toEqual([]);
    write("cacert.pem", leaf.cert + root.cert + between.cert);
    const { warnings } = await load(config());
    expect(warnings.map(formatProblem).join()).toContain("certificate 2 is not the issuer of certificate 1");
  });
});

describe("several certificates of a listener", () => {
  const second = { certificate: "", key: "" };
  beforeEach(() => {
    second.certificate = at("office.pem");
    second.key = at("office.key");
    write("office.pem", office.cert);
    write("office.key", office.key);
    chmodSync(second.key, 0o600);
  });

  const warningsOf = async (input: ProxyConfigInput): Promise<string[]> =>
    (await load(input)).warnings.map(({ code, path, message }) => `${code} ${path} ${message}`);

  test("are loaded in their order, and each is checked at its own path", async () => {
    const third = { certificate: at("third.pem"), key: at("third.key") };
    const certificates = [second, third];
    const problems = await problemsOf(config({ tls: { certificates } }));
    expect(problems).toContain(`listeners[1].tls.certificates[1].key (${third.key}): does not exist`);
    expect(problems).toContain(
      `listeners[1].tls.certificates[1].certificate (${third.certificate}): does not`,
    );
    expect(problems).not.toContain("certificates[0]");
    write("third.pem", rsa.cert);
    write("third.key", readFileSync(second.key, "utf8"));
    expect(await problemsOf(config({ tls: { certificates } }))).toContain(
      `listeners[1].tls.certificates[1].key (${third.key}): does not belong to the certificate in ${third.certificate}`,
    );
    write("third.key", rsa.key);
    chmodSync(third.key, 0o600);
    const { tls } = await load(config({ tls: { certificates } }));
    expect(tls["https"]!.certificates.map(({ id }) => id)).toEqual([
      at("cacert.pem"),
      second.certificate,
      third.certificate,
    ]);
  });

  test("have to go with the policy, each by itself", async () => {
    const ec = await issue({ type: "ec", names: ["office.example.org"] });
    write("office.pem", ec.cert);
    write("office.key", ec.key);
    const problems = await problemsOf(config({ tls: { certificates: [second] } }));
    expect(problems).toContain("listeners[1].tls.certificates[0]: no client can complete a handshake");
    expect(problems).toContain("a key of type ec");
    const policy = "mozilla-intermediate";
    expect(await problemsOf(config({ tls: { certificates: [second], policy } }))).toBe("");
  });

  test("are enough if one of them covers a name, an address only in the default", async () => {
    const files = await issue({ names: ["files.example.org", "192.0.2.1"] });
    write("privkey.pem", files.key);
    write("cacert.pem", files.cert);
    const serverNames = ["files.example.org", "office.example.org", "192.0.2.1"];
    const { virtualServers } = config();
    const names = { virtualServers: [{ ...virtualServers[0]!, serverNames }] };
    const both = config({ tls: { certificates: [second] }, config: names });
    expect(await warningsOf(both)).toEqual([]);
    expect(await warningsOf(config({ config: names }))).toEqual([
      `files.name-not-covered listeners[1].tls.certificate (${at("cacert.pem")}) does not cover office.example.org`,
    ]);
    const [wide] = virtualServers;
    const wildcard = { virtualServers: [{ ...wide!, serverNames: ["files.example.org", "*.example.org"] }] };
    expect(await warningsOf(config({ tls: { certificates: [second] }, config: wildcard }))).toEqual([
      "files.name-not-covered listeners[1].tls has no certificate for *.example.org",
    ]);
    // Nobody asks for an address by SNI, so this one is for nobody.
    const address = await issue({ names: ["www.example.org", "192.0.2.2"] });
    write("office.pem", address.cert);
    write("office.key", address.key);
    const more = { virtualServers: [{ ...virtualServers[0]!, serverNames: [...serverNames, "192.0.2.2"] }] };
    expect(await warningsOf(config({ tls: { certificates: [second] }, config: more }))).toEqual([
      "files.name-not-covered listeners[1].tls has no certificate for office.example.org, 192.0.2.2",
    ]);
  });

  test("give a warning if no client would get them", async () => {
    const names = await issue({ names: ["office.example.org", "a.example.org"] });
    write("privkey.pem", names.key);
    write("cacert.pem", names.cert);
    write("third.pem", rsa.cert);
    write("third.key", rsa.key);
    chmodSync(at("third.key"), 0o600);
    const certificates = [second, { certificate: at("third.pem"), key: at("third.key") }];
    const code = "files.certificate-not-chosen listeners[1].tls.certificates";
    expect(await warningsOf(config({ tls: { certificates } }))).toEqual([
      `${code}[0].certificate (${second.certificate}) is not used for office.example.org, for which clients get listeners[1].tls.certificate (${at("cacert.pem")})`,
      `${code}[1].certificate (${at("third.pem")}) contains no DNS name, so no client can ask for it`,
    ]);
  });
});

test("TLS files of an upstream are checked as those of listeners are, each at its field", async () => {
  const files = { caFile: at("roots.pem"), certificateFile: at("cacert.pem"), privateKeyFile: at("own.key") };
  const upstream = (tls: object) =>
    config({ config: { upstreams: [{ name: "far", url: "https://far.example", tls }] } });
  write("roots.pem", rsa.key);
  write("own.key", (await issue({ type: "ec" })).key);
  const problems = await problemsOf(upstream(files));
  const tls = "upstreams[0].tls";
  expect(problems).toContain(
    `${tls}.caFile (${files.caFile}): contains no certificate in PEM form [files.bad-`,
  );
  expect(problems).toContain(`${tls}.privateKeyFile (${files.privateKeyFile}): does not belong to the cert`);
  write("roots.pem", rsa.cert);
  write("own.key", rsa.key);
  const { upstreamTls, warnings } = await load(upstream(files));
  expect(upstreamTls).toEqual({ far: { roots: rsa.cert, cert: rsa.cert, key: rsa.key } });
  expect(warnings.map(({ code, path }) => [code, path])).toEqual([
    ["files.key-exposed", `${tls}.privateKeyFile (${files.privateKeyFile})`],
  ]);
  const [warning] = (await load(upstream({ verify: false }))).warnings;
  expect(warning).toMatchObject({ code: "tls.unverified-upstream", path: `${tls}.verify` });
});

describe("a key that systemd passes as a credential", () => {
  let credentials: string;
  beforeEach(() => {
    credentials = openFolder();
    process.env["CREDENTIALS_DIRECTORY"] = credentials;
  });
  afterEach(() => {
    delete process.env["CREDENTIALS_DIRECTORY"];
  });

  test("is read in place of the file of that name", async () => {
    writeFileSync(join(credentials, "privkey.pem"), rsa.key, { mode: 0o440 });
    write("privkey.pem", "unreadable for the service");
    const loaded = await load(config());
    expect(loaded.tls["https"]!.certificates[0]!.key).toBe(rsa.key);
    expect(loaded.warnings).toEqual([]);
  });

  test("is found by its whole path where another file has the same name", async () => {
    mkdirSync(at("office"));
    const other = { certificate: at("office/cacert.pem"), key: at("office/privkey.pem") };
    const name = (path: string): string => path.slice(1).replaceAll("/", "_");
    writeFileSync(join(credentials, name(other.certificate)), office.cert);
    writeFileSync(join(credentials, name(other.key)), office.key);
    const loaded = await load(config({ tls: { certificates: [other] } }));
    expect(loaded.tls["https"]!.certificates.map(({ key }) => key)).toEqual([rsa.key, office.key]);
  });

  test("that is out of date has a reload as its fix", async () => {
    writeFileSync(join(credentials, "privkey.pem"), office.key);
    expect(await problemsOf(config())).toMatch(/key-mismatch\]\n.*systemctl reload portico/);
  });

  test("leaves other keys alone", async () => {
    writeFileSync(join(credentials, "other.pem"), "x");
    expect(await problemsOf(config())).toBe("");
  });
});

test("log files and their directories need not exist", async () => {
  const logs = { error: { path: at("new/deep/error.log") } };
  expect(await problemsOf(config({ config: { logs } }))).toBe("");
});

describe("without privileges", () => {
  const privileged = process.getuid?.() === 0 ? test : test.skip;

  privileged("problems name who lacks which permission where, and the fix opens no key", async () => {
    mkdirSync(at("closed/media"), { recursive: true });
    chmodSync(at("closed"), 0o700);
    mkdirSync(at("half"), { mode: 0o744 });
    mkdirSync(at("logs"), { mode: 0o755 });
    const routes: RouteInput[] = [
      { name: "a", path: "/a", action: { type: "staticFiles", directory: at("closed/media") } },
      { name: "b", path: "/b", action: { type: "staticFiles", directory: at("half") } },
    ];
    const logs = { error: { path: at("logs/error.log") } };
    const file = at("portico.json");
    writeFileSync(file, JSON.stringify(config({ routes, config: { logs } })));
    const text = await checkAsNobody(file);
    expect(text).toMatch(
      /tls\.key .*no permission on .*privkey\.pem for user 65534 \[files\.unreadable\]\n.*chown 65534/,
    );
    expect(text).not.toMatch(/chmod \S+ \S*privkey/);
    expect(text).toMatch(
      /directory .*no permission on \S*\/closed for user 65534 .*\n.*chmod a\+x \S*\/closed\n/,
    );
    expect(text).toMatch(/directory .*no permission on \S*\/half for user .*\n.*chmod a\+rx \S*\/half\n/);
    expect(text).toMatch(
      /logs\.error\.path .*cannot be created in \S*\/logs by user 65534 \(13: Permission denied\)/,
    );
  });

  privileged("a config that may not be read says so", async () => {
    const file = at("portico.json");
    writeFileSync(file, readFileSync(at("cacert.pem")), { mode: 0o600 });
    expect(await checkAsNobody(file)).toContain(`no permission on ${file}`);
  });
});
