import type { DiagnosisRow } from "../../src/diagnosis/verdict.js";
import { DESTROYS, patternOf } from "./breakages.js";
import { breakInTurn, type Diagnosis, diagnosis, DOCTOR, failed, notServed } from "./brokenHost.js";
import { FileSyncHost } from "./fileSyncHost.js";
import { Namespace, type Result } from "./harness/index.js";

/** `portico doctor` on a real host that is broken in one way after the other. */

let site: FileSyncHost;
beforeAll(async () => {
  site = await FileSyncHost.boot("doctor");
}, 600_000);
afterAll(() => site?.remove());

test("a host in order has no row that fails", async () => {
  const all = await diagnosis(site);
  expect(failed(all)).toEqual([]);
  expect(all.code).toBe(0);
  const { stdout } = await site.host.run(DOCTOR);
  expect(stdout).toMatch(/ 0 failed/);
});

/** Those that break the host as such are in `breakages.test.ts`, on a host of their own. */
breakInTurn("Logs", () => site);
breakInTurn("The application", () => site);
breakInTurn("Activation and its store", () => site);

test("nothing is left broken, and the secret key was never shown", async () => {
  expect(failed(await diagnosis(site))).toEqual([]);
  const { stdout } = await site.host.run(`${DOCTOR} --json; ${DOCTOR}`);
  expect(stdout).not.toContain("not to be shown");
});

test("a router without NAT loopback: works from outside, not from inside", async () => {
  const PUBLIC = "198.51.100.7";
  // In these namespaces only; those for documentation count as private.
  const PROVIDED = "198.41.0.4";
  const router = await site.host.outside();
  const internet = await Namespace.create();
  try {
    await router.connect(
      internet,
      { name: "wan", addresses: [`${PUBLIC}/24`] },
      { name: "eth0", addresses: ["198.51.100.1/24"] },
    );
    // What crosses the bridge is no business of its packet filter, where this kernel has one.
    await router.must("sysctl -qw net.ipv4.ip_forward=1; sysctl -qew net.bridge.bridge-nf-call-iptables=0");
    const forward = (more: string): string => `nft -f - <<'EOF'
table ip nat {
  chain in { type nat hook prerouting priority dstnat; ${more}ip daddr ${PUBLIC} tcp dport { 80, 443 } dnat to ${site.host.address}
  }
  chain out { type nat hook postrouting priority srcnat; ip saddr 203.0.113.0/24 ip daddr ${site.host.address} masquerade; oifname "wan" masquerade
  }
}
EOF`;
    await router.must(forward('iifname "wan" '));
    const fromOutside = await internet.run(`curl -sk -o /dev/null -w '%{http_code}' https://${PUBLIC}/sync/`);
    expect(fromOutside.stdout).toBe("302");
    // Deployed for the public address, which a provider's NAT translates: the host itself does not get there.
    const deployment = "/root/translated.json";
    await site.host.must(
      `sed 's/"203.0.113.10"/"${PROVIDED}"/' /etc/portico/deployment.json > ${deployment}`,
    );
    const translated = await diagnosis(site, `--deployment ${deployment}`);
    expect(failed(translated)).not.toContain("addresses");
    expect(translated.rows.find(({ id }) => id === "addresses")!.evidence).toEqual([
      `${PROVIDED}: no interface has it; a router translates it to ${site.host.address}`,
    ]);
    expect(translated.rows.find(({ id }) => id === "hairpin")).toMatchObject({ status: "unknown" });
    const without = await diagnosis(site, `--public-address ${PUBLIC}`);
    expect(failed(without)).toEqual(["hairpin"]);
    const row = without.rows.find(({ id }) => id === "hairpin")!;
    expect(row.cause).toBe("the router lacks NAT loopback (hairpinning)");
    await router.must(`nft delete table ip nat && ${forward("")}`);
    const fixed = await diagnosis(site, `--public-address ${PUBLIC}`);
    expect(fixed.rows.find(({ id }) => id === "hairpin")).toMatchObject({ status: "ok" });
    expect(failed(fixed)).toEqual([]);
  } finally {
    await router.run("nft delete table ip nat");
    internet.remove();
  }
}, 60_000);

test("from another machine the network is checked, and the rest is reported as not visible", async () => {
  const outside = await site.host.outside();
  const files = await site.copyDocuments();
  const doctor = (more = ""): string =>
    `${process.execPath} ${files.runtime} doctor --json --elsewhere --timeout 3 --config ${files.config} --deployment ${files.deployment} ${more}`;
  const ask = async (): Promise<Diagnosis> => {
    const { code, stdout } = await outside.run(doctor());
    return { code, rows: (JSON.parse(stdout) as { rows: DiagnosisRow[] }).rows };
  };
  const inOrder = await ask();
  expect(failed(inOrder)).toEqual([]);
  const unseen = inOrder.rows.flatMap(({ id, status }) => (status === "unknown" ? [id] : []));
  expect(unseen).toEqual(expect.arrayContaining(["config", "proxy", "avatar", "public-urls"]));
  await site.host.must("systemctl stop portico.socket portico.service");
  try {
    expect(failed(await ask())).toEqual(["ports"]);
  } finally {
    await site.host.must("systemctl start portico.socket portico.service");
  }
}, 60_000);

test.each(DESTROYS)(
  "$name",
  async ({ breaks, code, says, heals }) => {
    try {
      await site.host.must(breaks);
      const destroy = (): Promise<Result> =>
        site.host.run("/root/node /root/portico.mjs deactivate", { timeoutSeconds: 120 });
      const first = await destroy();
      expect({ code: first.code, said: first.stdout + first.stderr }).toEqual({
        code,
        said: expect.stringMatching(patternOf(says)),
      });
      if (heals !== undefined) {
        await site.host.must(heals);
        expect((await destroy()).code).toBe(0);
      }
      const left = await site.host.run(`ls -d ${TRACES.join(" ")} 2> /dev/null; nft list tables`);
      expect(left.stdout).toBe("");
      expect(await site.host.must("systemctl is-active sync-web sync-fileServer sync-webdav")).toBe(
        "active\n".repeat(3),
      );
    } finally {
      await site.activateAnew();
    }
    expect([failed(await diagnosis(site)), await notServed(site)]).toEqual([[], []]);
  },
  180_000,
);

/** What a deployment puts on a host, beside the application's own settings. */
const TRACES = [
  "/etc/portico",
  "/etc/logrotate.d/portico",
  "/etc/systemd/system/portico*",
  "/etc/systemd/system/nftables.service.d",
  "/usr/share/portico",
  "/etc/systemd/system/*.wants/portico*",
  "/var/lib/portico/deployment",
];
