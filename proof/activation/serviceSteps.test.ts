import {
  formatStep,
  serviceSteps,
  type Situation,
  type StaleState,
  type WantedUnit,
} from "../../src/host/activation/serviceSteps.js";
import type { UnitStatus } from "../../src/host/activation/systemctl.js";
import { daemonsOf } from "../../src/applications/index.js";
import { previewOf } from "../../src/host/activation/transition.js";
import type { FileRole } from "../../src/model/index.js";

/**
 * Which change concerns which service, and in which order (service 2.5 and 2.6). `-` stands for a unit that is not
 * running.
 */
const SERVICES = {
  proxy: { service: "portico.service", socket: "portico.socket" },
  daemons: daemonsOf({ webApplication: "web.service", fileServer: "files.service", webdav: "dav.service" }),
  firewall: "firewall.service",
  keepalived: "address.service",
};
const UNITS = [
  "web.service",
  "files.service",
  "dav.service",
  "firewall.service",
  "address.service",
  "portico.service",
  "portico.socket",
];

interface Case {
  readonly services?: Situation["services"];
  readonly changed?: Readonly<Record<string, FileRole>>;
  readonly settings?: readonly ("network-daemon" | "web-application" | "file-server")[];
  readonly domainOnly?: boolean;
  readonly reloadable?: boolean;
  readonly now?: Readonly<Record<string, Partial<UnitStatus>>>;
  readonly wanted?: Readonly<Record<string, WantedUnit>>;
  readonly stale?: Partial<StaleState>;
}

function situationOf(given: Case): Situation {
  const { services = SERVICES, changed = {}, settings = [] } = given;
  const { domainOnly = false, reloadable = false, now = {}, wanted = {}, stale } = given;
  const running: UnitStatus = {
    known: true,
    masked: false,
    active: true,
    unsettled: false,
    failed: false,
    enabled: true,
  };
  return {
    services,
    changed: Object.entries(changed).map(([path, role]) => ({ path, role })),
    settings: new Set(settings),
    ...{ domainOnly, reloadable },
    now: new Map([...UNITS, ...Object.keys(now)].map((unit) => [unit, { ...running, ...now[unit] }])),
    wanted: new Map([
      ...UNITS.map((unit): [string, WantedUnit] => [unit, { active: true }]),
      ...Object.entries(wanted),
    ]),
    stale: stale && { units: new Set<string>(), manager: false, proxy: "nothing", ...stale },
  };
}

function stepsOf(given: Case): string[] {
  return serviceSteps(situationOf(given)).map((step) =>
    formatStep(step)
      .replace(/^systemctl /, "")
      .replaceAll(".service", ""),
  );
}

const OFF = { active: false, enabled: false } as const;

test.each<[string, Case, string[]]>([
  ["nothing", {}, []],
  [
    "the proxy's config, while it crashes and starts again",
    {
      changed: { "/etc/p.json": "config" },
      now: { "portico.service": { active: true, unsettled: true } },
    },
    ["stop portico", "write files", "start portico"],
  ],
  [
    "the proxy's config, while it waits to be started again",
    {
      changed: { "/etc/p.json": "config" },
      now: { "portico.service": { active: false, unsettled: true } },
    },
    ["stop portico", "write files", "start portico"],
  ],
  [
    "the runtime and the socket of a proxy that crashes",
    {
      changed: { "/p.mjs": "runtime", "/etc/systemd/system/portico.socket": "unit" },
      now: { "portico.service": { active: true, unsettled: true } },
    },
    ["stop portico", "write files", "daemon-reload", "restart portico.socket", "start portico"],
  ],
  ...(
    [
      ["/c.pem", "tls", []],
      ["/i.html", "page", []],
      ["/r.mjs", "runtime", []],
      ["/node", "node", []],
      ["/etc/systemd/system/portico.service", "unit", ["daemon-reload"]],
    ] as const
  ).map(([path, role, reload]): [string, Case, string[]] => [
    `${path} alone, while the proxy crashes and starts again`,
    { changed: { [path]: role }, now: { "portico.service": { active: true, unsettled: true } } },
    ["stop portico", "write files", ...reload, "start portico"],
  ]),
  [
    "the socket's unit alone, while the proxy crashes and starts again",
    {
      changed: { "/etc/systemd/system/portico.socket": "unit" },
      now: { "portico.service": { active: true, unsettled: true } },
    },
    ["stop portico", "write files", "daemon-reload", "restart portico.socket", "start portico"],
  ],
  ["nothing, while the proxy starts", { now: { "portico.service": { active: true, unsettled: true } } }, []],
  [
    "nothing, while the proxy waits to be started again",
    { now: { "portico.service": { active: false, unsettled: true } } },
    ["stop portico", "start portico"],
  ],
  [
    "settings of a web application that crashes",
    { settings: ["web-application"], now: { "web.service": { active: false, unsettled: true } } },
    ["stop web", "write files", "start web"],
  ],
  ["the proxy's config", { changed: { "/etc/p.json": "config" } }, ["write files", "reload portico"]],
  [
    "a certificate and the page",
    { changed: { "/c.pem": "tls", "/i.html": "page" } },
    ["write files", "reload portico"],
  ],
  ["a certificate", { changed: { "/c.pem": "tls" } }, ["write files", "reload portico"]],
  ["the runtime", { changed: { "/r.mjs": "runtime" } }, ["write files", "portico upgrade (portico)"]],
  [
    "Node and a certificate",
    { changed: { "/node": "node", "/c.pem": "tls" } },
    ["write files", "portico upgrade (portico)", "reload portico"],
  ],
  ["texts that nothing reads", { changed: { "/s.py": "settings", "/x": "other" } }, ["write files"]],
  [
    "the network daemon's config",
    { settings: ["network-daemon"] },
    ["stop web", "stop files", "write files", "start files", "start web"],
  ],
  ["the file server's config", { settings: ["file-server"] }, ["stop files", "write files", "start files"]],
  [
    "the web application's settings",
    { settings: ["web-application"] },
    ["stop web", "write files", "start web"],
  ],
  [
    "the domain alone",
    { settings: ["network-daemon", "web-application"], domainOnly: true, changed: { "/p.json": "config" } },
    ["stop web", "write files", "restart files", "start web", "reload portico"],
  ],
  [
    "everything at once",
    {
      settings: ["network-daemon", "web-application", "file-server"],
      changed: {
        "/etc/systemd/system/web.service": "unit",
        "/etc/systemd/system/files.service.d/a.conf": "unit",
        "/etc/systemd/system/dav.service": "unit",
        "/etc/systemd/system/portico.service": "unit",
        "/etc/systemd/system/portico.socket": "unit",
        "/etc/systemd/network/10.network": "network",
        "/etc/fw.nft": "firewall",
        "/r.mjs": "runtime",
      },
    },
    [
      "stop web",
      "stop dav",
      "stop files",
      "write files",
      "daemon-reload",
      "networkctl reload",
      "reload-or-restart firewall",
      "start files",
      "start dav",
      "start web",
      "stop portico",
      "restart portico.socket",
      "start portico",
    ],
  ],
  [
    "the proxy's service unit",
    { changed: { "/etc/systemd/system/portico.service": "unit", "/r.mjs": "runtime" } },
    ["write files", "daemon-reload", "restart portico"],
  ],
  [
    "the rules of the firewall, and its drop-in",
    { changed: { "/etc/fw.nft": "firewall", "/etc/systemd/system/nftables.service.d/p.conf": "firewall" } },
    ["write files", "daemon-reload", "reload-or-restart firewall"],
  ],
  [
    "the configuration of keepalived, and its unit",
    {
      changed: {
        "/etc/portico/keepalived.conf": "keepalived",
        "/etc/systemd/system/address.service": "unit",
      },
    },
    ["write files", "daemon-reload", "reload-or-restart address"],
  ],
  [
    "the configuration of keepalived alone",
    { changed: { "/etc/portico/keepalived.conf": "keepalived" } },
    ["write files", "reload-or-restart address"],
  ],
  [
    "the jails of the host's fail2ban, whose log the proxy makes",
    {
      changed: { "/etc/p.json": "config", "/etc/fail2ban/jail.d/p.conf": "fail2ban" },
      now: { "fail2ban.service": {}, "crowdsec.service": {} },
    },
    ["write files", "reload portico", "reload-or-restart fail2ban"],
  ],
  [
    "files for programs of the host that do not run",
    {
      changed: { "/etc/fail2ban/jail.d/p.conf": "fail2ban", "/etc/crowdsec/acquis.d/p.yaml": "crowdsec" },
      now: { "fail2ban.service": { active: false }, "crowdsec.service": { active: false } },
      wanted: { "crowdsec.service": { active: true } },
    },
    // The file of fail2ban is a removed one: nothing wants the program.
    ["write files", "start crowdsec"],
  ],
  [
    "everything, and there is nothing but a proxy",
    {
      services: { proxy: SERVICES.proxy },
      settings: ["network-daemon", "web-application", "file-server"],
      changed: { "/etc/p.json": "config", "/etc/fw.nft": "firewall", "/etc/k.conf": "keepalived" },
    },
    ["write files", "reload portico"],
  ],
  [
    "the first time",
    {
      changed: {
        "/etc/systemd/system/portico.service": "unit",
        "/etc/systemd/system/portico.socket": "unit",
      },
      now: {
        "portico.service": { active: false, enabled: false },
        "portico.socket": { active: false, enabled: false },
        "firewall.service": { active: false, enabled: false },
      },
      wanted: {
        "portico.service": { active: true, enabled: true },
        "portico.socket": { active: true, enabled: true },
        "firewall.service": { active: true, enabled: true },
      },
    },
    [
      "write files",
      "daemon-reload",
      "enable firewall",
      "enable portico",
      "enable portico.socket",
      "start firewall",
      "start portico.socket",
      "start portico",
    ],
  ],
  ["nothing, and nothing is loaded that differs", { stale: {} }, []],
  [
    "a unit that systemd has not read since",
    { stale: { manager: true, units: new Set(["web.service"]) } },
    ["stop web", "daemon-reload", "start web"],
  ],
  [
    "a firewall that was flushed",
    { stale: { units: new Set(["firewall.service"]) } },
    ["reload-or-restart firewall"],
  ],
  ["a proxy that runs another config", { stale: { proxy: "reload" } }, ["reload portico"]],
  ["a proxy that runs another runtime", { stale: { proxy: "upgrade" } }, ["portico upgrade (portico)"]],
  [
    "a proxy whose socket was stopped",
    { now: { "portico.socket": { active: false } } },
    ["stop portico", "start portico.socket", "start portico"],
  ],
  [
    "the socket's unit, the proxy down",
    {
      changed: { "/etc/systemd/system/portico.socket": "unit" },
      now: { "portico.service": { active: false } },
    },
    ["write files", "daemon-reload", "restart portico.socket", "start portico"],
  ],
  ["a page", { changed: { "/i.html": "page" } }, ["write files", "reload portico"]],
  [
    "a drop-in of another role",
    { changed: { "/etc/systemd/system/web.service.d/a.conf": "other" } },
    ["write files", "daemon-reload"],
  ],
  [
    "a network",
    { changed: { "/etc/systemd/network/a.network": "network" } },
    ["write files", "networkctl reload"],
  ],
  [
    "a daemon that is to go, with settings of its own",
    {
      settings: ["file-server"],
      wanted: { "files.service": OFF },
      now: { "files.service": { enabled: false } },
    },
    ["stop files", "write files"],
  ],
  [
    "a proxy that is not to run",
    { changed: { "/etc/p.json": "config" }, wanted: { "portico.service": { active: false } } },
    ["stop portico", "write files"],
  ],
  [
    "a unit that is enabled, and was rewritten",
    {
      changed: { "/etc/systemd/system/web.service": "unit" },
      wanted: { "web.service": { active: true, enabled: true } },
    },
    ["stop web", "write files", "daemon-reload", "reenable web", "start web"],
  ],
  [
    "services that were stopped by hand, or have failed",
    { now: { "files.service": { active: false }, "portico.service": { active: false, failed: true } } },
    ["reset-failed portico", "start files", "start portico"],
  ],
  [
    "a daemon that is not running gets its new settings when it starts",
    { settings: ["web-application"], now: { "web.service": { active: false } } },
    ["write files", "start web"],
  ],
  [
    "units that go away",
    {
      changed: { "/etc/systemd/system/dav.service": "unit", "/etc/systemd/system/t.timer": "unit" },
      now: { "t.timer": {} },
      wanted: { "dav.service": OFF, "t.timer": OFF },
    },
    ["stop t.timer", "disable t.timer", "stop dav", "disable dav", "write files", "daemon-reload"],
  ],
  [
    "a unit that goes away while it waits to be started again",
    {
      changed: { "/etc/systemd/system/dav.service": "unit" },
      now: { "dav.service": { active: false, unsettled: true, enabled: false } },
      wanted: { "dav.service": OFF },
    },
    ["stop dav", "write files", "daemon-reload"],
  ],
  [
    "the proxy's unit with other credentials",
    {
      changed: { "/etc/systemd/system/portico.service": "unit", "/etc/tls/a.pem": "tls" },
      reloadable: true,
    },
    ["write files", "daemon-reload", "reload portico"],
  ],
  [
    "a firewall that goes away with its rules",
    { changed: { "/etc/fw.nft": "firewall" }, wanted: { "firewall.service": OFF } },
    ["stop firewall", "disable firewall", "write files"],
  ],
  [
    "a unit that belongs to no daemon, and stays as it is",
    { now: { "t.timer": {} }, wanted: { "t.timer": { active: true, enabled: true } } },
    [],
  ],
  [
    "a unit that belongs to no daemon",
    {
      changed: { "/etc/systemd/system/t.timer": "unit", "/etc/systemd/system/u.timer": "unit" },
      now: { "t.timer": {}, "u.timer": { active: false, enabled: false } },
      wanted: { "t.timer": { active: true, enabled: true }, "u.timer": { active: true, enabled: true } },
    },
    [
      "write files",
      "daemon-reload",
      "reenable t.timer",
      "enable u.timer",
      "restart t.timer",
      "start u.timer",
    ],
  ],
])("%s", (_what, situation, expected) => {
  expect(stepsOf(situation)).toEqual(expected);
});

const [RESTARTS, GOES_ON] = ["which interrupts its work", "which interrupts nothing"];

test.each<[string, Case, string[]]>([
  [
    "the proxy's config",
    { changed: { "/p.json": "config" } },
    [`reload portico, ${GOES_ON}: /p.json will change`],
  ],
  ["the runtime", { changed: { "/r.mjs": "runtime" } }, [`upgrade portico, ${GOES_ON}: /r.mjs will change`]],
  [
    "a certificate and Node",
    { changed: { "/c.pem": "tls", "/node": "node", "/x": "other" } },
    [`upgrade portico, ${GOES_ON}: /c.pem, /node will change`],
  ],
  [
    "the proxy's unit, and another one",
    { changed: { "/s/portico.service": "unit", "/s/t.timer": "unit" }, now: { "t.timer": {} } },
    [
      `restart t.timer, ${RESTARTS}: /s/t.timer will change`,
      `restart portico, ${RESTARTS}: /s/portico.service will change`,
    ],
  ],
  [
    "the socket's unit",
    { changed: { "/s/portico.socket": "unit" } },
    [
      `restart portico, ${RESTARTS}: /s/portico.socket will change`,
      `restart portico.socket, ${RESTARTS}: /s/portico.socket will change`,
    ],
  ],
  [
    "a proxy whose socket was stopped",
    { now: { "portico.socket": { active: false } } },
    [`restart portico, ${RESTARTS}: another unit needs it`, "start portico.socket: it does not run"],
  ],
  [
    "a drop-in and the settings of a daemon",
    { changed: { "/s/web.service.d/a.conf": "unit" }, settings: ["web-application"] },
    [`restart web, ${RESTARTS}: /s/web.service.d/a.conf, the application's settings will change`],
  ],
  [
    "rules and addresses",
    { changed: { "/fw.nft": "firewall", "/k.conf": "keepalived" } },
    [`reload firewall, ${GOES_ON}: /fw.nft will change`, `reload address, ${GOES_ON}: /k.conf will change`],
  ],
  ["a daemon that is to go", { wanted: { "dav.service": OFF } }, ["stop dav: it is no longer deployed"]],
  [
    "a daemon that does not run, and a unit that is only enabled",
    {
      now: { "web.service": { active: false, failed: true }, "files.service": { enabled: false } },
      wanted: { "files.service": { active: true, enabled: true } },
    },
    ["start web: it does not run"],
  ],
  [
    "a proxy that runs another config",
    { stale: { proxy: "reload" } },
    [`reload portico, ${GOES_ON}: it runs with another release than the installed one`],
  ],
  ["texts that nothing reads", { changed: { "/x": "other" } }, []],
])("before %s, users are told what they will notice", (_what, given, lines) => {
  const situation = situationOf(given);
  const told = previewOf(serviceSteps(situation), situation);
  expect(told.map((line) => line.replace(/^(will \S+ \w+)\.service/, "$1"))).toEqual(
    lines.map((line) => `will ${line}`),
  );
});
