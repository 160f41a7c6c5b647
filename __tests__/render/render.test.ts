import { renderOrigin } from "../../src/model/index.js";
import { execFileSync, spawnSync } from "node:child_process";
import { checkPrimeSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseConfig, parseConfigText, type ProxyConfigInput } from "../../src/model/index.js";
import {
  type ApplicationSettingsInput,
  renderApplicationSettings,
  settingsProblems,
} from "../../src/applications/index.js";
import {
  clashingCredentials,
  commandProblems,
  dhParametersPem,
  ffdhe2048Prime,
  orderProxyConfig,
  type ProxyUnitsInput,
  proxyServiceUnit,
  proxySocketUnit,
  renewalPathUnit,
  renewalServiceUnit,
  doctorTimerUnit,
  pythonLiteral,
  renderCommand,
  renderDefaultPage,
  renderLogRotation,
  proxyConfigText,
  renderUnit,
  type UnitCommand,
  type UnitDocument,
  unitProblems,
} from "../../src/render/index.js";
import { accepting } from "../../src/model/text/textRule.js";
import { PATH_PREFIX } from "../../src/applications/index.js";
import { ACCOUNT, DAEMON_PATH } from "../../src/render/daemonUnits.js";
import { INTERFACE_NAME, IPV6_GATEWAY, MAC_ADDRESS } from "../../src/render/networkd.js";
import { UNIT_PATH } from "../../src/render/proxyUnits.js";
import { PROGRAM_PATH } from "../../src/render/systemdUnit.js";
import { sayings } from "../../testkit/sayings.js";
import { testWith } from "../../testkit/testWith.js";
import { expectGolden } from "./golden.js";

const said = sayings("units-and-settings");

const folder = mkdtempSync(join(tmpdir(), "portico-render-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("Diffie-Hellman parameters", () => {
  test("are a safe prime of 2048 bits that begins and ends as in RFC 7919", () => {
    const p = ffdhe2048Prime();
    expect(p.toString(2)).toHaveLength(2048);
    expect(p.toString(16)).toMatch(/^ffffffffffffffffadf85458a2bb4a9a.*61285c97ffffffffffffffff$/);
    expect(checkPrimeSync(p)).toBe(true);
    expect(checkPrimeSync((p - 1n) / 2n)).toBe(true);
  });

  testWith("openssl")("are read by OpenSSL as the group ffdhe2048", () => {
    const file = join(folder, "dh.pem");
    writeFileSync(file, dhParametersPem());
    const checked = spawnSync("openssl", ["dhparam", "-in", file, "-check", "-noout"], { encoding: "utf8" });
    expect([checked.status, checked.stderr]).toEqual([0, expect.stringContaining("appear to be ok")]);
    expect(
      execFileSync("openssl", ["dhparam", "-in", file, "-text", "-noout"], { encoding: "utf8" }),
    ).toMatch(/2048 bit[^]*ffdhe2048/);
  });

  test("are computed once", () => {
    const pem = dhParametersPem();
    // Every number of them passes through this on its way into the text.
    const written = jest.spyOn(BigInt.prototype, "toString");
    expect(dhParametersPem()).toBe(pem);
    expect(written).not.toHaveBeenCalled();
    written.mockRestore();
  });
});

describe("systemd units", () => {
  const commands: [string, Parameters<typeof renderCommand>[0]["command"], string][] = [
    ["plain words stay bare", ["/usr/bin/node", "serve", "--a=b,c@d:e"], "/usr/bin/node serve --a=b,c@d:e"],
    ["white space is quoted", ["/bin/echo", "a b", "c\td"], '/bin/echo "a b" "c\td"'],
    ["an empty argument is kept", ["/bin/echo", ""], '/bin/echo ""'],
    ["quotes and backslashes are escaped", ["/bin/echo", `a"b'c\\d`], `/bin/echo "a\\"b'c\\\\d"`],
    ["a dollar is doubled", ["/bin/echo", "$HOME", "${HOME}"], '/bin/echo $$HOME "$${HOME}"'],
    ["a per cent sign is doubled", ["/bin/echo", "100%"], "/bin/echo 100%%"],
    ["a lone semicolon separates no commands", ["/bin/echo", ";"], '/bin/echo ";"'],
    ["a comment sign is quoted", ["/bin/echo", "#x"], '/bin/echo "#x"'],
    ["a variable stays one", ["/bin/kill", "-HUP", { variable: "MAINPID" }], "/bin/kill -HUP $MAINPID"],
  ];
  test.each(commands)("%s", (_, command, expected) => {
    expect(renderCommand({ command })).toBe(expected);
  });

  test("values are written according to their kind", () => {
    const unit: UnitDocument = {
      Unit: { Description: "100% of ${it}", After: ["a.target", "b.target"] },
      Service: { ExecStart: ["", { command: ["/bin/x"] }], RemoveIPC: true, PrivateTmp: false, Nice: 5 },
      Install: { Alias: { specifiers: "%p.service" } },
    };
    expect(renderUnit(unit)).toBe(
      "[Unit]\nDescription=100%% of ${it}\nAfter=a.target\nAfter=b.target\n\n" +
        "[Service]\nExecStart=\nExecStart=/bin/x\nRemoveIPC=yes\nPrivateTmp=no\nNice=5\n\n" +
        "[Install]\nAlias=%p.service\n",
    );
  });

  test("what is undefined is left out, of sections, directives and lists", () => {
    const unit = {
      Unit: { Description: undefined, After: [undefined, "a"] },
      Service: undefined,
      Timer: { OnCalendar: "daily" },
      Path: {},
      Mount: { What: "x" },
    } as unknown as UnitDocument;
    expect(unitProblems(unit)).toEqual([]);
    expect(renderUnit(unit)).toBe(
      "[Unit]\nAfter=a\n\n[Timer]\nOnCalendar=daily\n\n[Path]\n\n[Mount]\nWhat=x\n",
    );
  });

  const bad: [string, UnitDocument, string, string][] = [
    ["a line break", { Unit: { Description: "a\nExecStart=/bin/sh" } }, "unit.bad-value", "Unit.Description"],
    ["a carriage return", { Unit: { Description: "a\rb" } }, "unit.bad-value", "Unit.Description"],
    ["a continued line", { Unit: { Description: "a\\" } }, "unit.bad-value", "Unit.Description"],
    ["white space at the end", { Unit: { Description: "a " } }, "unit.bad-value", "Unit.Description"],
    ["a delete character", { Unit: { Description: "a\u007fb" } }, "unit.bad-value", "Unit.Description"],
    ["specifiers in two lines", { Unit: { A: { specifiers: "a\nb" } } }, "unit.bad-value", "Unit.A"],
    ["a directive that begins with a digit", { Unit: { "1A": "x" } }, "unit.bad-value", "Unit.1A"],
    ["an empty directive", { Unit: { "": "x" } }, "unit.bad-value", "Unit."],
    ["a second of several values", { Unit: { After: ["a", "b\n"] } }, "unit.bad-value", "Unit.After[1]"],
    ["a directive with `=`", { Unit: { "A=B": "x" } }, "unit.bad-value", "Unit.A=B"],
    ["a service without command", { Service: { Type: "exec" } }, "unit.missing-command", "Service.ExecStart"],
    [
      "a command without program",
      { Service: { ExecStart: { command: [] } } },
      "unit.missing-command",
      "Service.ExecStart.command",
    ],
    [
      "a program by its name only",
      { Service: { ExecStart: { command: ["node"] } } },
      "unit.bad-value",
      "Service.ExecStart.command[0]",
    ],
    [
      "a program with a prefix of its own",
      { Service: { ExecStart: { command: ["+/bin/x"] } } },
      "unit.bad-value",
      "Service.ExecStart.command[0]",
    ],
    [
      "an argument with a line break",
      { Service: { ExecStart: { command: ["/bin/x", "a\nb"] } } },
      "unit.bad-value",
      "Service.ExecStart.command[1]",
    ],
    ...["start-fastcgi", "start_fastcgi", "fastcgi"].map(
      (variant): [string, UnitDocument, string, string] => [
        `the start variant ${variant}`,
        { Service: { ExecStart: { command: ["/srv/web.sh", variant] } } },
        "unit.fastcgi-start",
        "Service.ExecStart.command",
      ],
    ),
    [
      "the variant in a text",
      { Service: { ExecStartPre: "/srv/web.sh start-fastcgi", ExecStart: { command: ["/bin/x"] } } },
      "unit.fastcgi-start",
      "Service.ExecStartPre",
    ],
    [
      "the variant inside a shell",
      { Service: { ExecStart: { command: ["/bin/sh", "-c", "cd /srv; ./web.sh start-fastcgi"] } } },
      "unit.fastcgi-start",
      "Service.ExecStart.command",
    ],
  ];
  test.each(bad)("%s is refused", (_, unit, code, path) => {
    expect(said(unitProblems(unit)).map((p) => [p.code, p.path])).toEqual([[code, path]]);
  });

  test.each<[string, unknown, [string, string][]]>([
    ["a text", "[Unit]", [["", "is not a unit"]]],
    ["nothing", null, [["", "is not a unit"]]],
    ["a list", [], [["", "is not a unit"]]],
    ["an unknown section", { Units: {} }, [["Units", "is not a section"]]],
    ["a text for a section", { Unit: "After=a" }, [["Unit", "is not a section"]]],
    ["no section", { Unit: null }, [["Unit", "is not a section"]]],
    ["a list of directives", { Unit: [] }, [["Unit", "is not a section"]]],
    ...[
      null,
      () => 1,
      {},
      { command: "/bin/x" },
      { command: ["/bin/x", 1] },
      { specifiers: 1 },
      [["/bin/x"]],
    ].map((value): [string, unknown, [string, string][]] => [
      `${typeof value} ${JSON.stringify(value)}`,
      { Service: { ExecStart: { command: ["/bin/x"] }, ExecStop: value } },
      [["Service.ExecStop", "is not a value for a directive"]],
    ]),
    [
      "a variable without a name",
      { Service: { ExecStart: { command: ["/bin/x", { name: "MAINPID" }] } } },
      [["Service.ExecStart", "is not a value for a directive"]],
    ],
    [
      "everything of the wrong type at once, and nothing else of it",
      { Unit: { "A=B": {} }, Service: 1, Installed: {} },
      [
        ["Unit.A=B", "is not a value for a directive"],
        ["Service", "is not a section"],
        ["Installed", "is not a section"],
      ],
    ],
  ])("a unit of the wrong shape: %s", (_, unit, expected) => {
    const problems = unitProblems(unit as UnitDocument);
    expect(problems.map((p) => [p.path, p.message])).toEqual(expected);
    expect(new Set(problems.map((p) => p.code))).toEqual(new Set(["unit.bad-value"]));
  });

  test("a section that is misspelled is suggested; one that is like none is not", () => {
    const sections = "Unit, Service, Socket, Timer, Path, Mount, Install";
    const [near, far] = unitProblems({ Sevice: {}, Container: {} } as UnitDocument);
    expect([near!.allowed, near!.fix]).toEqual([sections, "Did you mean `Service`?"]);
    expect([far!.allowed, far!.fix?.includes("Did you mean")]).toEqual([sections, false]);
  });

  test("forms that mean more than their text have no problems", () => {
    const variable = { variable: "MAINPID" };
    const Service = {
      ExecStart: { command: ["/bin/x", variable] },
      ExecStop: ["", { specifiers: "/bin/x %i" }],
      OOMScoreAdjust: -5,
      X: true,
      // Only a command line can start the application.
      SyslogIdentifier: "start-fastcgi",
    };
    expect(unitProblems({ Service })).toEqual([]);
    expect(commandProblems(["/bin/x", { variable: "A\nB" }], "x").map((p) => p.path)).toEqual(["x[1]"]);
    expect(commandProblems(["/bin/x", { variable: "fastcgi" }], "x")).toEqual([]);
    expect(commandProblems([variable, "x"], "x").map((p) => p.path)).toEqual(["x[0]"]);
  });

  test.each([["start"], ["start-fast"], ["/srv/fastcgi/start.sh"]])(
    "%s is not a FastCGI variant",
    (argument) => {
      expect(commandProblems(["/srv/web.sh", argument], "x")).toEqual([]);
    },
  );

  test("a oneshot service and a unit without service need no command", () => {
    expect(unitProblems({ Service: { Type: "oneshot" } })).toEqual([]);
    expect(unitProblems({ Socket: { ListenStream: 80 } })).toEqual([]);
    expect(unitProblems({ Unit: { X: "y" } })).toEqual([]);
  });

  const input: ProxyUnitsInput = {
    nodePath: "/usr/bin/node",
    runtime: "/usr/lib/portico/portico.mjs",
    config: "/etc/portico/portico.json",
    logDirectory: "/var/log/portico",
    listeners: [
      { address: "0.0.0.0", port: 80 },
      { address: "::", port: 80 },
      { address: "0.0.0.0", port: 443 },
      { address: "::", port: 443 },
    ],
    tlsFiles: ["/etc/portico/tls/privkey.pem", "/etc/portico/tls/cacert.pem"],
    servedDirectories: ["/srv/sync/media"],
    stopTimeoutSeconds: 300,
    openFilesMax: 65_536,
    memoryMax: "50%",
  };

  test("the proxy's units are what they were", () => {
    expectGolden("portico.service", renderUnit(proxyServiceUnit(input)));
    expectGolden("portico.socket", renderUnit(proxySocketUnit(input)));
    expectGolden("portico-certificates.path", renderUnit(renewalPathUnit(["/etc/tls", "/etc/tls/a.pem"])));
    expectGolden("portico-certificates.service", renderUnit(renewalServiceUnit()));
    expectGolden("portico-doctor.timer", renderUnit(doctorTimerUnit()));
    expect(unitProblems(proxyServiceUnit(input))).toEqual([]);
    expect(unitProblems(proxySocketUnit(input))).toEqual([]);
  });

  test("the units of a proxy that has and serves as little as possible are what they were", () => {
    const none = { listeners: [], tlsFiles: [], servedDirectories: [], acme: true } as const;
    const { logDirectory: _, ...rest } = input;
    const usual = renderUnit(proxyServiceUnit(input));
    expectGolden("portico-smallest.diff", renderUnit(proxyServiceUnit({ ...rest, ...none })), usual);
    const { Service, Install } = proxyServiceUnit({
      ...rest,
      ...none,
      acme: false,
      listeners: [{ address: "::", port: 80 }],
      tlsFiles: ["/a/key.pem"],
    });
    expect(Install).toEqual({ WantedBy: "multi-user.target", Also: "portico.socket" });
    expect(Service!["LoadCredential"]).toEqual(["key.pem:/a/key.pem"]);
    expect(renderCommand(Service!["ExecReload"] as UnitCommand)).toBe(
      "+/usr/bin/node /usr/lib/portico/portico.mjs reload --credential key.pem:/a/key.pem " +
        "--credential-directory /run/portico-credentials --pid $MAINPID",
    );
    expect(Service).not.toHaveProperty("StateDirectory");
  });

  test("the service unit follows what it serves", () => {
    const text = (more: Partial<ProxyUnitsInput>) => renderUnit(proxyServiceUnit({ ...input, ...more }));
    expect(text({})).toContain("ProtectHome=yes\n");
    expect(text({ servedDirectories: ["/home/sync/media"] })).toContain("ProtectHome=read-only\n");
    expect(text({ servedDirectories: ["/homes/sync"] })).toContain("ProtectHome=yes\n");
    expect(text({ servedDirectories: ["${local.unknown}"] })).toContain("ProtectHome=read-only\n");
    expect(text({ tlsFiles: [] })).not.toContain("LoadCredential");
    expect(text({ logDirectory: "/srv/logs" })).toContain("ReadWritePaths=/srv/logs\n");
    expect(text({ logDirectory: "/srv/logs" })).not.toContain("LogsDirectory");
    // Not below /var/log, though its path contains that.
    expect(text({ logDirectory: "/srv/var/log/portico" })).toContain("ReadWritePaths=/srv/var/log/portico\n");
    expect(text({ logDirectory: "/var/log/a/b" })).toContain("LogsDirectory=a/b\n");
    // The JIT of Node writes code that it runs.
    expect(text({})).not.toContain("MemoryDenyWriteExecute");
  });

  test("the file for logrotate is what it was, and names each log", () => {
    const logs = ["/var/log/portico/access.log", "/var/log/portico/error.log", "/srv/a log/x.log"];
    const service = "portico.service";
    expectGolden("logrotate", renderLogRotation({ logs, keptDays: 14, service }));
    expect(renderLogRotation({ logs: [], keptDays: 14, service })).toMatch(/^#[^\n]*\n$/);
  });

  test("a socket of a single address does not wait for an interface", () => {
    const listeners = [{ address: "192.0.2.10", port: 8443 }];
    const text = renderUnit(proxySocketUnit({ ...input, listeners }));
    expect(text).toContain("ListenStream=192.0.2.10:8443\n");
    expect(text).toContain("FreeBind=yes\n");
    expect(renderUnit(proxySocketUnit(input))).not.toContain("FreeBind");
    const mixed = { ...input, listeners: [...input.listeners, ...listeners] };
    expect(renderUnit(proxySocketUnit(mixed))).toContain("FreeBind=yes\n");
  });

  test("credentials with the same name clash", () => {
    expect(clashingCredentials(["/a/key.pem", "/a/cert.pem", "/a/key.pem"])).toEqual([]);
    expect(clashingCredentials(["/a/key.pem", "/b/key.pem"])).toEqual([]);
    expect(clashingCredentials(["/a/b/k", "/a_b/k", "/k"])).toEqual([["/a/b/k", "/a_b/k"]]);
  });

  testWith("systemd-analyze")("systemd accepts the units, and rates the service at 1.5 or better", () => {
    const service = join(folder, "portico.service");
    const socket = join(folder, "portico.socket");
    const here = { ...input, nodePath: process.execPath };
    writeFileSync(service, renderUnit(proxyServiceUnit(here)));
    writeFileSync(socket, renderUnit(proxySocketUnit(here)));
    const verified = spawnSync("systemd-analyze", ["verify", service, socket], { encoding: "utf8" });
    expect(verified.stderr.split("\n").filter((line) => line.includes(folder))).toEqual([]);
    expect(verified.status).toBe(0);
    const rated = spawnSync("systemd-analyze", ["security", "--offline=yes", service], { encoding: "utf8" });
    expect(
      Number(/exposure level for portico.service: ([\d.]+)/.exec(rated.stdout)?.[1]),
    ).toBeLessThanOrEqual(1.5);
  });
});

describe("application settings", () => {
  const input: ApplicationSettingsInput = {
    origins: [
      { scheme: "https", host: "files.example.org", port: 8443 },
      { scheme: "https", host: "2001:db8::10", port: 443 },
    ],
    pathPrefix: "sync",
    enableSettingsViaWeb: false,
    fileServerHost: "127.0.0.1",
    fileServerPort: 8082,
    startCommand: ["/srv/sync/web.sh", "start"],
  };

  test("are what they were", () => {
    const files = renderApplicationSettings(input);
    expect(files.map((f) => f.name)).toEqual([
      "network-daemon.conf",
      "web-application-settings.py",
      "file-server.conf",
      "web-application.service.conf",
    ]);
    files.forEach(({ name, text }) => expectGolden(`settings/${name}`, text));
    expect(settingsProblems(input)).toEqual([]);
  });

  test("leave the unit's start command alone if none is given", () => {
    const { startCommand: _, ...rest } = input;
    expect(renderApplicationSettings(rest)).toEqual(renderApplicationSettings(input).slice(0, 3));
    expect(settingsProblems(rest)).toEqual([]);
  });

  test.each([
    [true, "True"],
    [false, "False"],
    ["/sync/", "'/sync/'"],
    ["a'b\\c\nd\u007f", "'a\\'b\\\\c\\x0ad\\x7f'"],
    [["https://a", "https://b"], "['https://a', 'https://b']"],
    [[], "[]"],
  ])("Python literal of %j", (value, expected) => {
    expect(pythonLiteral(value)).toBe(expected);
  });

  test.each([
    [{ scheme: "http", host: "a.example", port: 80 }, "http://a.example"],
    [{ scheme: "https", host: "a.example", port: 443 }, "https://a.example"],
    [{ scheme: "https", host: "a.example", port: 80 }, "https://a.example:80"],
    [{ scheme: "http", host: "2001:db8::1", port: 8080 }, "http://[2001:db8::1]:8080"],
  ] as const)("origin of %j", (origin, expected) => {
    expect(renderOrigin(origin)).toBe(expected);
  });

  test.each<[string, Partial<ApplicationSettingsInput>, string, string]>([
    ["a quote", { pathPrefix: "a'b" }, "settings.bad-value", "pathPrefix"],
    ["a line break", { fileServerHost: "a\n[other]" }, "settings.bad-value", "fileServerHost"],
    [
      "a backslash",
      { origins: [{ scheme: "http", host: "a\\b", port: 80 }] },
      "settings.bad-value",
      "origins[0].host",
    ],
    [
      "the FastCGI variant",
      { startCommand: ["/srv/web.sh", "start-fastcgi"] },
      "unit.fastcgi-start",
      "startCommand",
    ],
    [
      "another argument than start",
      { startCommand: ["/srv/web.sh", "restart"] },
      "unit.bad-value",
      "startCommand",
    ],
    ["no program", { startCommand: [] }, "unit.missing-command", "startCommand"],
    ["start for a program", { startCommand: ["/start"] }, "unit.bad-value", "startCommand"],
    ["no origin", { origins: [] }, "config.missing-field", "origins"],
    ["no port of the file server", { fileServerPort: 0 }, "config.out-of-range", "fileServerPort"],
    [
      // Those of all names are the same.
      "no port of the origins",
      { origins: input.origins.map((origin) => ({ ...origin, port: 65_536 })) },
      "config.out-of-range",
      "origins[0].port",
    ],
  ])("%s is refused", (_, more, code, path) => {
    expect(said(settingsProblems({ ...input, ...more })).map((p) => [p.code, p.path])).toEqual([
      [code, path],
    ]);
  });
});

describe("proxy config", () => {
  const config: ProxyConfigInput = {
    virtualServers: [
      {
        routes: [
          {
            action: { setHeaders: { "X-B": "2", "X-A": "1" }, upstream: "u", type: "proxy" },
            path: "/${x}",
            match: undefined,
            name: "r",
          },
          { action: { status: 404, type: "respond", body: '%{a} "q" \\ é\n' }, path: "/r", name: "s" },
        ],
        default: true,
        listeners: ["l"],
        serverNames: ["_"],
        name: "v",
      },
    ],
    upstreams: [{ url: "http://127.0.0.1:1", name: "u" }],
    listeners: [{ protocol: "http", port: 80, address: "0.0.0.0", name: "l" }],
    version: 1,
  };

  test("has the field order of the field table, and keeps the order of header fields", () => {
    const text = proxyConfigText(config);
    expectGolden("config-order.json", text);
    expect(Object.keys(orderProxyConfig(config))).toEqual([
      "$schema",
      "version",
      "listeners",
      "upstreams",
      "virtualServers",
    ]);
  });

  test("reads back as the same config", () => {
    const read = parseConfigText(proxyConfigText(config));
    const direct = parseConfig(config);
    expect(read.ok && direct.ok).toBe(true);
    if (!read.ok || !direct.ok) return;
    const { $schema, ...rest } = read.value;
    expect($schema).toBe("/usr/lib/portico/portico.schema.json");
    expect(rest).toEqual(direct.value);
  });

  test.each<[string, unknown, string]>([
    ["lisseners", [], "config.unknown-field"],
    ["version", [1], "config.not-one-of"],
    ["version", { number: 1 }, "config.not-one-of"],
    ["listeners", {}, "config.wrong-type"],
    ["listeners", ["l"], "config.wrong-type"],
  ])("a mistake is kept, so that it is reported: %s = %j", (name, value, code) => {
    const text = proxyConfigText({ ...config, [name]: value } as ProxyConfigInput);
    expect((JSON.parse(text) as Record<string, unknown>)[name]).toEqual(value);
    const read = parseConfigText(text);
    expect(read.ok || read.problems.map((p) => p.code)).toContain(code);
  });
});

test("the default page is a complete document that shows no version", () => {
  const page = renderDefaultPage();
  expect(page).toMatch(/^<!DOCTYPE html>\n<html lang="en">[^]*<\/html>\n$/);
  expect(page.replace(/<style>.*<\/style>|initial-scale=1/g, "")).not.toMatch(/\d+\.\d+/);
});

/** A rule, what it takes, and what it refuses that comes close. */
const RULES: readonly [string, Parameters<typeof accepting>[0], string[], string[]][] = [
  [
    "a path in the proxy's units",
    UNIT_PATH,
    ["/", "/a", "/a.b/c_d-e@f+g,h=i~j%k"],
    ["", "a", "a/b", " /a", "/a ", "/a b", "/a:b", "/a\n", "/a\nb", "/\u00e4", '/a"'],
  ],
  [
    "a program's path",
    PROGRAM_PATH,
    ["/bin/x", "/a:b", "/a+b@c,d=e-f"],
    ["", "/", "/bin/", "bin/x", "./x", "@/bin/x", "-/bin/x", "/bin/x y", "/bin/%n", "/bin/x\n", "/bin/$x"],
  ],
  [
    "a daemon's path",
    DAEMON_PATH,
    ["/", "/a b", "/a/.b", "/a/..b", "/a.", "/a:b"],
    ["", "a", "-/a", " /a", "/a ", "/a\n", "/.", "/./a", "/a/..", "/a/../b", "/a*", "/a%b", "/~"],
  ],
  [
    "an account",
    ACCOUNT,
    ["root", "_a", "A-b_1", "a".repeat(31)],
    ["", "1a", "-a", " a", "a ", "a\n", "a b", "a:b", "a$", "a".repeat(32)],
  ],
  [
    "an interface's name",
    INTERFACE_NAME,
    ["eth0", "a", "...", ".a", "a.", "wlan-0_1.2", "a".repeat(15)],
    ["", ".", "..", "a b", " a", "a ", "a\n", "a/b", "a*", "!a", "a".repeat(16)],
  ],
  [
    "a hardware address",
    MAC_ADDRESS,
    ["52:54:00:12:34:56", "AE:bc:DE:f0:12:34", "00:00:00:00:00:01", "10:00:00:00:00:00"],
    [
      ...[
        "",
        "00:00:00:00:00:00",
        "53:54:00:12:34:56",
        "52:54:00:12:34",
        "52:54:00:12:34:56:78",
        "52-54-00-12-34-56",
      ],
      ...[
        " 52:54:00:12:34:56",
        "52:54:00:12:34:56\n",
        "x52:54:00:12:34:56",
        "5254:00:12:34:56",
        "52:54:00:12:34:5g",
      ],
    ],
  ],
  [
    "an IPv6 gateway",
    IPV6_GATEWAY,
    ["fe80::1", "2001:DB8::1", "::"],
    ["", "fe80::1%eth0", "192.0.2.1", " fe80::1", "fe80::1\n", "[fe80::1]", "fe80::1/64"],
  ],
  [
    "the word of the paths",
    PATH_PREFIX,
    ["sync", "S", "9", "a-b_c"],
    ["", "-a", "_a", "/a", "a/", "a/b", " a", "a ", "a\n", "a.b", "\u00e4"],
  ],
];

test.each(RULES)("%s accepts what it says, and nothing similar", (_what, rule, taken, refused) => {
  const accepts = accepting(rule);
  expect([taken.filter((text) => !accepts(text)), refused.filter(accepts)]).toEqual([[], []]);
});

test("directories below homes and below the logs are recognized by their beginning and end", () => {
  const input: ProxyUnitsInput = {
    nodePath: "/n",
    runtime: "/r",
    config: "/c",
    listeners: [],
    logDirectory: "/var/log/portico",
    tlsFiles: [],
    servedDirectories: [],
    stopTimeoutSeconds: 1,
    openFilesMax: 1,
    memoryMax: "1G",
  };
  const text = (more: Partial<ProxyUnitsInput>) => renderUnit(proxyServiceUnit({ ...input, ...more }));
  for (const at of ["/home", "/home/a", "/root", "/root/x", "/run/user/1"])
    expect(text({ servedDirectories: [at] })).toContain("ProtectHome=read-only\n");
  for (const at of ["/srv/home", "/srv/home/a", "/homes", "/rooted", "/srv/root", "/run/users"])
    expect(text({ servedDirectories: [at] })).toContain("ProtectHome=yes\n");
});
