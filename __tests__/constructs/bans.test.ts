import { TerraformStack, TerraformVariable } from "cdktf";
import {
  Access,
  Action,
  Application,
  CrowdSec,
  Fail2ban,
  FrontEnd,
  type FrontEndProps,
  Host,
  Mode,
  ReverseProxy,
  TlsMaterial,
} from "../../src/index.js";
import { synthesizedFile } from "../../src/testing/index.js";
import { newStack, synthesize } from "../../testkit/stacks.js";

/** Bans by programs of the host: which files they get, which front ends they do not fit, and what they cannot see. */

const JSON_LOG = { logs: { access: { path: "/var/log/portico/access.log", format: "json" } } } as const;
const vaultwarden = Application.vaultwarden({ directory: "/srv/vaultwarden" });

function front(props: Partial<FrontEndProps> = {}, stack = newStack()) {
  return new FrontEnd(stack, "front", {
    host: { address: "192.0.2.10", publicName: "vault.example.org" },
    mode: Mode.tls(),
    application: vaultwarden,
    service: { runtimeBundle: __filename },
    fail2ban: {},
    ...props,
  });
}

const synthesized = (props?: Partial<FrontEndProps>): unknown => synthesize(TerraformStack.of(front(props)));
const JAILS = "/etc/fail2ban/jail.d/portico.conf";
const FILTER = "/etc/fail2ban/filter.d/portico.conf";
const fileOf = (one: FrontEnd, path: string): string =>
  synthesizedFile(TerraformStack.of(one), path).content!;

test("a jail for each virtual server with log-ins, also of sites that are added later", () => {
  const one = front({
    proxy: JSON_LOG,
    activation: {},
    fail2ban: { maxRetry: 3, findTimeMs: 60_000, banTimeMs: 3_600_500, ignoreIp: ["198.51.100.0/24"] },
  });
  one.addSite("photos", { serverNames: ["photos.example.org"], application: Application.immich() });
  one.addSite("plain", {
    serverNames: ["plain.example.org"],
    application: Application.server("http://127.0.0.1:9000"),
  });
  expect(fileOf(one, JAILS)).toBe(`# Made by Portico; changes here are overwritten.

[portico-application]
enabled = true
filter = portico[server=1]
logpath = /var/log/portico/access.log
backend = auto
usedns = no
maxretry = 3
findtime = 60
bantime = 3601
ignoreself = false
ignoreip = 198.51.100.0/24 127.0.0.0/8 ::1 192.0.2.10
action = nftables[name=portico-application, port="80,443", protocol=tcp]

[portico-photos]
enabled = true
filter = portico[server=2]
logpath = /var/log/portico/access.log
backend = auto
usedns = no
maxretry = 3
findtime = 60
bantime = 3601
ignoreself = false
ignoreip = 198.51.100.0/24 127.0.0.0/8 ::1 192.0.2.10
action = nftables[name=portico-photos, port="80,443", protocol=tcp]
`);
  const filter = fileOf(one, FILTER);
  expect(filter).toContain("# Failed log-ins of application:\n#   POST /identity/connect/token: 400\n");
  expect(filter).toContain("# Failed log-ins of photos:\n#   POST /api/auth/login: 401\n");
  const read = one.activation!.deployment.files.filter(({ role }) => role === "fail2ban");
  expect(read.map(({ path }) => path)).toEqual([FILTER, JAILS]);
});

test("nobody of the local networks is banned, unless the stack says so", () => {
  expect(fileOf(front(), JAILS)).toContain(`ignoreip = ${Access.localNetworks().join(" ")} ::1 192.0.2.10\n`);
  expect(fileOf(front({ fail2ban: { ignoreIp: [] } }), JAILS)).toContain(
    "ignoreip = 127.0.0.0/8 ::1 192.0.2.10\n",
  );
});

test.each<[string, Partial<FrontEndProps>, string]>([
  ["trusted proxies", { proxy: { trustedProxies: ["10.0.0.5"] } }, "bans.no-effect"],
  ["the PROXY protocol", { mode: Mode.tls({ proxyProtocol: { from: ["10.0.0.5"] } }) }, "bans.no-effect"],
  ["a proxy on the same host", { mode: Mode.tls({ address: "127.0.0.1" }) }, "bans.no-effect"],
  ["no log-ins", { application: Application.server("http://127.0.0.1:9000") }, "bans.no-effect"],
  ["addresses that are not logged", { proxy: { logs: { clientAddress: "network" } } }, "bans.unreadable-log"],
  ["a stream", { proxy: { logs: { access: { stream: "stdout" } } } }, "bans.unreadable-log"],
  ["a blank in a path", { paths: { logDirectory: "/var/log/my logs" } }, "bans.unreadable-log"],
  ["an unknown option", { fail2ban: { bantime: 3 } as object }, "config.unknown-field"],
  ["no retries", { fail2ban: { maxRetry: 0 } }, "config.out-of-range"],
  ["a range that is none", { fail2ban: { ignoreIp: ["10.0.0.0/33"] } }, "config.bad-address"],
  ["options in the action's name", { fail2ban: { banAction: "nftables[x]" } }, "config.bad-name"],
])("%s: refused", (_what, props, code) => {
  expect(() => synthesized(props)).toThrow(code);
});

test("an action of one's own may reach a balancer, whose address is not banned", () => {
  const one = front({
    proxy: { trustedProxies: ["203.0.113.5"] },
    fail2ban: { banAction: "our-balancer", ignoreIp: [] },
  });
  expect(fileOf(one, JAILS)).toContain(
    'ignoreip = 127.0.0.0/8 ::1 192.0.2.10 203.0.113.5\naction = our-balancer[name=portico-application, port="80,443", protocol=tcp]\n',
  );
});

test("servers whose lines are told apart by nothing are refused", () => {
  const withSite = (props: Partial<FrontEndProps>) => (): unknown => {
    const one = front(props);
    one.addSite("plain", {
      serverNames: ["plain.example.org"],
      application: Application.server("http://127.0.0.1:9000"),
    });
    return synthesize(TerraformStack.of(one));
  };
  expect(withSite({})).toThrow(/bans\.unreadable-log[^]*format: "json"/);
  expect(withSite({ proxy: JSON_LOG })).not.toThrow();
  expect(withSite({ fail2ban: undefined, crowdSec: true })).not.toThrow();
});

test("log-ins that no log shows are named", () => {
  const one = front({ application: Application.nextcloud() });
  synthesize(TerraformStack.of(one));
  const said = one.fail2ban!.node.metadata.map(({ data }) => String(data));
  expect(said).toEqual([
    expect.stringMatching(/^fail2ban cannot see failures of these log-ins of application: POST \/login, /),
  ]);
  const filter = fileOf(one, FILTER);
  expect(filter).toContain("#   any method / and below, with Basic credentials: 401\n");
});

test("CrowdSec gets the combined logs, once each", () => {
  const one = front({ fail2ban: undefined, crowdSec: true });
  expect(one.crowdSec).toBeInstanceOf(CrowdSec);
  expect(fileOf(one, "/etc/crowdsec/acquis.d/portico.yaml")).toBe(
    '# Made by Portico; changes here are overwritten.\nfilenames:\n  - "/var/log/portico/access.log"\nlabels:\n  type: nginx\n',
  );
  const refused = (proxy: FrontEndProps["proxy"]) => () =>
    synthesized({ fail2ban: undefined, crowdSec: true, proxy });
  expect(refused(JSON_LOG)).toThrow(/bans\.unreadable-log[^]*format: "combined"/);
  expect(refused({ logs: { access: { stream: "stdout" } } })).toThrow("bans.unreadable-log");
  expect(refused({ logs: { clientAddress: "none" } })).toThrow("bans.unreadable-log");
});

test("values that only Terraform knows: ports and the directory of logs", () => {
  const stack = newStack();
  const value = (name: string, type: string) => new TerraformVariable(stack, name, { type });
  const host = new Host(stack, "host", { address: "192.0.2.10" });
  const paths = { logDirectory: value("logs", "string").stringValue };
  const proxy = new ReverseProxy(stack, "proxy", { host, paths });
  const port = value("port", "number").numberValue;
  proxy.addListener("https", { port, tls: { material: TlsMaterial.selfSigned() } });
  const bans = new Fail2ban(stack, "bans", { proxy });
  const site = proxy.addVirtualServer("site", {
    serverNames: ["_"],
    listeners: proxy.listeners,
    default: true,
  });
  site.logIns = [{ path: "/login", secret: "body", failed: [401] }];
  const app = proxy.addUpstream("app", { url: "http://127.0.0.1:8000" });
  site.addRoute("app", { path: "/", action: Action.proxy(app) });
  const content = JSON.stringify(synthesize(stack));
  expect(content).toMatch(/logpath = \$\{var\.logs\}\/access\.log\W[^]*port=\W+\{var\.port\}/);
  expect(bans.jails.lateValues).toHaveLength(1);
  expect(() => new Fail2ban(stack, "more", { proxy, maxRetry: port })).toThrow("known at synthesis");
});
