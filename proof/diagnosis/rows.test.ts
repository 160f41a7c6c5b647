import type {
  Evidence,
  EvidenceFinding,
  PublicAddress,
  SeenUpstreamServer,
} from "../../src/host/diagnosis/evidence.js";
import type { ReceivedResponse } from "../../src/host/diagnosis/expected/expectation.js";
import { judge } from "../../src/host/diagnosis/expected/liveCheck.js";
import type { ProbeOutcome } from "../../src/host/diagnosis/expected/probe.js";
import { diagnose, unreadable } from "../../src/host/diagnosis/rows/rows.js";
import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { type DeploymentInput, problem } from "../../src/model/index.js";
import { siteConfig } from "../../testkit/siteConfig.js";
import { deploymentOf } from "../../testkit/deployment.js";
import {
  ADDRESS,
  response,
  asExpected,
  configOf,
  errorPage,
  failure,
  HEALTHY,
  responsesOf,
  type Subject,
  subjectOf,
  UNITS,
} from "./site.js";

/** What `portico doctor` concludes from what it has seen; proof/hosts breaks real hosts and compares. */

/** Rows that are not `ok`, by id: the status, and the row that explains it. */
type Expected = Readonly<Record<string, DiagnosisRow["status"] | `because ${string}`>>;

const notOk = (rows: readonly DiagnosisRow[]): Expected =>
  Object.fromEntries(
    rows
      .filter(({ status }) => status !== "ok")
      .map(({ id, status, because }) => [
        id,
        because === undefined ? status : (`because ${because}` as const),
      ]),
  );

/** What a row says, all in one text. */
const said = (rows: readonly DiagnosisRow[], id: string): string => {
  const { cause, evidence, fix } = rows.find((row) => row.id === id)!;
  return [cause, ...evidence, fix].filter((part) => part !== undefined).join("\n");
};

const finding: EvidenceFinding = { at: "/a", what: "is odd", fix: "mend it" };
const findings = (count: number): EvidenceFinding[] =>
  Array.from({ length: count }, (_, i) => ({ at: `/f${i}`, what: "is odd", fix: `fix ${i % 2}` }));
const drift = (more: object): Partial<Evidence> => ({ drift: { ...HEALTHY.drift!, ...more } });
const without = (...names: (keyof Evidence)[]): Partial<Evidence> =>
  Object.fromEntries(names.map((name) => [name, undefined]));
const bad = problem("files.unreadable", "/etc/x", "cannot be read", { fix: "Look at it." });
const silent = failure("ECONNREFUSED");
const proxyDown = { ...UNITS.proxy, state: "failed" };
const responses = (others: Parameters<typeof responsesOf>[1]): Partial<Evidence> => ({
  responses: responsesOf(HEALTHY.config, others),
});
const servers = (...states: SeenUpstreamServer["state"][]): Partial<Evidence> => ({
  upstreamServers: states.map((state, i) => ({
    upstream: "web",
    url: `http://${"ab"[i]!}:1`,
    backup: false,
    state,
    message: "seen",
  })),
});
const violation = {
  path: "/opt/sync/media/a.png",
  code: "media-permissions",
  kind: "file",
  lacks: "read",
  fix: "chmod 1",
};
const trees = (...violations: object[]): Partial<Evidence> => ({
  trees: { ...HEALTHY.trees!, violations: violations as never },
});
const web = (more: object): Partial<Evidence> => ({
  units: { ...UNITS, daemons: [{ ...UNITS.daemons[0]!, ...more }] },
});
const deployed = (more: Partial<DeploymentInput> = {}) =>
  deploymentOf({ settings: HEALTHY.deployment!.settings!, ...more });
const settings = (more: object): Partial<Evidence> => ({ settings: { ...HEALTHY.settings!, ...more } });
const deviation = {
  item: "SERVICE_URL",
  code: "public-urls",
  wanted: "http://a/sync",
  where: "/opt/daemon.conf:2",
};
const publicAddress = (more: Partial<PublicAddress> = {}): Partial<Evidence> => ({
  publicAddresses: [{ address: ADDRESS, own: false, outcome: silent, ...more }],
});

/** What came from a health listener. */
const ready = (health: ProbeOutcome): Partial<Evidence> => ({
  config: { ...HEALTHY.config, healthListener: { address: "127.0.0.1", port: 9180, anyAddress: false } },
  health,
});

/** The expected response of a row, by a server that shows its version. */
function withVersion(subject: Subject): ProbeOutcome {
  const { response: expected } = asExpected(
    HEALTHY.responses.find(({ row }) => subjectOf(row) === subject)!.row,
  ) as { response: ReceivedResponse };
  return { response: { ...expected, headers: { ...expected.headers, server: "portico/0.1.0" } } };
}

const RESPONSES = HEALTHY.responses.map(({ row }) => `response: ${row.name}`);
const all = (ids: readonly string[], status: Expected[string]): Expected =>
  Object.fromEntries(ids.map((id) => [id, status]));
const WEB = ["response: application over http", "response: application's Server field"];

const QUIESCE = {
  ...{ since: 0, refusesSince: 0, reads: false },
  ...{ writes: 0, lasting: 0, slow: 0, silent: 0, transfers: [] },
};

type RowAndWords = [id: string, message: RegExp];

const CASES = Array.from<
  [what: string, seen: Partial<Evidence>, expected: Expected, ...message: RowAndWords[]]
>([
  ["everything is in order", {}, {}],
  [
    "everything is in order, and the application was asked once",
    { responses: HEALTHY.responses.filter(({ row }) => row.name === "application over http") },
    {},
    ["web-application", /^HEAD .*: 302, Location: /],
  ],
  [
    "from elsewhere",
    {
      place: "elsewhere",
      ...without("configProblems", "configWarnings", "deployment", "units", "sockets", "settings", "trees"),
      ...without("drift", "logs", "ownAddresses", "space", "publicAddresses"),
      openPorts: new Map([[80, true]]),
    },
    all(
      [
        ...[
          "activation",
          "files",
          "units",
          "config",
          "proxy",
          "running",
          "tls",
          "logs",
          "space",
          "addresses",
        ],
        ...["firewall", "hairpin", "directories"],
      ],
      "unknown",
    ),
    ["files", /^This can only be seen on the host/],
    ["ports", /^open from here: 80$/],
  ],
  [
    "nothing is known of the deployment",
    without("deployment", "units", "drift"),
    all(["activation", "files", "units", "proxy", "running", "firewall"], "unknown"),
    ["files", /there is no deployment document/],
  ],
  [
    "nobody activated it",
    without("drift"),
    all(["activation", "files", "units", "running", "firewall"], "unknown"),
    ["files", /could not be determined: the host gave no answer/],
  ],
  [
    "the store",
    drift({ store: [finding] }),
    { activation: "failed" },
    ["activation", /^an activation[^]*\n\/a: is odd\nmend it$/],
  ],
  ["a file", drift({ files: [finding] }), { files: "failed" }],
  [
    "twelve files",
    drift({ files: findings(12) }),
    { files: "failed" },
    ["files", /^[^\n]*\n\/f0: is odd\n[^]*\n\/f11: is odd\nfix 0; fix 1$/],
  ],
  [
    "more files",
    drift({ files: findings(14) }),
    { files: "failed" },
    ["files", /\n\/f11: is odd\n… and 2 more\nfix 0; fix 1$/],
  ],
  ["a unit", drift({ units: [finding] }), { units: "failed" }],
  ["what runs", drift({ running: [finding] }), { running: "failed" }],
  [
    "a proxy that cannot be asked",
    drift({ running: undefined }),
    { running: "unknown" },
    ["running", /cannot be queried/],
  ],
  ["the firewall", drift({ firewall: [finding] }), { firewall: "failed" }],
  ["no firewall", drift({ firewall: undefined }), {}, ["firewall", /No packet filter was deployed/]],
  ["no firewall, and why", drift({ firewall: undefined, firewallUnknown: "why" }), {}, ["firewall", /^why$/]],
  [
    "rules that cannot be compared",
    drift({ firewallUnknown: "why" }),
    { firewall: "unknown" },
    ["firewall", /^why$/],
  ],
  [
    "rules that cannot be compared, and are wrong",
    drift({ firewall: [finding], firewallUnknown: "why" }),
    { firewall: "failed" },
  ],
  ["logs", { logs: [finding] }, { logs: "failed" }],
  ["space", { space: [finding] }, { space: "failed" }],
  [
    "servers of upstreams",
    servers("up", "up"),
    {},
    ["upstreams", /^web: http:\/\/a:1: seen\nweb: http:\/\/b:1: seen$/],
  ],
  [
    "a server that gets no request",
    servers("up", "down"),
    { upstreams: "warning" },
    [
      "upstreams",
      /^Upstream web: its server http:\/\/b:1 is down\n[^]*\nstart the program that should listen on http:\/\/b:1$/,
    ],
  ],
  [
    "a drained server",
    servers("up", "drained"),
    { upstreams: "warning" },
    ["upstreams", /^a command has drained servers\n[^]*\nportico upstreams undrain web http:\/\/b:1$/],
  ],
  [
    "servers that are all drained",
    servers("drained", "drained"),
    { upstreams: "failed" },
    ["upstreams", /^Upstream web: its server http:\/\/a:1 /],
  ],
  [
    "servers that are all failing",
    servers("failing", "failing"),
    { upstreams: "failed" },
    ["upstreams", /^Upstream web: its server http:\/\/a:1 /],
  ],
  [
    "no server that gets requests",
    servers("drained", "refused"),
    { upstreams: "failed" },
    [
      "upstreams",
      /^Upstream web: its server http:\/\/b:1 is down\n[^]*\nportico upstreams undrain web http:\/\/a:1; start the program/,
    ],
  ],
  [
    "a list of revoked certificates that has ended",
    {
      clientCertificates: {
        clientAuthorities: [{ name: "CN=Clients", file: "crl", daysLeft: -1, end: "ended" }],
        refusedCertificates: [{ server: "vault", reason: "crl-expired", count: 7 }],
      },
    },
    { "client-certificates": "failed" },
    [
      "client-certificates",
      /^The list of revoked certificates of CN=Clients ended [^]*none of its clients comes in\nvault: 7 refused since the start, because the list [^]*has expired\nRenew its files/,
    ],
  ],
  [
    "a maintenance",
    { pauses: { maintenance: [{ site: "web", since: 0, until: 60_000 }] } },
    { pauses: "warning" },
    [
      "pauses",
      /^a command makes the proxy refuse requests\nweb: in maintenance since 1970-01-01T00:00:00\.000Z, until 1970-01-01T00:01:00\.000Z\nportico maintenance off$/,
    ],
  ],
  [
    "a quiesce",
    { pauses: { maintenance: [], quiesce: QUIESCE } },
    { pauses: "warning" },
    [
      "pauses",
      /\nrequests that write are refused since 1970\S+, for a command under portico quiesce\nWait until/,
    ],
  ],
  [
    "a quiesce that reads wait for as well, and a maintenance of everything",
    { pauses: { maintenance: [{ since: 0 }], quiesce: { ...QUIESCE, reads: true } } },
    { pauses: "warning" },
    [
      "pauses",
      /\nevery site: in maintenance since 1970-\S+Z\nall requests are refused since 1970\S+, for [^]*\nportico maintenance off$/,
    ],
  ],
  ["a health listener", ready(response(200)), {}, ["health", /^GET \/readyz at 127\.0\.0\.1:9180: 200$/]],
  [
    "a health listener that is not ready",
    ready(response(503)),
    { health: "failed" },
    [
      "health",
      /^the proxy is stopping, no worker accepts connections, or [^]*: 503\nRead .*: journalctl -u portico\.service$/,
    ],
  ],
  [
    "a health listener that does not respond",
    ready(silent),
    { health: "failed" },
    ["health", /^no response from the address of the health listener\n.*failed: ECONNREFUSED\n/],
  ],
  [
    "a health listener of something else",
    ready(response(404)),
    { health: "failed" },
    ["health", /^another program responds [^]*: 404\nStop the program that listens there .*:9180/],
  ],
  [
    "a health listener that was not loaded",
    { ...ready(silent), ...drift({ running: [finding] }) },
    { running: "failed", health: "because running" },
  ],
  [
    "a health listener of a config that is refused",
    { ...ready(silent), configProblems: [bad] },
    { config: "failed", health: "because config" },
  ],
  [
    "a health listener of a proxy that is down",
    { ...ready(silent), units: { ...UNITS, proxy: proxyDown } },
    { proxy: "failed", health: "because proxy" },
  ],
  [
    "a health listener that is not ready, of a unit that is not known",
    { ...ready(response(503)), ...without("units") },
    { proxy: "unknown", health: "failed" },
    ["health", /journalctl -u portico\.service$/],
  ],
  [
    "workers that the kernel killed",
    { memoryKills: 3 },
    { memory: "failed" },
    [
      "memory",
      /^the kernel killed workers [^]*: 3 killed since [^]*\nAllow the proxy more memory \(memoryMax /,
    ],
  ],
  [
    "a Node that gets fixes",
    { node: { version: "24.1.0", path: "/n", fixes: { state: "fixed", text: "fixes until X" } } },
    {},
    ["node-fixes", /^Node 24\.1\.0 \(\/n\): fixes until X$/],
  ],
  [
    "a Node whose fixes end soon",
    { node: { version: "24.1.0", path: "/n", fixes: { state: "ends-soon", text: "fixes until X" } } },
    { "node-fixes": "warning" },
    [
      "node-fixes",
      /^security fixes for this version of Node.js end soon\nNode 24\.1\.0 \(\/n\): fixes until X\nDeploy a newer Node: /,
    ],
  ],
  [
    "a Node that gets none",
    { node: { version: "20.1.0", path: "/n", fixes: { state: "ended", text: "no fixes since X" } } },
    { "node-fixes": "warning" },
    [
      "node-fixes",
      /^this version of Node\.js gets no more security fixes\n[^]*: no fixes since X\nDeploy a newer Node: /,
    ],
  ],
  [
    "a Node that came later",
    { node: { version: "99.1.0", path: "/n" } },
    { "node-fixes": "unknown" },
    ["node-fixes", /^Node 99\.1\.0 \(\/n\) is newer than this release/],
  ],
  [
    "a Node with less",
    { missingPieces: "no such piece" },
    { node: "failed" },
    ["node", /^the proxy works[^]*no such piece\nDeploy a Node version .*: v\d/],
  ],
  ...(
    [
      "files.key-exposed",
      "files.certificate-expires-soon",
      "files.certificate-not-yet-valid",
      "files.bad-certificate",
      "files.name-not-covered",
      "files.certificate-not-chosen",
    ] as const
  ).map((code): [string, Partial<Evidence>, Expected, [string, RegExp]] => [
    code,
    { configWarnings: [problem(code, "/k", "is odd")] },
    { tls: "failed" },
    ["tls", /\n\/k: is odd\n/],
  ]),
  ["another warning", { configWarnings: [bad] }, {}, ["config", /^\/etc\/x: cannot be read$/]],
  [
    "a warning of the whole config",
    { configWarnings: [{ ...bad, path: "" }] },
    {},
    ["config", /^cannot be read$/],
  ],
  [
    "a config that is refused",
    { configProblems: [bad], sockets: [], ...responses({ all: silent }) },
    {
      config: "failed",
      ...all(["ports", "server-name", "web-application", ...RESPONSES], "because config"),
    },
    ["config", /^the proxy refuses its config\n\/etc\/x: cannot be read\nLook at it\.$/],
  ],
  [
    "a config that is refused for a directory that has lost its files",
    {
      configProblems: [{ ...bad, path: "routes[0].action.directory (/srv/lost)" }],
      sockets: [],
      ...drift({ emptied: [{ at: "/srv/lost", what: "does not exist", fix: "Mount its disk" }] }),
      ...responses({ all: silent }),
    },
    {
      config: "failed",
      ...all(["ports", "server-name", "web-application", ...RESPONSES], "because config"),
    },
    ["config", /\(\/srv\/lost\): cannot be read\n\/srv\/lost: does not exist\nMount its disk$/],
  ],
  ["no units", without("units"), { proxy: "unknown" }],
  [
    "a proxy that is down",
    { units: { ...UNITS, proxy: proxyDown } },
    { proxy: "failed" },
    [
      "proxy",
      /\nportico\.service: failed, enabled\nsystemctl enable --now portico\.socket portico\.service;/,
    ],
  ],
  [
    "a proxy that does not start by itself",
    { units: { ...UNITS, proxy: { ...UNITS.proxy, enabled: false } } },
    { proxy: "failed" },
    ["proxy", /portico\.service: active, not enabled/],
  ],
  [
    "a socket that is down",
    { units: { ...UNITS, proxySocket: { ...UNITS.proxySocket, state: "inactive" } } },
    { proxy: "failed" },
  ],
  [
    "a proxy without a socket",
    { units: { proxy: UNITS.proxy } },
    {},
    ["proxy", /^portico\.service: active, enabled$/],
  ],
  [
    "a proxy that is masked",
    { units: { proxy: { ...proxyDown, load: "masked" } } },
    { proxy: "failed" },
    [
      "proxy",
      /portico\.service: masked, failed, enabled\nsystemctl unmask portico\.service && systemctl enable/,
    ],
  ],
  [
    "a proxy that is down, which explains what does not respond",
    { units: { ...UNITS, proxy: proxyDown }, sockets: [], ...responses({ all: silent }) },
    {
      proxy: "failed",
      ...all(["ports", "server-name", "web-application", ...RESPONSES], "because proxy"),
    },
  ],
  [
    "ports that are closed",
    { sockets: [], ...responses({ all: silent }) },
    {
      ports: "failed",
      ...all(["server-name", "web-application", ...RESPONSES], "because ports"),
    },
    ["ports", /^port 80 cannot be reached\n/],
  ],
  [
    "a proxy that is down, while something else responds",
    {
      units: { ...UNITS, proxy: proxyDown },
      ...responses({ web: silent, fileServer: errorPage(404), webdav: errorPage(502) }),
    },
    {
      proxy: "failed",
      ...all(
        [
          ...["server-name", "web-application", ...WEB],
          ...["response: file server daemon", "response: WebDAV daemon"],
        ],
        "because proxy",
      ),
    },
  ],
  [
    "a config that is refused, while something else responds",
    { configProblems: [bad], ...responses({ fileServer: errorPage(404), webdav: errorPage(502) }) },
    {
      config: "failed",
      ...all(["response: file server daemon", "response: WebDAV daemon"], "because config"),
    },
  ],
  [
    "a page of the default server that is missing",
    responses({ default: response(500, { server: "portico/0.1.0" }) }),
    { "response: default server": "failed" },
  ],
  ["sockets that were not looked at", without("sockets"), { ports: "unknown" }],
  [
    "a socket for the host itself",
    {
      sockets: [...HEALTHY.sockets!, { address: "127.0.0.1", port: 8000 }, { address: "::1", port: 3306 }],
    },
    {},
    ["ports", /^listening for everyone: 80$/],
  ],
  [
    "ports in order, each once",
    { sockets: [80, 443, 22, 443, 9100].map((port) => ({ address: "0.0.0.0", port })) },
    {},
    ["ports", /^listening for everyone: 22, 80, 443, 9100$/],
  ],
  ...[3306, 8000, 8080, 8082].map((port): [string, Partial<Evidence>, Expected, [string, RegExp]] => [
    `port ${port} for everyone`,
    {
      deployment: deployed(),
      sockets: [...HEALTHY.sockets!, { address: "0.0.0.0", port }, { address: "0:0:0:0:0:0:0:0", port }],
    },
    { ports: "failed" },
    ["ports", new RegExp(`^port ${port} must be reachable on localhost only\n`)],
  ]),
  [
    "other ports that the deployment names",
    {
      deployment: deployed({ network: { addresses: [ADDRESS], loopbackPorts: [9000] } }),
      sockets: [80, 8000, 9000].map((port) => ({ address: "0.0.0.0", port })),
    },
    { ports: "failed" },
    ["ports", /^port 9000 must/],
  ],
  [
    "a port of the proxy's own among them",
    {
      deployment: deployed({ network: { addresses: [ADDRESS], loopbackPorts: [80] } }),
    },
    {},
  ],
  [
    "a daemon's port behind our firewall",
    {
      sockets: [...HEALTHY.sockets!, { address: "0.0.0.0", port: 8000 }],
      deployment: deployed({ network: { addresses: [ADDRESS], loopbackPorts: [8000] } }),
      units: { ...UNITS, firewall: { ...UNITS.proxy, name: "firewall.service" } },
    },
    {},
  ],
  [
    "a daemon's port, the firewall down",
    {
      sockets: [...HEALTHY.sockets!, { address: "0.0.0.0", port: 8000 }],
      deployment: deployed({ network: { addresses: [ADDRESS], loopbackPorts: [8000] } }),
      units: { ...UNITS, firewall: { ...UNITS.proxy, name: "firewall.service", state: "inactive" } },
    },
    { ports: "failed" },
  ],
  [
    "a port that is closed from elsewhere",
    { openPorts: new Map([[80, false]]) },
    { ports: "failed" },
    ["ports", /\nopen from here: none\n/],
  ],
  [
    "a daemon's port that is open from elsewhere",
    {
      deployment: deployed(),
      openPorts: new Map([
        [80, true],
        [8000, true],
        [8082, false],
      ]),
    },
    { ports: "failed" },
    ["ports", /^port 8000 must [^]*\nopen from here: 80, 8000\n/],
  ],
  [
    "a name without an address",
    { unresolved: "x.example", ...responses({ all: silent }) },
    { ports: "failed", ...all(["server-name", "web-application", ...RESPONSES], "because ports") },
    ["ports", /^x\.example has no address/],
  ],
  [
    "an address that no interface has",
    {
      publicAddresses: [],
      ownAddresses: new Set(["10.0.0.5", "127.0.0.1", "::1", "fe80::1", "fd00::127.0.0.1", "::1:1"]),
    },
    { addresses: "failed", hairpin: "unknown" },
    [
      "addresses",
      /198\.41\.0\.4: no interface has it; the host has: 10\.0\.0\.5, fd00::127\.0\.0\.1, ::1:1\n/,
    ],
  ],
  [
    "the only address that is lost, and nothing responds",
    { publicAddresses: [], ownAddresses: new Set(["127.0.0.1"]), ...responses({ all: silent }) },
    {
      addresses: "failed",
      hairpin: "unknown",
      ...all(["server-name", "web-application", ...RESPONSES], "because addresses"),
    },
    [
      "addresses",
      /: no interface has it; the host has: none\n.* an address that the host has: none \(ip address show\)\.$/,
    ],
  ],
  [
    "an address that a router translates",
    {
      ownAddresses: new Set(["10.0.0.5"]),
      ...publicAddress({ outcome: response(200), translatedTo: "10.0.0.5" }),
    },
    {},
    ["addresses", /translates it to 10\.0\.0\.5/],
  ],
  ["no address is known", { ownAddresses: new Set(["127.0.0.1"]), deployment: deployed() }, {}],
  [
    "another name than the config's",
    responses({ web: errorPage(404, "portico/0.1.0"), media: errorPage(404, "portico/0.1.0") }),
    {
      "server-name": "failed",
      ...all(["response: media file", ...WEB], "because server-name"),
    },
    ["server-name", /server names in the config: 198\.41\.0\.4\n.*\(198\.41\.0\.4\), deploy/],
  ],
  [
    "another name for the application",
    responses({ web: errorPage(404, "portico/0.1.0") }),
    { "server-name": "failed", ...all(WEB, "because server-name") },
  ],
  [
    "another name for the media",
    responses({ media: errorPage(404, "portico/0.1.0") }),
    { "server-name": "failed", "response: media file": "because server-name" },
    ["server-name", /^the server name in the proxy config/],
  ],
  [
    "a config without a name",
    {
      config: {
        ...HEALTHY.config,
        virtualServers: HEALTHY.config.virtualServers.map((one) => ({ ...one, serverNames: ["_"] })),
      },
      ...responses({ media: errorPage(404, "portico/0.1.0") }),
    },
    { "server-name": "failed", "response: media file": "because server-name" },
    ["server-name", /\nserver names in the config: none\n/],
  ],
  [
    "media that fail, and one that others cannot read",
    { ...trees(violation), ...responses({ media: response(500) }) },
    { "media-permissions": "failed", "response: media file": "failed" },
  ],
  [
    "another media path",
    responses({ media: errorPage(404) }),
    { "server-name": "failed", "response: media file": "because server-name" },
    ["server-name", /the media path in the config does not match/],
  ],
  [
    "a media file that is forbidden",
    responses({ media: errorPage(403) }),
    { "media-permissions": "failed", "response: media file": "because media-permissions" },
    [
      "media-permissions",
      /: 403, .*\nRead the path in the proxy's error log, and make it readable with chmod\.$/,
    ],
  ],
  [
    "a media file that others cannot read",
    trees(violation),
    { "media-permissions": "failed" },
    ["media-permissions", /\n\/opt\/sync\/media\/a\.png: others lack read\nchmod 1$/],
  ],
  [
    "a link of the application's user in place of the media",
    { links: [{ directory: "/opt/sync/media", uid: 42, target: "/run/credentials/portico.service" }] },
    { "media-permissions": "failed" },
    [
      "media-permissions",
      /\n\/opt\/sync\/media: a link of user 42 leads to \/run\/credentials\/portico\.service\nRemove the link\. /,
    ],
  ],
  [
    "ten of many files",
    trees(...Array.from({ length: 11 }, (_, i) => ({ ...violation, path: `/m${i}`, fix: `chmod ${i}` }))),
    { "media-permissions": "failed" },
    ["media-permissions", /\n\/m9: others lack read\nchmod 0; [^/]*; chmod 9$/],
  ],
  [
    "an avatar that others cannot read",
    trees({ ...violation, code: "avatar" }),
    { avatar: "failed" },
    ["avatar", /chmod 1$/],
  ],
  [
    "an avatar that is forbidden",
    { ...trees({ ...violation, code: "avatar" }), ...responses({ media: errorPage(403) }) },
    { avatar: "failed", "response: media file": "because avatar" },
  ],
  [
    "a directory above both",
    trees({ ...violation, path: "/opt/sync", kind: "directory" }),
    { "media-permissions": "failed", avatar: "because media-permissions" },
  ],
  [
    "a directory above the media only",
    trees({ ...violation, path: "/opt/sync/media", kind: "directory" }),
    { "media-permissions": "failed" },
  ],
  [
    "a directory that is only named like the way to the avatars",
    trees({ ...violation, path: "/opt/sync/ava", kind: "directory" }),
    { "media-permissions": "failed" },
  ],
  [
    "media whose owner's process does not respond",
    {
      trees: { ...HEALTHY.trees!, looked: 0, unseen: [{ path: "/opt/sync/media", why: "(no response)" }] },
    },
    all(["media-permissions", "avatar", "directories"], "unknown"),
    ["media-permissions", /^\/opt\/sync\/media: \(no response\)$/],
  ],
  [
    "media and directories that were not looked at",
    without("trees"),
    all(["media-permissions", "avatar", "directories"], "unknown"),
  ],
  [
    "the directory of a static route that others cannot read",
    trees({ ...violation, path: "/usr/share/portico/default/index.html", code: "directories" }),
    { directories: "failed" },
    [
      "directories",
      /^a file that a static route serves, .*\n\/usr\/share\/portico\/default\/index\.html: others lack read/,
    ],
  ],
  [
    "the directory of a static route that is not there",
    { trees: { ...HEALTHY.trees!, unseen: [{ path: "/usr/share/portico/default", why: "(2: none)" }] } },
    { directories: "unknown" },
    ["directories", /^\/usr\/share\/portico\/default: \(2: none\)$/],
  ],
  [
    "the FastCGI variant",
    web({ command: "/opt/web.sh Start-FastCGI" }),
    { "web-application": "failed" },
    ["web-application", /ExecStart=\/opt\/web\.sh Start-FastCGI\n/],
  ],
  [
    "a web application that is down",
    {
      ...web({ state: "failed" }),
      ...responses({ web: errorPage(502) }),
    },
    { "web-application": "failed", ...all(WEB.slice(0, 1), "because web-application") },
    [
      "web-application",
      /\nweb\.service: failed\n.* on http:\/\/127\.0\.0\.1:8000 and speak HTTP; its log has the details\. systemctl start web\.service$/,
    ],
  ],
  [
    "a web application whose unit is down, while something responds",
    web({ state: "inactive" }),
    { "web-application": "failed" },
    [
      "web-application",
      /^web\.service does not run\nweb\.service: inactive\nsystemctl start web\.service; if that fails: /,
    ],
  ],
  ["a web application that starts", web({ state: "activating" }), {}],
  [
    "a web application that is up and does not respond",
    responses({ web: errorPage(502) }),
    { "web-application": "failed", ...all(WEB.slice(0, 1), "because web-application") },
    ["web-application", /\nweb\.service: active\n.*; its log has the details\.$/],
  ],
  [
    "a web application without an upstream",
    {
      responses: responsesOf(HEALTHY.config, { web: errorPage(502) }).map(({ row, ...rest }) => {
        const { upstream: _, ...other } = row;
        return { ...rest, row: other, checked: judge(other, rest.outcome) };
      }),
    },
    { "web-application": "failed", ...all(WEB.slice(0, 1), "because web-application") },
    ["web-application", /Make the daemon listen on its upstream's address and speak HTTP/],
  ],
  [
    "a web application without a unit",
    { units: { proxy: UNITS.proxy }, ...responses({ web: errorPage(502) }) },
    { "web-application": "failed", ...all(WEB.slice(0, 1), "because web-application") },
    ["web-application", /; its log has the details\.$/],
  ],
  [
    "a web application that does not know the page",
    responses({ web: response(404) }),
    { "web-application": "failed", ...all(WEB.slice(0, 1), "because web-application") },
    [
      "web-application",
      /^the web application has no page at \/sync\/: SITE_ROOT .*\n[^]*\nSet SITE_ROOT as in /,
    ],
  ],
  [
    "an upload that fails after login",
    {
      ...settings({ deviations: [{ ...deviation, found: "http://b/sync" }] }),
      ...responses({ web: response(302, { location: "http://b/sync/accounts/login/" }) }),
    },
    { "public-urls": "failed", ...all(WEB.slice(0, 1), "because public-urls") },
    [
      "public-urls",
      /\nSERVICE_URL is http:\/\/b\/sync \(\/opt\/daemon\.conf:2\), and should be http:\/\/a\/sync\nRun `portico settings apply`/,
    ],
  ],
  [
    "the file server's URL",
    settings({ deviations: [{ ...deviation, item: "FILE_SERVER_ROOT" }] }),
    { "public-urls": "failed" },
    ["public-urls", /FILE_SERVER_ROOT is not set /],
  ],
  [
    "a URL in the database",
    settings({ deviations: [{ ...deviation, where: "stored in the database" }] }),
    { "public-urls": "failed" },
    ["public-urls", /web settings/],
  ],
  [
    "a URL in the database, and another in a file",
    settings({ deviations: [deviation, { ...deviation, where: "stored in the database" }] }),
    { "public-urls": "failed" },
    ["public-urls", /web settings/],
  ],
  [
    "a setting of no row of the deployment",
    settings({ deviations: [{ item: "SITE_ROOT", wanted: "/sync/", where: "/opt/settings.py" }] }),
    { settings: "failed" },
    ["settings", /SITE_ROOT is not set/],
  ],
  [
    "settings that cannot be read",
    settings({ problems: [bad] }),
    { "public-urls": "unknown", settings: "failed" },
    ["settings", /\n\/etc\/x: cannot be read\nLook at it\.$/],
  ],
  ["settings that were not looked at", without("settings"), all(["public-urls", "settings"], "unknown")],
  [
    "no public address",
    { publicAddresses: [] },
    { hairpin: "unknown" },
    ["hairpin", /No public address is known/],
  ],
  [
    "a router without NAT loopback",
    {
      ...publicAddress(),
      publicAddresses: [
        ...publicAddress().publicAddresses!,
        { address: "198.41.0.5", own: false, outcome: response(200) },
      ],
    },
    { hairpin: "failed" },
    [
      "hairpin",
      /^the router lacks NAT loopback \(hairpinning\)\n198\.41\.0\.4: failed: ECONNREFUSED\n198\.41\.0\.5: responds\nfrom here, by another address: HEAD /,
    ],
  ],
  [
    "a name that leads elsewhere, of a host with a public address",
    publicAddress({ address: "198.41.0.9", name: "files.example.org" }),
    { hairpin: "failed" },
    [
      "hairpin",
      /^files\.example\.org resolves to an address that does not belong to the host\n198\.41\.0\.9: failed: ECONNREFUSED\nfrom here[^]*\nSet the A and AAAA records of files\.example\.org to/,
    ],
  ],
  [
    "a name that leads elsewhere, of a host whose public address is known",
    {
      publicAddresses: [
        { address: ADDRESS, own: false, outcome: response(200) },
        { address: "198.41.0.9", own: false, outcome: silent, name: "files.example.org" },
      ],
      ownAddresses: new Set(["10.0.0.5", "2606:4700::5", ADDRESS]),
    },
    { hairpin: "failed" },
    ["hairpin", /^files\.example\.org resolves to an address that does not belong to the host\n/],
  ],
  [
    "a name that leads elsewhere by IPv6",
    {
      ...publicAddress({ address: "2606:4700::9", name: "files.example.org" }),
      ownAddresses: new Set(["10.0.0.5", "2606:4700::5"]),
      deployment: deployed(),
    },
    { hairpin: "failed" },
    [
      "hairpin",
      /^files\.example\.org resolves to an address that does not belong to the host\n2606:4700::9: /,
    ],
  ],
  [
    "a name that leads to the router, as far as can be seen",
    {
      ...publicAddress({ address: "198.41.0.9", name: "files.example.org" }),
      ownAddresses: new Set(["10.0.0.5", "2606:4700::5"]),
      deployment: deployed(),
    },
    { hairpin: "failed" },
    [
      "hairpin",
      /^the router lacks NAT loopback[^]* Check that 198\.41\.0\.9, the address of files\.example\.org, is the router's\.$/,
    ],
  ],
  [
    "a provider's NAT",
    publicAddress({ translatedTo: "10.0.0.5" }),
    { hairpin: "unknown" },
    ["hairpin", /Check from outside/],
  ],
  [
    "a provider's NAT, and another address that nobody translates",
    {
      publicAddresses: [
        ...publicAddress({ translatedTo: "10.0.0.5" }).publicAddresses!,
        { address: "198.41.0.5", own: false, outcome: silent },
      ],
    },
    { hairpin: "failed" },
  ],
  [
    "an address that is lost",
    { ...publicAddress(), ownAddresses: new Set(["10.0.0.5"]) },
    { addresses: "failed", hairpin: "because addresses" },
  ],
  [
    "nothing responds, neither inside nor outside",
    { ...publicAddress(), sockets: [], ...responses({ all: silent }) },
    {
      ports: "failed",
      ...all(["server-name", "web-application", "hairpin", ...RESPONSES], "because ports"),
    },
  ],
  [
    "nothing responds, and nobody knows why",
    { ...publicAddress(), ...responses({ all: silent }) },
    {
      ...all(["web-application", "hairpin"], "unknown"),
      ...all(RESPONSES, "failed"),
    },
    ["hairpin", /no response from the public or the internal address/],
  ],
  [
    "a request that was not made",
    { responses: responsesOf(HEALTHY.config, {}, {}) },
    { "response: media file": "unknown" },
    ["response: media file", /no image file was found/],
  ],
  [
    "another program has a port",
    {
      processes: { silentWorkers: [], strangers: [{ ...finding, what: "nginx (pid 812) listens there" }] },
      ...responses({ redirect: errorPage(404), web: errorPage(404) }),
    },
    {
      proxy: "failed",
      "server-name": "because proxy",
      "response: application over http": "because proxy",
    },
    ["proxy", /another program has a port of the proxy[^]*nginx \(pid 812\) listens there/],
  ],
  [
    "the main process hangs",
    { processes: { silentMaster: "no response within 5 s", silentWorkers: [], strangers: [] } },
    { proxy: "failed" },
    [
      "proxy",
      /does not respond[^]*its main process \d+ does not respond: no response within 5 s[^]*systemctl restart/,
    ],
  ],
  [
    "a worker hangs",
    {
      processes: { silentWorkers: [812], strangers: [] },
      ...responses({ all: failure("ETIMEDOUT") }),
    },
    {
      proxy: "failed",
      ...all(["server-name", "web-application", ...RESPONSES], "because proxy"),
    },
    ["proxy", /worker 812 does not respond[^]*replaces such a worker after 30 s/],
  ],
  [
    "a daemon that is down, and its unit does not run",
    {
      ...responses({ fileServer: errorPage(502) }),
      ...drift({ units: [finding] }),
      units: { ...UNITS, daemons: [...UNITS.daemons, { ...UNITS.daemons[0]!, state: "inactive" }] },
    },
    { units: "failed", "response: file server daemon": "because units" },
  ],
  [
    "no response, because processes of the proxy were stopped",
    {
      ...responses({ fileServer: failure("ETIMEDOUT") }),
      ...drift({ units: [{ ...finding, stalls: true }] }),
    },
    { units: "failed", "response: file server daemon": "because units" },
  ],
  [
    "a daemon that is down",
    responses({ fileServer: errorPage(502) }),
    { "response: file server daemon": "failed" },
    [
      "response: file server daemon",
      /^the file server daemon does not respond at http:\/\/127\.0\.0\.1:8082[^]*\nIt should be: a response from the daemon/,
    ],
  ],
  [
    "the wrong Server field everywhere",
    responses({ web: withVersion("web"), fileServer: withVersion("fileServer") }),
    {
      "response: application's Server field": "failed",
      "response: file server daemon": "because response: application's Server field",
    },
  ],
]);

test.each(CASES)("%s", (_what, seen, expected, ...message) => {
  const rows = diagnose({ ...HEALTHY, ...seen });
  expect(notOk(rows)).toEqual(expected);
  for (const [id, words] of message) expect(said(rows, id)).toMatch(words);
  for (const { status, fix, cause, because } of rows) {
    const hasFix = status === "failed" || status === "warning";
    expect([fix !== undefined, cause !== undefined]).toEqual([hasFix, hasFix]);
    expect(because !== undefined).toBe(status === "explained");
  }
});

test("what each row asks, and the cause and the fix of all that is found, in whole words", () => {
  const told = new Map<string, string[]>();
  const before = new Set<string>();
  for (const [, seen] of CASES)
    for (const { id, title, status, cause, evidence, fix } of diagnose({ ...HEALTHY, ...seen })) {
      if (id.startsWith("response: ")) continue;
      const lines = told.get(id) ?? [`${id}: ${title}`];
      told.set(id, lines);
      const line = status === "unknown" ? `  ? ${evidence.join(" | ")}` : `  ${cause}; fix: ${fix}`;
      // What other rows have said already is left out.
      if ((status === "unknown" || cause !== undefined) && !before.has(line)) lines.push(line);
      before.add(line);
    }
  const text = [...told.values()].flat().join("\n");
  expect(text.replace(/(?<=tested with: )v\d[v\d., ]*\d/, "…")).toMatchInlineSnapshot(`
"activation: The last activation is complete, and can be undone
  ? This can only be seen on the host: run \`portico doctor\` there.
  ? This cannot be determined: there is no deployment document.
  ? This could not be determined: the host gave no answer, or this needs root.
  an activation was cut off, or its store is damaged; fix: mend it
files: Every delivered file is as delivered
  files are not as they were delivered; fix: mend it
  files are not as they were delivered; fix: fix 0; fix 1
units: Units are loaded as delivered, and start at boot
  units are not as they were delivered; fix: mend it
config: The proxy's config is valid
  ? The files that the config names can only be seen on the host: run \`portico doctor\` there.
  the proxy refuses its config; fix: Look at it.
  the proxy refuses its config; fix: Mount its disk
proxy: The proxy is running, and starts at boot
  ? The state of the units can only be seen on the host: run \`portico doctor\` there.
  ? The state of the units cannot be determined: there is no deployment document.
  the proxy does not run, or is not enabled; fix: systemctl enable --now portico.socket portico.service; if that fails: journalctl -u portico.service
  ? The state of the units could not be determined: the host gave no answer, or this needs root.
  the proxy does not run, or is not enabled; fix: systemctl unmask portico.service && systemctl enable --now portico.service; if that fails: journalctl -u portico.service
  another program has a port of the proxy; fix: mend it
  the main process of the proxy does not respond to commands; fix: systemctl restart portico.service; journalctl -u portico.service
  workers of the proxy hang, and their clients wait; fix: The main process replaces such a worker after 30 s. If it comes again: systemctl restart portico.service; journalctl -u portico.service
running: The proxy runs the installed release
  the proxy runs another release or config than the installed one; fix: mend it
  ? The running proxy cannot be queried.
tls: The key is private, and the certificate covers the names and does not expire soon
  ? Key and certificate can only be seen on the host: run \`portico doctor\` there.
  the private key is exposed, or the certificate lacks a name or is not valid for long; fix: Allow only the owner to read and write the file.
  the private key is exposed, or the certificate lacks a name or is not valid for long; fix: Renew the certificate, then run \`systemctl reload portico\`.
  the private key is exposed, or the certificate lacks a name or is not valid for long; fix: Correct the host's clock, or use a certificate that is valid now.
  the private key is exposed, or the certificate lacks a name or is not valid for long; fix: Use certificates in PEM form, with the server's certificate first.
  the private key is exposed, or the certificate lacks a name or is not valid for long; fix: Use a certificate with the name among its subject alternative names, or remove the name from the config.
  the private key is exposed, or the certificate lacks a name or is not valid for long; fix: Remove the certificate, or list it before the other certificate; the first certificate of a listener is the default.
logs: The logs can be written
  logs are not written to their files; fix: mend it
space: The disks have free space
  a file system is full; fix: mend it
addresses: The host has its addresses
  ? Addresses of the host can only be seen on the host: run \`portico doctor\` there.
  the host lacks an address that it was deployed for; fix: Assign the address to the host, or deploy with an address that the host has: 10.0.0.5, fd00::127.0.0.1, ::1:1 (ip address show).
  the host lacks an address that it was deployed for; fix: Assign the address to the host, or deploy with an address that the host has: none (ip address show).
  the host lacks an address that it was deployed for; fix: Assign the address to the host, or deploy with an address that the host has: 10.0.0.5 (ip address show).
firewall: The packet filter is loaded as delivered
  the packet filter is not loaded as it was delivered; fix: mend it
  ? why
ports: Exactly the right ports are open
  port 80 cannot be reached; fix: Start the proxy; from outside, check that the firewall and the router let the ports through.
  ? The host's ports were not checked.
  port 3306 must be reachable on localhost only; fix: Make the daemon listen on 127.0.0.1 only, or deploy the firewall.
  port 8000 must be reachable on localhost only; fix: Make the daemon listen on 127.0.0.1 only, or deploy the firewall.
  port 8080 must be reachable on localhost only; fix: Make the daemon listen on 127.0.0.1 only, or deploy the firewall.
  port 8082 must be reachable on localhost only; fix: Make the daemon listen on 127.0.0.1 only, or deploy the firewall.
  port 9000 must be reachable on localhost only; fix: Make the daemon listen on 127.0.0.1 only, or deploy the firewall.
  x.example has no address: the name does not resolve here; fix: Create the DNS record, or set the host's address with --connect.
server-name: Requests reach their virtual server and route
  the server name in the proxy config is not the host address or domain used in the request, or the config is not enabled; fix: Set the host's address or name to the one that clients use (198.41.0.4), deploy, and reload the proxy.
  the server name in the proxy config is not the host address or domain used in the request, or the config is not enabled, or the media path in the config does not match the installation; fix: Set \`installDirectory\` (or \`mediaDirectory\`) to where the application is installed, and deploy.
media-permissions: No 403 on media
  the media file or one of its directories is not readable by others; fix: chmod 1
  the media file is not world readable, or one of its directories lacks read and execute permission for others; the error log names it; fix: Read the path in the proxy's error log, and make it readable with chmod.
  the proxy does not follow a symbolic link on the path of a served directory; fix: Remove the link. To serve its target, use the path of the target in the route, or set symlinks to "anywhere".
  the media file or one of its directories is not readable by others; fix: chmod 0; chmod 1; chmod 2; chmod 3; chmod 4; chmod 5; chmod 6; chmod 7; chmod 8; chmod 9
  ? /opt/sync/media: (no response)
  ? Whether other users can read /opt/sync/media could not be determined: the host gave no answer, or this needs root.
avatar: No damaged avatar image
  the avatar path is not world readable; fix: chmod 1
  ? Whether other users can read /opt/sync/avatars could not be determined: the host gave no answer, or this needs root.
web-application: 302 from the application path
  the fastcgi start variant is used in the service unit; fix: Make the unit's ExecStart end in \`start\`, then run systemctl daemon-reload and restart it.
  the web application daemon and the proxy do not work together: check that the fastcgi start variant is not used in the service unit, and that it runs and listens on http://127.0.0.1:8000; fix: Make the daemon listen on http://127.0.0.1:8000 and speak HTTP; its log has the details. systemctl start web.service
  web.service does not run; fix: systemctl start web.service; if that fails: journalctl -u web.service
  the web application daemon and the proxy do not work together: check that the fastcgi start variant is not used in the service unit, and that it runs and listens on http://127.0.0.1:8000; fix: Make the daemon listen on http://127.0.0.1:8000 and speak HTTP; its log has the details.
  the web application daemon and the proxy do not work together: check that the fastcgi start variant is not used in the service unit, and that it runs and listens on its upstream's address; fix: Make the daemon listen on its upstream's address and speak HTTP; its log has the details.
  the web application has no page at /sync/: SITE_ROOT is not set to \`/sync/\`; fix: Set SITE_ROOT as in /usr/share/portico/application-settings, and restart the web application.
  ? No response for this row was received.
public-urls: Upload and view work after login
  items of the application's settings are not as deployed; fix: Run \`portico settings apply\`, then restart the daemons that read the files.
  items of the application's settings are not as deployed; fix: Change the items in the application's web settings, which take priority over the files; then restart the application.
  ? /etc/x: cannot be read
  ? The application's settings could not be determined: the host gave no answer, or this needs root.
directories: Other users can read the files of static routes
  ? Whether other users can read /opt/sync/media and /usr/share/portico/default can only be seen on the host: run \`portico doctor\` there.
  ? Whether other users can read /usr/share/portico/default could not be determined: the host gave no answer, or this needs root.
  a file that a static route serves, or a directory on its way, is not readable by others; fix: chmod 1
  ? /usr/share/portico/default: (2: none)
settings: The application's other settings are as deployed
  the application's settings cannot be read; fix: Look at it.
hairpin: Clients inside the LAN reach the front end
  ? No public address is known: set it with --public-address.
  the router lacks NAT loopback (hairpinning); fix: Turn NAT loopback on in the router, or make the name resolve to the internal address inside the LAN (split DNS). If it does not work from outside either, the router lacks the forwards of ports 80 and 443.
  files.example.org resolves to an address that does not belong to the host; fix: Set the A and AAAA records of files.example.org to the host's public addresses only.
  the router lacks NAT loopback (hairpinning); fix: Turn NAT loopback on in the router, or make the name resolve to the internal address inside the LAN (split DNS). If it does not work from outside either, the router lacks the forwards of ports 80 and 443. Check that 198.41.0.9, the address of files.example.org, is the router's.
  ? 198.41.0.4: failed: ECONNREFUSED. Check from outside: portico doctor --elsewhere.
  ? There is no response from the public or the internal address.
upstreams: Every server of an upstream with several servers gets requests
  Upstream web: its server http://b:1 is down; fix: start the program that should listen on http://b:1
  a command has drained servers; fix: portico upstreams undrain web http://b:1
  Upstream web: its server http://a:1 is drained; fix: portico upstreams undrain web http://a:1; portico upstreams undrain web http://b:1
  Upstream web: its server http://a:1 – requests failed at all servers; fix: look at the application's own log; give the upstream \`health\`, so that checks decide which servers are up
  Upstream web: its server http://b:1 is down; fix: portico upstreams undrain web http://a:1; start the program that should listen on http://b:1
client-certificates: Clients with a valid certificate come in
  The list of revoked certificates of CN=Clients ended 1 day ago: none of its clients comes in; fix: Renew its files on the host; Portico then loads them without a reload.
pauses: No command makes the proxy refuse requests
  a command makes the proxy refuse requests; fix: portico maintenance off
  a command makes the proxy refuse requests; fix: Wait until the command has ended.
health: The health listener says that the proxy is ready
  the proxy is stopping, no worker accepts connections, or a worker does not respond; fix: Read the log of the proxy: journalctl -u portico.service
  no response from the address of the health listener; fix: Read the log of the proxy: journalctl -u portico.service
  another program responds at the address of the health listener; fix: Stop the program that listens there (ss -ltnp 'sport = :9180' shows it), or set another port of healthListener.
memory: The proxy's memory suffices
  the kernel killed workers because memory ran out, and their connections were cut; the master started new workers; fix: Allow the proxy more memory (memoryMax of its ProxyService, MemoryMax= in its unit), or fewer clients (limits in its config). A restart resets the count.
node-fixes: Node gets fixes
  security fixes for this version of Node.js end soon; fix: Deploy a newer Node: NodeRuntime.pinned(), with \`version\` and \`integrity\` to choose a version, or upgrade Node.js on the host.
  this version of Node.js gets no more security fixes; fix: Deploy a newer Node: NodeRuntime.pinned(), with \`version\` and \`integrity\` to choose a version, or upgrade Node.js on the host.
  ? Node 99.1.0 (/n) is newer than this release of Portico.
node: Node has everything that the proxy uses
  the proxy works, but needs more processor time and memory than necessary; fix: Deploy a Node version that portico is tested with: …."
`);
});

test("in TLS mode the redirect is asked as well", () => {
  const config = configOf(siteConfig({ mode: "tls", host: ADDRESS }));
  const evidence = { ...HEALTHY, config, sockets: [80, 443].map((port) => ({ address: "0.0.0.0", port })) };
  const seen = (others: Parameters<typeof responsesOf>[1]) =>
    notOk(diagnose({ ...evidence, responses: responsesOf(config, others) }));
  expect(seen({})).toEqual({});
  expect(seen({ redirect: response(200) })).toEqual({ "response: redirect to https": "failed" });
  expect(seen({ redirect: errorPage(404) })).toEqual({
    "server-name": "failed",
    "response: redirect to https": "because server-name",
  });
});

test("ports that are closed from elsewhere, of several", () => {
  const config = configOf(siteConfig({ mode: "tls", host: ADDRESS }));
  const ports = (...open: boolean[]) => {
    const openPorts = new Map([80, 443].map((port, i) => [port, open[i]!]));
    return diagnose({ ...HEALTHY, config, responses: responsesOf(config), openPorts }).find(
      ({ id }) => id === "ports",
    )!;
  };
  expect(ports(true, true)).toMatchObject({ status: "ok", evidence: ["open from here: 80, 443"] });
  expect(ports(true, false).cause).toBe("port 443 cannot be reached");
  expect(ports(false, false).cause).toBe("port 80 and 443 cannot be reached");
  const [http, https] = config.listeners;
  const published = { ...config, listeners: [http!, { ...https!, publishedPort: 8443 }] };
  const byClients = (isOpen: boolean) => {
    const openPorts = new Map([
      [80, true],
      [8443, isOpen],
    ]);
    const rows = diagnose({ ...HEALTHY, config: published, responses: [], openPorts });
    return rows.find(({ id }) => id === "ports")!;
  };
  expect(byClients(true).status).toBe("ok");
  expect(byClients(false).cause).toBe("port 8443 cannot be reached");
});

test("on the host itself, a listener's own port counts, and not where clients find it", () => {
  const [listener] = HEALTHY.config.listeners;
  const config = { ...HEALTHY.config, listeners: [{ ...listener!, port: 8000, publishedPort: 80 }] };
  const rows = diagnose({ ...HEALTHY, config, sockets: [{ address: "0.0.0.0", port: 8000 }] });
  expect(rows.find(({ id }) => id === "ports")).toMatchObject({ status: "ok" });
});

test("rows are in the order in which one explains another, each with a title", () => {
  const rows = diagnose(HEALTHY);
  expect(rows.map(({ id }) => id)).toEqual([
    ...["activation", "files", "units", "config", "proxy", "running", "tls", "logs", "space", "addresses"],
    ...["firewall", "ports", "server-name", "media-permissions", "avatar", "web-application", "public-urls"],
    ...["directories", "settings", "hairpin", ...RESPONSES],
  ]);
  expect(new Set(rows.map(({ title }) => title)).size).toBe(rows.length);
  expect(HEALTHY.responses.map(({ row }) => asExpected(row))).toHaveLength(RESPONSES.length);
});

test("without a readable config there are only rows that need none", () => {
  expect(unreadable([bad, bad], undefined)).toEqual([
    {
      id: "config",
      title: "The proxy's config is valid",
      status: "failed",
      cause: "the config cannot be read",
      evidence: ["/etc/x: cannot be read", "/etc/x: cannot be read"],
      fix: "Look at it.",
    },
  ]);
  const rows = unreadable([bad], { ...HEALTHY.drift!, files: [finding] });
  expect(rows.map(({ id, status }) => [id, status])).toEqual([
    ["activation", "ok"],
    ["files", "failed"],
    ["units", "ok"],
    ["config", "failed"],
  ]);
});
