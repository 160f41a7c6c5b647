import { TerraformVariable } from "cdktf";
import {
  Application,
  Delivery,
  type ApplicationSettings,
  type FileSyncRoutes,
  type FileSyncUpstreams,
  FrontEndPair,
  type FrontEndPairProps,
  Mode,
  TlsMaterial,
} from "../../src/index.js";
import { synthesizedFile } from "../../src/testing/index.js";
import { sayings } from "../../testkit/sayings.js";
import { newStack, problemsOf, synthesize } from "../../testkit/stacks.js";

const HOST_KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=";
const delivery = Delivery.ssh({ hostKey: HOST_KEY });
const FIRST = { address: "192.0.2.11", netmask: "255.255.255.0", interface: "eth0", delivery };
const SECOND = { ...FIRST, address: "192.0.2.12", interface: "ens3" };
const FILES = TlsMaterial.fromFiles({ certificate: "/etc/tls/cert.pem", key: "/etc/tls/key.pem" });

function pairOf(
  more: Partial<FrontEndPairProps<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>> = {},
  stack = newStack(),
) {
  return new FrontEndPair(stack, "pair", {
    hosts: [FIRST, SECOND],
    virtualAddress: "192.0.2.20",
    mode: Mode.tls({ material: FILES }),
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
    ...more,
    service: { runtimeBundle: __filename, ...more.service },
  });
}

const said = sayings("pairs");

const refused = (
  more: Partial<FrontEndPairProps<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>>,
): [string, string][] =>
  said(problemsOf(() => pairOf(more))).map((p) => [p.code, p.path.replace("stack/pair", "")]);

describe("a pair is refused", () => {
  test.each<
    [Partial<FrontEndPairProps<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>>, string, string]
  >([
    [{ hosts: [FIRST] }, "config.wrong-type", ".hosts"],
    [{ hosts: [FIRST, SECOND, SECOND] }, "config.wrong-type", ".hosts"],
    [{ hosts: [FIRST, FIRST] }, "config.duplicate-name", ".hosts[1].address"],
    [{ hosts: [FIRST, { ...SECOND, delivery: Delivery.local() }] }, "pair.no-ssh", ".hosts[1].delivery"],
    [{ hosts: [{ ...FIRST, delivery: undefined }, SECOND] }, "pair.no-ssh", ".hosts[0].delivery"],
    [{ virtualAddress: "192.0.2.11" }, "host.bad-virtual-address", "/FirstHost.virtualAddress"],
    [{ virtualAddress: "192.0.2.12" }, "host.bad-virtual-address", "/SecondHost.virtualAddress"],
    [{ virtualAddress: "198.51.100.20" }, "host.bad-virtual-address", "/FirstHost.virtualAddress"],
    [{ virtualAddress: "2001:db8::20" }, "host.bad-virtual-address", "/FirstHost.virtualAddress"],
    [{ mode: Mode.tls({ address: "192.0.2.20", material: FILES }) }, "config.bad-address", ".mode"],
    [{ hosts: [FIRST, { ...SECOND, interface: "eth0 {" }] }, "network.bad-interface", ".hosts[1].interface"],
    [{ virtualRouterId: 256 }, "config.out-of-range", ".virtualRouterId"],
    [{ advertisementMs: 25 }, "config.out-of-range", ".advertisementMs"],
    [{ without: "b" as "first" }, "config.not-one-of", ".without"],
    [{ copyPort: 0 }, "config.out-of-range", ".copyPort"],
    [{ keepalivedPath: "keepalived" }, "config.bad-file-path", ".keepalivedPath"],
    // What a host, and not the pair, says of its network.
    ...["host", "interface", "ipv6PrefixLength", "ipv6Gateway"].map(
      (
        name,
      ): [
        Partial<FrontEndPairProps<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>>,
        string,
        string,
      ] => [{ network: { [name]: 64 } }, "config.unknown-field", `.network.${name}`],
    ),
    ...["virtualAddress", "publicName", "ipv6Address", "ipv6Flags"].map(
      (
        name,
      ): [
        Partial<FrontEndPairProps<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>>,
        string,
        string,
      ] => [{ hosts: [FIRST, { ...SECOND, [name]: "a" }] }, "config.unknown-field", `.hosts[1].${name}`],
    ),
    ...["host", "hsot"].map(
      (
        name,
      ): [
        Partial<FrontEndPairProps<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>>,
        string,
        string,
      ] => [{ [name]: FIRST }, "config.unknown-field", `.${name}`],
    ),
  ])("%j is refused: %s %s", (more, code, path) => {
    expect(refused(more)).toEqual([[code, path]]);
  });
});

test.each<[keyof FrontEndPairProps, readonly number[], readonly number[]]>([
  ["virtualRouterId", [1, 255], [0, 256, 1.5]],
  ["advertisementMs", [10, 10_000], [0, 5, 25, 10_010, -10]],
  ["copyPort", [1, 65_535], [0, 65_536]],
])("%s may be %j, and not %j", (name, taken, outside) => {
  for (const value of taken) expect(() => pairOf({ [name]: value })).not.toThrow();
  for (const value of outside)
    expect([value, refused({ [name]: value })]).toEqual([value, [["config.out-of-range", `.${name}`]]]);
});

test("what keepalived's configuration is made from has to be known at synthesis", () => {
  const stack = newStack();
  const text = new TerraformVariable(stack, "t", { type: "string" }).stringValue;
  const number = new TerraformVariable(stack, "n", { type: "number" }).numberValue;
  const more = {
    hosts: [
      { ...FIRST, address: text },
      { ...SECOND, interface: text },
    ],
    ...{ virtualAddress: text, virtualRouterId: number, advertisementMs: number },
    ...{ keepalivedPath: text, copyPort: number },
  };
  expect(said(problemsOf(() => pairOf(more))).map((p) => [p.code, p.path, p.message])).toEqual(
    [
      ...["virtualAddress", "virtualRouterId", "advertisementMs", "keepalivedPath", "copyPort"],
      ...["hosts[0].address", "hosts[1].interface"],
    ].map((name) => ["config.wrong-type", `stack/pair.${name}`, "is not known at synthesis"]),
  );
});

test("authorities are asked only by the host that has the virtual address", () => {
  const acme = { email: "a@example.org", agreeToTerms: true };
  const stack = newStack();
  const material = TlsMaterial.acme(acme);
  const pair = pairOf({ publicName: "files.example.org", mode: Mode.tls({ material }) }, stack);
  for (const { proxy } of pair.frontEnds) {
    proxy.addVirtualServer("office", {
      serverNames: ["office.example.org"],
      listeners: proxy.listeners.filter(({ tls }) => tls !== undefined),
      tls: TlsMaterial.acme({ ...acme, directory: "https://ca.example.org/directory" }),
    });
    expect(proxy.problems).toEqual([]);
    expect(proxy.config.certificateAuthorities).toMatchObject([
      { name: "letsencrypt", holderAddress: "192.0.2.20" },
      { name: "ca.example.org", holderAddress: "192.0.2.20" },
    ]);
  }
  synthesize(stack);
});

describe("certificates by ACME", () => {
  const material = TlsMaterial.acme({ email: "a@example.org", agreeToTerms: true });
  const names = { publicName: "files.example.org", firewall: {} };
  const COPIES = "/etc/systemd/system/portico-copies.service";
  const filesOf = ({ frontEnds }: FrontEndPair): string[] =>
    frontEnds.flatMap(({ activation }) => activation!.files.map(({ path }) => path));

  /** What of the copying each host has: the command's arguments, and the firewall's rule. */
  function copying(pair: FrontEndPair): string[][] {
    return pair.frontEnds.map((one) => [
      /--own .*$/m.exec(synthesizedFile(one, COPIES).content!)![0],
      /^.* dport 9\d+ .*$/m.exec(synthesizedFile(one, "/etc/portico/firewall.nft").content!)![0].trim(),
    ]);
  }

  const between = (own: string, peer: string, port: number): string[] => [
    `--own ${own} --peer ${peer} --port ${port} --key /var/lib/portico/shared/copy-key`,
    `ip saddr { ${peer} } tcp dport ${port} accept`,
  ];

  test("go from each host to the other, which lets it in", () => {
    const pair = pairOf({ ...names, mode: Mode.tls({ material }) });
    expect(copying(pair)).toEqual([
      between("192.0.2.11", "192.0.2.12", 9181),
      between("192.0.2.12", "192.0.2.11", 9181),
    ]);
  });

  test("do so by another port, beside what is allowed already, and when they were added later", () => {
    const firewall = { allowed: [{ port: 161, protocol: "udp" as const }] };
    const pair = pairOf({ ...names, firewall, copyPort: 9000 });
    expect(filesOf(pair)).not.toContain(COPIES);
    const [{ proxy, listeners }] = pair.frontEnds;
    proxy.addVirtualServer("office", {
      serverNames: ["office.example.org"],
      listeners: [listeners.https!],
      tls: material,
    });
    expect(copying(pair)).toEqual([
      between("192.0.2.11", "192.0.2.12", 9000),
      between("192.0.2.12", "192.0.2.11", 9000),
    ]);
    for (const one of pair.frontEnds)
      expect(synthesizedFile(one, "/etc/portico/firewall.nft").content).toContain("udp dport 161 accept");
    expect(firewall.allowed).toHaveLength(1);
  });
});

describe("what clients are sent to", () => {
  test("is the virtual address, on both hosts", () => {
    const pair = pairOf({ mode: Mode.tls({ material: FILES }) });
    expect(pair.url).toBe("https://192.0.2.20/sync/");
    for (const { site, portForwards } of pair.frontEnds) {
      expect(site.serverNames).toEqual(["192.0.2.20"]);
      expect(site.settings.values.fileServerRoot).toBe("https://192.0.2.20/synchttp");
      expect(portForwards.map(({ toAddress }) => toAddress)).toEqual(["192.0.2.20", "192.0.2.20"]);
    }
    expect(pair.hosts.map(({ address }) => address)).toEqual(["192.0.2.11", "192.0.2.12"]);
  });

  test("or the public name, whose record leads to the virtual address", () => {
    const hosts = [
      { ...FIRST, address: "8.8.8.11" },
      { ...SECOND, address: "8.8.8.12" },
    ];
    const pair = pairOf({ hosts, virtualAddress: "8.8.8.20", publicName: "files.example.org" });
    expect(pair.url).toBe("https://files.example.org/sync/");
    for (const { dnsRecords } of pair.hosts) {
      expect(dnsRecords).toEqual([{ name: "files.example.org", type: "A", value: "8.8.8.20" }]);
    }
  });
});

test("each host has keepalived's configuration, made from its own point of view", () => {
  const stack = newStack();
  const pair = pairOf({ advertisementMs: 50, virtualRouterId: 7, firewall: {}, network: {} }, stack);
  const [here] = pair.frontEnds;
  const textOf = (scope: typeof here, path: string): string => synthesizedFile(scope, path).content!;
  const [first, second] = pair.frontEnds.map((one) => textOf(one, "/etc/portico/keepalived.conf"));
  expect(first).toContain("interface eth0\n    virtual_router_id 7\n    priority 101\n    advert_int 0.05\n");
  expect(first).toMatch(/unicast_src_ip 192\.0\.2\.11\n[^]*unicast_peer \{\n {8}192\.0\.2\.12\n/);
  expect(first).toContain("192.0.2.20/32 dev eth0");
  expect(second).toContain("interface ens3\n    virtual_router_id 7\n    priority 100\n");
  expect(second).toMatch(/unicast_src_ip 192\.0\.2\.12\n[^]*unicast_peer \{\n {8}192\.0\.2\.11\n/);
  expect(textOf(here, "/etc/portico/firewall.nft")).toContain(
    "ip saddr { 192.0.2.12 } ip protocol 112 accept",
  );
  expect(textOf(here, "/etc/systemd/network/05-portico.network")).toMatch(
    /Name=eth0\n[^]*Address=192\.0\.2\.11\/24\n/,
  );
  expect(textOf(here, "/etc/systemd/system/portico-ready.service")).toContain("127.0.0.1 9180");
  expect(pair.frontEnds[0].activation!.deployment.services).toMatchObject({
    keepalived: "portico-address.service",
  });
});

test("the hosts get one self-signed certificate", () => {
  const stack = newStack();
  pairOf({ mode: Mode.tls() }, stack);
  const { resource } = synthesize(stack);
  expect(Object.keys(resource["tls_private_key"]!)).toHaveLength(1);
  const certificates = Object.values(resource["tls_self_signed_cert"]!);
  expect(certificates).toMatchObject([{ ip_addresses: ["192.0.2.20"] }]);
});

describe("in Terraform", () => {
  const dataOf = (stack: ReturnType<typeof newStack>) => {
    const all = Object.entries(synthesize(stack).resource["terraform_data"]!);
    return (end: string) => all.find(([id]) => id.replace(/_[0-9A-F]{8}$/, "") === `pair_${end}`)?.[1];
  };
  const names = (on: readonly string[]): string[] => on.map((one) => one.replace(/_[0-9A-F]{8}$/, ""));

  test("the host that has the address comes last, and both come after the secret", () => {
    const stack = newStack();
    pairOf({}, stack);
    const data = dataOf(stack);
    const after = (end: string): string[] =>
      names(data(end).depends_on)
        .filter((one) => /Activation|Ahead|TicketKeys/.test(one))
        .map((one) => one.replace("terraform_data.pair_", ""));
    expect(after("Ahead")).toEqual(["TicketKeys"]);
    expect(after("Second_Activation")).toEqual(["Ahead"]);
    expect(after("First_Activation")).toEqual(["Second_Activation"]);
    // The content of the upload that the activation runs.
    const { locals } = synthesize(stack);
    const scripts = ["Ahead", "Second_Activation", "First_Activation"].map((end) => {
      const local = /\$\{local\.(\w+_Script_\w+)\}/.exec(JSON.stringify(data(end).provisioner))![1]!;
      return locals![local]!;
    });
    expect(scripts.map((script) => script.includes("ip -o address show to 192.0.2.20"))).toEqual([
      true,
      false,
      false,
    ]);
    const { environment } = data("TicketKeys").provisioner[0]["local-exec"];
    expect(environment).toMatchObject({
      FIRST_HOST: "192.0.2.11",
      FIRST_USER: "root",
      FIRST_PORT: 22,
      FIRST_HOST_KEY: HOST_KEY,
      FIRST_BECOME: "",
      SECOND_HOST: "192.0.2.12",
    });
  });

  test("the key by which certificates are copied is made like the secret, where there are certificates by ACME", () => {
    const [withAcme, without] = [newStack(), newStack()];
    const material = TlsMaterial.acme({ email: "a@example.org", agreeToTerms: true });
    pairOf({ publicName: "files.example.org", mode: Mode.tls({ material }) }, withAcme);
    pairOf({}, without);
    const data = dataOf(withAcme);
    expect(names(data("Ahead").depends_on)).toContain("terraform_data.pair_CopyKey");
    const scripts = ["TicketKeys", "CopyKey"].map(
      (id) => data(id).provisioner[0]["local-exec"].environment.EXCHANGE as string,
    );
    expect(scripts[1]).toBe(scripts[0]!.replaceAll("/shared/ticket-key", "/shared/copy-key"));
    expect(dataOf(without)("CopyKey")).toBeUndefined();
  });

  test("logins are given to OpenSSH as they are to Terraform", () => {
    const stack = newStack();
    const bastion = { address: "gate.example", user: "jump", hostKey: HOST_KEY, privateKeyFile: "~/jump" };
    const options = { user: "admin", sudo: true, hostKey: HOST_KEY, privateKeyFile: "/keys/a", bastion };
    pairOf({ hosts: [{ ...FIRST, delivery: Delivery.ssh(options) }, SECOND] }, stack);
    expect(dataOf(stack)("TicketKeys").provisioner[0]["local-exec"].environment).toMatchObject({
      FIRST_USER: "admin",
      FIRST_BECOME: "sudo -n",
      FIRST_AGENT: "false",
      FIRST_PRIVATE_KEY_FILE: '${pathexpand("/keys/a")}',
      FIRST_BASTION_HOST: "gate.example",
      FIRST_BASTION_USER: "jump",
      FIRST_BASTION_PORT: 22,
      FIRST_BASTION_PRIVATE_KEY_FILE: '${pathexpand("~/jump")}',
    });
  });

  test.each<[string, Partial<FrontEndPairProps<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>>]>([
    ["who brings the secret", { proxy: { ticketKeys: { file: "/etc/tickets" } } }],
    ["who serves without TLS", { mode: Mode.plain() }],
  ])("no secret is made for those %s", (_, more) => {
    const stack = newStack();
    pairOf(more, stack);
    expect(dataOf(stack)("TicketKeys")).toBeUndefined();
  });
});

describe("without one of the hosts", () => {
  type Resources = Record<
    string,
    { provisioner?: unknown; connection?: unknown; triggers_replace?: unknown }
  >;
  const resources = (without?: "first" | "second"): Resources => {
    const stack = newStack();
    const { node } = pairOf({ without }, stack);
    const warnings = said(
      node.metadata.map(({ data }) => String(data)).filter((text) => /left out/.test(text)),
    );
    expect(warnings).toHaveLength(without === undefined ? 0 : 1);
    return synthesize(stack).resource.terraform_data as Resources;
  };
  const isOf = (host: string) => (id: string) =>
    id.startsWith(`pair_${host}`) || id.startsWith(`pair_${host}Host`);

  test.each([
    ["first", "First", "Second"],
    ["second", "Second", "First"],
  ] as const)(
    "%s: nothing connects to it, and the other one gets all it gets otherwise",
    (without, gone, there) => {
      const [whole, left] = [resources(), resources(without)];
      // Nothing is created or destroyed, so what was delivered is still known.
      expect(Object.keys(left)).toEqual(Object.keys(whole));
      for (const [id, { provisioner, connection }] of Object.entries(left).filter(([id]) => isOf(gone)(id))) {
        expect([id, provisioner, connection]).toEqual([id, undefined, undefined]);
      }
      for (const id of Object.keys(left).filter(isOf(there))) expect(left[id]).toEqual(whole[id]);
      // Once it is back, what depends on this is delivered again.
      const staging = Object.keys(left).find((id) => id.startsWith(`pair_${gone}Host_Staging`))!;
      expect(left[staging]!.triggers_replace).not.toEqual(whole[staging]!.triggers_replace);
      const exchange = Object.entries(left).find(([id]) => id.startsWith("pair_TicketKeys"))![1];
      const script = JSON.stringify(exchange.provisioner);
      expect(script).toContain(`"$work/config\\" ${there.toLowerCase()} `);
      expect(script).not.toContain(`"$work/config\\" ${without} `);
    },
  );
});
