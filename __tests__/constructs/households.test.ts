import {
  Application,
  ContainerFrontEnd,
  Delivery,
  FrontEnd,
  FrontEndPair,
  Mode,
  type SiteProps,
  TlsMaterial,
} from "../../src/index.js";
import { renderProxyConfig, resolve, synthesizedFiles } from "../../src/testing/index.js";
import { Random } from "../../testkit/random.js";
import { newStack, synthesize } from "../../testkit/stacks.js";

/** Hosts, pairs and containers that carry several applications: whatever stands beside a site, the site is the same. */

const KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=";
const delivery = Delivery.ssh({ hostKey: KEY });
const service = { runtimeBundle: __filename };
const ACME = TlsMaterial.acme({ email: "admin@your-domain.org", agreeToTerms: true });
const FILES = TlsMaterial.fromFiles({ certificate: "/etc/tls/c.pem", key: "/etc/tls/k.pem" });

/** Sites of every kind, each at addresses of its own, and where requests for its name are led. */
const SITES: Readonly<Record<string, { readonly props: SiteProps; readonly leads: object }>> = {
  files: {
    props: {
      serverNames: ["files.your-domain.org"],
      application: Application.fileSync({ installDirectory: "/srv/sync" }),
      upstreams: {
        web: { url: "http://10.0.0.1:8000" },
        webdav: { url: "http://10.0.0.1:8080" },
        fileServer: { url: "http://10.0.0.1:8082" },
      } as object,
      rootRedirect: true,
    },
    leads: {
      kind: "redirect",
      status: 302,
      location: expect.stringContaining("//files.your-domain.org/sync/"),
    },
  },
  vault: {
    props: {
      serverNames: ["vault.your-domain.org"],
      application: Application.vaultwarden({ directory: "/srv/vaultwarden" }),
      upstreams: { web: { url: "http://10.0.0.2:80" } } as object,
    },
    leads: { kind: "proxy", upstream: "vault-web" },
  },
  wiki: {
    props: {
      serverNames: ["wiki.your-domain.org"],
      application: Application.server("http://10.0.0.3:3000"),
      upstreams: { web: { url: "http://10.0.0.3:3000" } } as object,
    },
    leads: { kind: "proxy", upstream: "wiki-web" },
  },
  www: {
    props: { serverNames: ["www.your-domain.org"], application: Application.staticFiles("/srv/www") },
    leads: { kind: "staticFile" },
  },
  old: {
    props: {
      serverNames: ["old.your-domain.org"],
      application: Application.redirect({ host: "www.your-domain.org" }),
    },
    leads: { kind: "redirect", status: 301, location: expect.stringContaining("//www.your-domain.org/") },
  },
};

type House = (mode: Mode, names: readonly string[]) => ReturnType<typeof newStack>;

const HOUSES: Readonly<Record<string, House>> = {
  "a host": (mode, names) => {
    const stack = newStack();
    const front = new FrontEnd(stack, "home", { host: { address: "192.0.2.10", delivery }, mode, service });
    for (const name of names) front.addSite(name, SITES[name]!.props);
    return stack;
  },
  "a host with an application of its own": (mode, names) => {
    const stack = newStack();
    const host = { address: "192.0.2.10", publicName: "main.your-domain.org", delivery };
    const front = new FrontEnd(stack, "home", { host, mode, application: Application.nextcloud(), service });
    for (const name of names) front.addSite(name, SITES[name]!.props);
    return stack;
  },
  containers: (mode, names) => {
    const stack = newStack();
    const front = new ContainerFrontEnd(stack, "home", { mode });
    for (const name of names) front.addSite(name, SITES[name]!.props);
    return stack;
  },
  "a pair": (mode, names) => {
    const stack = newStack();
    const hosts = ["192.0.2.11", "192.0.2.12"].map((address) => ({ address, interface: "eth0", delivery }));
    const pair = new FrontEndPair(stack, "pair", { hosts, virtualAddress: "192.0.2.20", mode, service });
    for (const name of names) pair.addSite(name, SITES[name]!.props);
    return stack;
  },
};

const MODES: readonly (readonly [string, Mode, inContainers: boolean])[] = [
  ["plain HTTP", Mode.plain(), true],
  ["certificates by ACME", Mode.tls({ material: ACME }), true],
  ["a certificate from files", Mode.tls({ material: FILES }), true],
  ["self-signed certificates", Mode.tls(), false],
  ["TLS alone", Mode.tls({ httpPort: false, material: FILES }), true],
];

const ALL = Object.keys(SITES);
/** All in both orders, as the first site has what the others have not, and one drawn alone. */
const subsets = (): readonly (readonly string[])[] => [
  ALL,
  [...ALL].reverse(),
  [ALL[new Random().pick(ALL.length)]!],
];

const CASES = Object.entries(HOUSES).flatMap(([what, house]) =>
  MODES.filter(([, , inContainers]) => what !== "containers" || inContainers).map(
    ([how, mode]) => [what, how, house, mode] as const,
  ),
);

test.each(CASES)(
  "%s with %s: a site is the same, whatever sites stand beside it",
  (what, _how, house, mode) => {
    for (const names of subsets()) {
      const stack = house(mode, names);
      synthesize(stack);
      const scopes =
        what === "a pair"
          ? ["First", "Second"].map((id) => stack.node.findChild("pair").node.findChild(id))
          : [stack];
      for (const scope of scopes) {
        for (const name of names) {
          const { props, leads } = SITES[name]!;
          for (const host of props.serverNames)
            expect([name, resolve(scope, `${mode.scheme}://${host.replace("*", "any")}/`)]).toEqual([
              name,
              expect.objectContaining(name === "files" ? {} : leads),
            ]);
          expect(resolve(scope, `${mode.scheme}://${props.serverNames[0]}/`)).toMatchObject(leads);
        }
        const { virtualServers, upstreams } = renderProxyConfig(scope);
        for (const all of [virtualServers, upstreams]) {
          const called = all.map((one) => one.name);
          expect(new Set(called).size).toBe(called.length);
        }
        const paths = what === "containers" ? [] : synthesizedFiles(scope).map(({ path }) => path);
        expect(new Set(paths).size).toBe(paths.length);
      }
    }
  },
);

test.each([
  ["http", Mode.plain()],
  ["http", Mode.tls({ material: FILES })],
  ["https", Mode.tls({ material: FILES })],
])("without an application of the host's names, other names get 404 over %s", (scheme, mode) => {
  const stack = HOUSES["a host"]!(mode, ALL);
  for (const name of ["192.0.2.10", "other.your-domain.org"])
    expect(resolve(stack, `${scheme}://${name}/x`)).toMatchObject({ status: 404 });
});

test("each site has a certificate of its own by ACME, from one account", () => {
  const stack = HOUSES["a host"]!(Mode.tls({ material: ACME }), ALL);
  const { listeners, certificateAuthorities } = renderProxyConfig(stack);
  const { tls } = listeners.find(({ protocol }) => protocol === "https")!;
  const names = [tls!, ...(tls!.certificates ?? [])].map(({ acme }) => acme!.names.join());
  expect(names).toEqual(ALL.map((name) => SITES[name]!.props.serverNames.join()));
  expect(certificateAuthorities).toHaveLength(1);
});

test("a name that the material names is in its certificate, and in no other", () => {
  const named = TlsMaterial.acme({
    ...{ email: "admin@your-domain.org", agreeToTerms: true },
    names: ["wiki.your-domain.org", "www.your-domain.org"],
  });
  const { listeners } = renderProxyConfig(
    HOUSES["a host"]!(Mode.tls({ material: named }), ["wiki", "www", "old"]),
  );
  const { tls } = listeners.find(({ protocol }) => protocol === "https")!;
  expect([tls!, ...(tls!.certificates ?? [])].map(({ acme }) => acme!.names)).toEqual([
    ["wiki.your-domain.org", "www.your-domain.org"],
    ["old.your-domain.org"],
  ]);
});

test("a name that a wildcard covers belongs to the site that has the name", () => {
  const stack = HOUSES["a host"]!(Mode.tls({ material: FILES }), ["wiki"]);
  const front = stack.node.findChild("home") as FrontEnd;
  const application = Application.redirect({ host: "elsewhere.net" });
  front.addSite("all", { serverNames: ["your-domain.org", "*.your-domain.org"], application });
  expect(resolve(stack, "https://wiki.your-domain.org/")).toMatchObject(SITES["wiki"]!.leads);
  expect(resolve(stack, "https://any.your-domain.org/")).toMatchObject({ kind: "redirect" });
});

test("two servers at an address that was chosen for both may share it", () => {
  const front = new FrontEnd(newStack(), "home", {
    host: { address: "192.0.2.10" },
    mode: Mode.plain(),
    service,
  });
  for (const name of ["one", "two"])
    front.addSite(name, {
      serverNames: [`${name}.your-domain.org`],
      application: Application.server("http://127.0.0.1:3000"),
    });
  expect(front.sites.map(({ url }) => url)).toEqual([
    "http://one.your-domain.org/",
    "http://two.your-domain.org/",
  ]);
});
