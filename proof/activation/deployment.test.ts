import {
  type DeploymentInput,
  deploymentSchema,
  parseDeployment,
  parseDeploymentText,
} from "../../src/model/index.js";
import { sayings } from "../../testkit/sayings.js";
import { nodesAt, type SchemaNode, variants } from "../../src/model/config/schema.js";

/** The deployment document: what it may say, and that every problem is told at once. */
const said = sayings("deployments");
const HASH = "a".repeat(64);
const valid: DeploymentInput = {
  version: 1,
  config: "/etc/portico/portico.json",
  files: [
    { path: "/etc/portico/portico.json", mode: "0644", sha256: HASH, role: "config" },
    { path: "/etc/portico/tls/privkey.pem", mode: "0600", sha256: HASH, role: "tls" },
  ],
  services: { proxy: { service: "portico.service", socket: "portico.socket" } },
};

const text = {
  section: "General",
  name: "URL",
  value: "https://[2001:db8::1]:8443/",
  code: "settings",
  stored: true,
};
const ini = {
  name: "daemon",
  path: "/a",
  kind: "ini" as const,
  items: [text, { ...text, name: "port", stored: false, value: 8082 }],
};
const python = {
  name: "web",
  path: "/b",
  kind: "python" as const,
  items: [
    { name: "STATIC", value: false },
    { name: "_HOSTS", value: ["https://a", "https://b"] },
    { name: "ROOT", value: "/", stored: true },
  ],
};
const env = { name: "web", path: "/c", kind: "env" as const, items: [{ name: "A", value: true }] };
const plain = { ...text, stored: false };
const iniOf = (...items: object[]) => ({ ...ini, items });
const pythonOf = (...items: object[]) => ({ ...python, items });
const envOf = (...items: object[]) => ({ ...env, items });
const many = <T>(count: number, make: (name: string) => T) =>
  Array.from({ length: count }, (_, i) => make(`n${i}`));

test("defaults are filled in, and it is frozen", () => {
  const parsed = parseDeployment({
    ...valid,
    settings: { files: [ini] },
    trees: [{ path: "/srv/files", code: "files-served", message: "unreadable" }],
    rows: [{ code: "files-served", title: "Files are served" }],
    database: { host: "127.0.0.1", port: 3306, name: "sync", user: "reader" },
    network: { exposedPorts: [80] },
  });
  expect(parsed).toMatchObject({
    ok: true,
    value: {
      settings: { apply: false },
      trees: [{ fix: false }],
      network: { portForwards: [], dnsRecords: [], exposedPorts: [80], loopbackPorts: [] },
      probe: { enabled: true, timeoutSeconds: 60 },
    },
  });
  expect(parsed.ok && Object.isFrozen(parsed.value.files[0])).toBe(true);
});

test("a document with nothing but what it needs has these defaults", () => {
  const value = { ...valid, probe: { enabled: true, timeoutSeconds: 60 }, requireCertificate: false };
  expect(parseDeployment(valid)).toEqual({ ok: true, value });
});

test("a document with every field, every role and every mode is taken as it is", () => {
  const roles = "config node page other runtime settings tls unit network firewall keepalived".split(" ");
  const modes = ["0600", "0640", "0644", "0755"];
  const files = roles.map((role, i) => ({
    path: `/srv/${String(i).padStart(2, "0")}`,
    mode: modes[i % 4],
    sha256: HASH,
    role,
  }));
  const full = {
    version: 1,
    name: "files",
    config: "/srv/00",
    files,
    services: {
      proxy: { service: "portico.service", socket: "portico.socket" },
      daemons: [
        {
          unit: "file.service",
          restartOn: ["daemon"],
          domainChange: "restart",
          code: "daemon",
          command: { never: "^x$", message: "a cause", fix: "a fix" },
        },
        { unit: "dav.service" },
      ],
      firewall: "nftables.service",
      keepalived: "keepalived.service",
    },
    settings: { files: [ini, python], apply: true },
    trees: [{ path: "/srv/files", code: "daemon", message: "a cause", fix: true }],
    rows: [{ code: "daemon", title: "A daemon" }],
    database: { host: "127.0.0.1", port: 3306, name: "sync", user: "reader" },
    network: {
      addresses: ["192.0.2.1", "2001:db8::1"],
      portForwards: [{ protocol: "tcp", port: 443, toAddress: "192.0.2.1", toPort: 8443 }],
      dnsRecords: [
        { name: "files.example.org", type: "A", value: "192.0.2.1" },
        { name: "files.example.org", type: "AAAA", value: "2001:db8::1" },
      ],
      exposedPorts: [443],
      loopbackPorts: [3306],
    },
    probe: { enabled: false, imagePath: "logo.png", timeoutSeconds: 3600 },
    requireCertificate: true,
  };
  expect(parseDeployment(full)).toEqual({ ok: true, value: full });
});

test("every field is described in sentences, and every number that has a default has a unit", () => {
  const fields = (node: SchemaNode): SchemaNode[] => {
    const inner = [
      ...Object.values(node.properties ?? {}),
      ...(node.items === undefined ? [] : [node.items]),
    ];
    return inner.flatMap((one) => [one, ...variants([one]).flatMap(fields)]);
  };
  const all = fields(nodesAt(deploymentSchema, [])[0]!);
  expect(all.length).toBeGreaterThan(60);
  // Objects in a list are described by their list.
  expect(all.filter((one) => one.properties === undefined && !one.description)).toEqual([]);
  const texts = all.flatMap(({ description }) => description ?? []);
  expect(texts.filter((text) => !/^(?:[A-Z`]|systemd )[^]*\.$/.test(text))).toEqual([]);
  expect(all.filter((one) => typeof one.default === "number").map(({ unit }) => unit)).toEqual([
    "seconds",
    "bytes",
    "requests",
  ]);
});

test.each<[string, object, [string, string][]]>([
  ["another version", { version: 2 }, [["version", "config.unsupported-version"]]],
  [
    "a password",
    { database: { host: "h", port: 1, name: "n", user: "u", password: "p" } },
    [["database.password", "config.unknown-field"]],
  ],
  [
    "every field at once",
    {
      config: "portico.json",
      files: [{ path: "/a/../b", mode: "0777", sha256: "abc", role: "exe" }],
      services: {
        proxy: { service: "portico", socket: "portico.service" },
        daemons: [{ unit: "a b.service", code: "a b" }],
      },
      probe: { timeoutSeconds: 0 },
    },
    [
      ["config", "config.bad-file-path"],
      ["files[0].path", "config.bad-file-path"],
      ["files[0].mode", "config.not-one-of"],
      ["files[0].sha256", "config.bad-text"],
      ["files[0].role", "config.not-one-of"],
      ["services.proxy.service", "config.bad-name"],
      ["services.proxy.socket", "config.bad-name"],
      ["services.daemons[0].unit", "config.bad-name"],
      ["services.daemons[0].code", "config.bad-name"],
      ["probe.timeoutSeconds", "config.out-of-range"],
    ],
  ],
  [
    "too long a time for its check",
    { probe: { timeoutSeconds: 3601 } },
    [["probe.timeoutSeconds", "config.out-of-range"]],
  ],
  ["the shortest time for its check", { probe: { timeoutSeconds: 1 } }, []],
  ["no files", { files: [] }, [["files", "config.out-of-range"]]],
  ["a file twice", { files: [valid.files[0], valid.files[0]] }, [["files[1].path", "config.duplicate-name"]]],
  ["files out of order", { files: [...valid.files].reverse() }, [["files[1].path", "config.duplicate-name"]]],
  [
    "a config that is not a config",
    { config: "/etc/portico/tls/privkey.pem" },
    [["config", "config.unknown-reference"]],
  ],
  [
    "files of activation itself",
    {
      files: [
        { ...valid.files[0], path: "/etc/portico/deployment.json", role: "other" },
        valid.files[0],
        { ...valid.files[0], path: "/var/lib/portico/deployment/x", role: "other" },
        { ...valid.files[0], path: "/x/", role: "other" },
      ],
    },
    [
      ["files[0].path", "config.bad-file-path"],
      ["files[2].path", "config.bad-file-path"],
      ["files[3].path", "config.bad-file-path"],
    ],
  ],
  [
    "a file that is deployed and edited",
    { settings: { files: [ini, { ...python, path: valid.config }], apply: true } },
    [["settings.files[1].path", "config.duplicate-name"]],
  ],
  ["a file that is deployed and compared", { settings: { files: [{ ...ini, path: valid.config }] } }, []],
  [
    "rows that every host has, or that there are already",
    { rows: ["a", "proxy", "a"].map((code) => ({ code, title: "A row" })) },
    [
      ["rows[1].code", "config.duplicate-name"],
      ["rows[2].code", "config.duplicate-name"],
    ],
  ],
  [
    "what belongs to no row of the deployment, but to one that every host has",
    {
      trees: [{ path: "/srv/files", code: "files", message: "x" }],
      services: { ...valid.services, daemons: [{ unit: "a.service", code: "proxy" }] },
      expect: [
        {
          name: "a",
          request: { server: "a", path: "/" },
          causes: ["server-name", "proxy", "b"].map((code) => ({
            evidence: {},
            message: "x",
            code,
            because: ["proxy", "b"],
          })),
        },
      ],
    },
    [
      ["trees[0].code", "config.unknown-reference"],
      ["services.daemons[0].code", "config.unknown-reference"],
      ["expect[0].causes[0].because[1]", "config.unknown-reference"],
      ["expect[0].causes[1].code", "config.unknown-reference"],
      ["expect[0].causes[1].because[1]", "config.unknown-reference"],
      ["expect[0].causes[2].code", "config.unknown-reference"],
      ["expect[0].causes[2].because[1]", "config.unknown-reference"],
    ],
  ],
  [
    "a command rule that is no regular expression",
    {
      services: {
        ...valid.services,
        daemons: [{ unit: "a.service", command: { never: "(", message: "x", fix: "x" } }],
      },
    },
    [["services.daemons[0].command.never", "config.bad-text"]],
  ],
  [
    "more rows than a report has room for",
    { rows: Array.from({ length: 51 }, (_, i) => ({ code: `r${i}`, title: "A row" })) },
    [["rows", "config.out-of-range"]],
  ],
  [
    "items of rows that are none, of a row, and of that of all settings",
    {
      rows: [{ code: "urls", title: "URLs" }],
      settings: {
        files: [iniOf(...["url", "tls", "urls", "settings"].map((code) => ({ ...plain, name: code, code })))],
      },
    },
    [
      ["settings.files[0].items[0].code", "config.unknown-reference"],
      ["settings.files[0].items[1].code", "config.unknown-reference"],
    ],
  ],
  [
    "a daemon that reads a file nobody edits",
    {
      services: { ...valid.services, daemons: [{ unit: "a.service", restartOn: ["daemon", "b"] }] },
      settings: { files: [ini] },
    },
    [["services.daemons[0].restartOn", "config.unknown-reference"]],
  ],
])("%s", (_what, change, expected) => {
  const parsed = parseDeployment({ ...valid, ...change });
  expect(parsed.ok ? [] : said(parsed.problems).map(({ path, code }) => [path, code])).toEqual(expected);
});

test.each<[what: string, files: readonly object[], path?: string, code?: string]>([
  ["a kind that has no editor", [{ ...ini, kind: "yaml" }], "[0].kind", "config.not-one-of"],
  ["no value", [iniOf({ ...text, value: undefined })], "[0].items[0].value", "config.missing-field"],
  ["no section", [iniOf({ ...text, section: undefined })], "[0].items[0].section", "config.missing-field"],
  ["a section in a module", [pythonOf(text)], "[0].items[0].section", "config.unknown-field"],
  ["a boolean in an INI file", [iniOf({ ...text, value: true })], "[0].items[0].value", "config.not-one-of"],
  ["a number in a module", [pythonOf({ name: "A", value: 1 })], "[0].items[0].value", "config.not-one-of"],
  ["variables", [envOf({ name: "A", value: "/" }, { name: "a", value: 1 }, { name: "_B", value: false })]],
  ["a list of variables", [envOf({ name: "A", value: ["/"] })], "[0].items[0].value", "config.not-one-of"],
  ["a section of variables", [envOf(text)], "[0].items[0].section", "config.unknown-field"],
  [
    "a boolean variable that is stored",
    [envOf({ name: "A", value: true, stored: true })],
    "[0].items[0].stored",
    "settings.bad-value",
  ],
  [
    "a bad element",
    [pythonOf({ name: "A", value: ["/", "/'"] })],
    "[0].items[0].value[1]",
    "settings.bad-value",
  ],
  [
    "a list that is stored",
    [pythonOf({ name: "A", value: [], stored: true })],
    "[0].items[0].stored",
    "settings.bad-value",
  ],
  ["no file", [], "", "config.out-of-range"],
  ["no item", [iniOf()], "[0].items", "config.out-of-range"],
  ["ten files", many(10, (name) => ({ ...iniOf(plain), name, path: `/${name}` }))],
  [
    "too many files",
    many(11, (name) => ({ ...iniOf(plain), name, path: `/${name}` })),
    "",
    "config.out-of-range",
  ],
  ["100 items", [iniOf(...many(100, (name) => ({ ...text, name })))]],
  [
    "too many items",
    [iniOf(...many(101, (name) => ({ ...text, name })))],
    "[0].items",
    "config.out-of-range",
  ],
  ["a file twice", [ini, { ...python, name: "daemon" }], "[1].name", "config.duplicate-name"],
  [
    "a key twice, in small letters",
    [iniOf(text, { ...plain, name: "url" })],
    "[0].items[1].name",
    "config.duplicate-name",
  ],
  [
    "an item of a path twice",
    [iniOf(plain), { ...iniOf(plain), name: "b" }],
    "[1].items[0].name",
    "config.duplicate-name",
  ],
  [
    "what is stored twice",
    [ini, pythonOf({ name: "URL", value: "/", stored: true })],
    "[1].items[0].name",
    "config.duplicate-name",
  ],
  ["a key of two sections", [iniOf(plain, { ...plain, section: "Other" })]],
  ["a name of a module in small letters", [pythonOf({ name: "A", value: "/" }, { name: "a", value: "/" })]],
])("settings: %s", (_what, files, ...[path, code]) => {
  const parsed = parseDeployment({ ...valid, settings: { files } });
  const problems = parsed.ok ? [] : said(parsed.problems).map((p) => [p.path, p.code]);
  expect(problems).toEqual(code === undefined ? [] : [[`settings.files${path}`, code]]);
});

/** A field, how it is given, and values on both sides of its rule. */
test.each<[string, (value: string) => object, string[], string[]]>([
  [
    "files[0].sha256",
    (sha256) => ({ files: [{ ...valid.files[0], sha256 }, valid.files[1]] }),
    ["0123456789abcdef".repeat(4)],
    ["", "a".repeat(63), "a".repeat(65), "A".repeat(64), `${HASH}\n`, ` ${HASH}`, "g".repeat(64)],
  ],
  [
    "services.proxy.service",
    (service) => ({ services: { proxy: { service, socket: "portico.socket" } } }),
    ["a.service", "a@b:c_d-e.f\\x2d.service", `${"a".repeat(240)}.service`],
    ["", ".service", "a", "a.socket", "a.services", "a.service\n", " a.service", "a b.service", "/a.service"],
  ],
  [
    "services.proxy.socket",
    (socket) => ({ services: { proxy: { service: "portico.service", socket } } }),
    ["a.socket"],
    ["a.service", "a.sockets", "a.socket ", `${"a".repeat(241)}.socket`],
  ],
  [
    "settings.files[0].items[0].value",
    (value) => ({ settings: { files: [iniOf({ ...text, value })] } }),
    ["!$&()*+,-./09:", "<=>?@AZ[", "]^_`az{|}~", "x".repeat(2048)],
    [
      "",
      "a b",
      " /a",
      "/a\n",
      "/a\u00e4",
      "/a\x7f",
      "/a'",
      '/a"',
      "/a\\",
      "/a%",
      "/a#",
      "/a;",
      "x".repeat(2049),
    ],
  ],
  [
    "settings.files[0].items[0].section",
    (section) => ({ settings: { files: [iniOf({ ...text, section })] } }),
    ["General", "a.b-c_d", "default", "9"],
    ["", "DEFAULT", "a b", "a]", "[a", "#a", "-a", "a".repeat(65)],
  ],
  [
    "settings.files[0].items[0].name",
    (name) => ({ settings: { files: [pythonOf({ name, value: "/" })] } }),
    ["A", "_", "a9_Z", "SECRET_KEY_2", "a".repeat(64)],
    [
      "",
      "9a",
      "a.b",
      "a-b",
      "a'b",
      "é",
      "a\n",
      "a".repeat(65),
      "SECRET_KEY",
      "DATABASES",
      "None",
      "import",
      "yield",
    ],
  ],
  [
    "settings.files[0].items[0].value",
    (value) => ({ settings: { files: [envOf({ name: "A", value })] } }),
    ["!&()*+,-./09:", "<=>?@AZ[", "]^_`az{|}~", "x".repeat(2048)],
    ["", "a b", "/a\n", "/a'", '/a"', "/a\\", "/$a", "/a%", "/a#", "/a;", "x".repeat(2049)],
  ],
  [
    "settings.files[0].items[0].name",
    (name) => ({ settings: { files: [envOf({ name, value: "/" })] } }),
    ["A", "_", "a9_Z", "KEYS", "MONKEY", "TOKEN_URL", "a".repeat(64)],
    [
      "",
      "9a",
      "a.b",
      "a-b",
      "a b",
      "é",
      "a\n",
      "a".repeat(65),
      "KEY",
      "A_KEY",
      "DB_PASSWORD",
      "A_TOKEN",
      "_SECRET",
    ],
  ],
])("%s takes what it says, and nothing that comes close", (path, change, taken, refused) => {
  const pathsOf = (value: string): string[] => {
    const parsed = parseDeployment({ ...valid, ...change(value) });
    return parsed.ok ? [] : parsed.problems.map((p) => p.path);
  };
  for (const value of taken) expect([value, pathsOf(value)]).toEqual([value, []]);
  for (const value of refused) expect([value, pathsOf(value)]).toEqual([value, [path]]);
});

test("JSON errors name their place; a misspelt field is corrected", () => {
  expect(parseDeploymentText('{"version": 1,')).toMatchObject({
    ok: false,
    problems: [{ code: "config.not-json" }],
  });
  const parsed = parseDeployment({ ...valid, service: {} });
  expect(parsed).toMatchObject({
    ok: false,
    problems: [{ path: "service", fix: "Did you mean `services`?" }],
  });
});
