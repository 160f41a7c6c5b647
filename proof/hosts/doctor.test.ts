import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { type DeploymentInput, INCOMING_DIRECTORY } from "../../src/model/index.js";
import { DESTROYS, patternOf } from "./breakages.js";
import { type Diagnosis, diagnosis, DOCTOR, failed, notServed } from "./brokenHost.js";
import { eventually } from "../../testkit/waiting.js";
import { FileSyncHost, NODE, PORTICO } from "./fileSyncHost.js";
import { Namespace, type Result } from "./harness/index.js";

/** `portico doctor` on a real host; ways to break one are in `breakages.test.ts` and `breakagesAbove.test.ts`. */

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

test("a timer looks every day: what is wrong is in the journal, among the failed units, and told to an admin", async () => {
  const { host } = site;
  const look = (): Promise<Result> => host.run("systemctl start portico-doctor.service");
  const failedUnits = (): Promise<string> => host.must("systemctl --failed --plain --no-legend");
  /** Rows that are not in order, of the last run. */
  const said = async (): Promise<string[]> =>
    notOk(
      (await host.must("journalctl --sync; journalctl -u portico-doctor -o cat")).split("Starting ").at(-1)!,
    );
  const notOk = (text: string): string[] => text.split("\n").filter((line) => /^(?:FAIL|WARN|\?)/.test(line));
  expect(
    await host.must("systemctl is-enabled portico-doctor.timer; systemctl is-active portico-doctor.timer"),
  ).toBe("enabled\nactive\n");
  expect(await look()).toMatchObject({ code: 0 });
  // Its sandbox hides nothing from it.
  expect(await said()).toEqual(notOk(await host.must(DOCTOR)));
  await host.must("chmod 644 /etc/portico/tls/privkey.pem; nft flush ruleset");
  expect((await look()).code).not.toBe(0);
  expect(await said()).toEqual(notOk((await host.run(DOCTOR)).stdout));
  expect(await failedUnits()).toMatch(/^portico-doctor\.service /);
  await eventually(
    async () => (await host.run("ls /run/alert-of-portico-doctor")).code === 0,
    "until it is told",
  );
  expect(failed(await diagnosis(site)).sort()).toEqual(["files", "firewall", "tls"]);
  await host.must(`${PORTICO} activate --again`, { timeoutSeconds: 120 });
  expect(failed(await diagnosis(site))).toEqual([]);
  expect(await look()).toMatchObject({ code: 0 });
  expect(await failedUnits()).toBe("");
});

describe("a user who has become the application's", () => {
  const USER = "app-user";
  const MEDIA = "/srv/sync/media/icons/logo.png";
  const DOCUMENT = "/etc/portico/deployment.json";
  let original: DeploymentInput;

  beforeAll(async () => {
    const { host } = site;
    await host.must(`useradd --system ${USER} && chown -R ${USER}: /srv/sync`);
    original = JSON.parse(await host.must(`cat ${DOCUMENT}`)) as DeploymentInput;
    await deploy({ ...original, trees: original.trees!.map((tree) => ({ ...tree, fix: true })) });
  });
  afterAll(async () => {
    await deploy(original);
    await site.host.must(`chown -R root: /srv/sync && chmod -R a+rX /srv/sync/media`);
  });

  async function deploy(document: DeploymentInput): Promise<void> {
    await site.deliver(document);
    await site.host.must(`${PORTICO} activate --incoming ${INCOMING_DIRECTORY} 2>&1`, {
      timeoutSeconds: 120,
    });
  }

  const again = (mode = 600, program = PORTICO): Promise<Result> =>
    site.host.run(`chmod ${mode} ${MEDIA}; ${program} activate --again 2>&1`, { timeoutSeconds: 120 });

  /** What the user does, for ever, to each process that works in the user's files for root. */
  async function attacked<T>(act: string, during: () => Promise<T>): Promise<T> {
    const loop = `while :; do for pid in $(pgrep -u ${USER} -f as-owner); do ${act}; done; done\n`;
    await site.host.write("/opt/attack.sh", loop);
    // Each process lives for an instant: the attack must not miss one on a busy machine.
    await site.host.must(`systemd-run --quiet --unit=attack --nice=-20 --uid=${USER} /bin/sh /opt/attack.sh`);
    try {
      return await during();
    } finally {
      await site.host.must(`systemctl stop attack; pkill -KILL -u ${USER}; rm /opt/attack.sh`);
    }
  }

  test("opens no debugger in what works for root (SIGUSR1)", async () => {
    const act =
      "kill -USR1 $pid && echo . >> /tmp/sent; curl -s 127.0.0.1:9229/json > /tmp/debugger && echo > /tmp/open";
    await attacked(act, async () => {
      // On a busy machine the attack may miss every child of one activation.
      for (let sent = false, i = 0; !sent && i < 5; i++) {
        expect((await again()).code).toBe(0);
        sent = (await site.host.run("test -e /tmp/sent")).code === 0;
      }
    });
    const { stdout } = await site.host.run(
      "stat -c %a /srv/sync/media/icons/logo.png; ls /tmp/sent /tmp/open",
    );
    expect(stdout).toBe("604\n/tmp/sent\n");
  });

  const STOPPED = "[files.no-response]";

  test("holds up no deployment but one that changes the user's files (SIGSTOP)", async () => {
    const { host } = site;
    await attacked("kill -STOP $pid", async () => {
      let same = await again();
      // One that lived for too short a time to be stopped shows nothing.
      for (let left = 4; same.code === 0 && !same.stdout.includes(STOPPED) && left > 0; left--)
        same = await again();
      expect(same).toMatchObject({ code: 0, stdout: expect.stringContaining(STOPPED) });
      const settings = JSON.stringify(original.settings).replaceAll(/https:\/\/[^/"]+/g, "https://a.example");
      await site.deliver({ ...original, settings: JSON.parse(settings) as DeploymentInput["settings"] });
      const other = await host.run(`${PORTICO} activate --incoming ${INCOMING_DIRECTORY} 2>&1`, {
        timeoutSeconds: 120,
      });
      expect(other.code).toBe(1);
      // It ends at the first process that is stopped: one that reads, one that writes, or one that would take back.
      expect(other.stdout).toMatch(
        /was stopped \[files\.no-response\][^]*end them \(ps -o pid,stat,args -u \d+ lists them\)[^]*(?:nothing was changed|the host is as it was before|steps of the roll-back failed:\n\/srv\/sync\/conf\/)/,
      );
    });
  });

  const elsewhere = {
    path: "/usr/bin/env",
    code: "media-permissions",
    kind: "file",
    mode: 0o600,
    outside: false,
  };
  test.each([
    ["a path outside", [elsewhere], {}],
    [
      "changes of its own, to mode 4755",
      [elsewhere],
      { changes: [{ path: "/usr/bin/env", from: 0o755, to: 0o4755 }] },
    ],
    ["no end", undefined, {}],
  ])("is not believed a response with %s", async (_what, findings, more) => {
    const { host } = site;
    const response = JSON.stringify({
      response: { findings, looked: 1, complete: true, unseen: [], handedOver: [], ...more },
    });
    const message =
      findings === undefined
        ? `for (;;) fs.writeSync(1, "[[],".repeat(9999))`
        : `fs.writeSync(1, ${JSON.stringify(response)})`;
    // As if the user had taken the process over.
    await host.write(
      "/root/lies.mjs",
      `import fs from "node:fs";
      if (process.argv[2] === "as-owner") {
        process.setuid(Number(process.argv[3]));
        if (fs.readFileSync(0, "utf8").includes("findImage"))
          fs.writeSync(1, '{"response":{"image":"icons/logo.png","handedOver":[]}}');
        else { ${message}; }
      }
      else await import("/usr/lib/portico/portico.mjs");\n`,
    );
    const modes = (): Promise<string> =>
      host.must("find /usr/bin /etc/portico ! -type l -printf '%m %U %p\\n' | sort");
    const before = await modes();
    const { code, stdout } = await again(604, `${NODE} /root/lies.mjs`);
    expect(code).toBe(0);
    expect(stdout).toMatch(/the response does not match the request|the response is too long/);
    expect(await modes()).toBe(before);
    await host.must("rm /root/lies.mjs");
  });
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
});

test.each(DESTROYS)("$name", async ({ breaks, code, message, heals }) => {
  try {
    await site.host.must(breaks);
    const destroy = (): Promise<Result> =>
      site.host.run("/root/node /root/portico.mjs deactivate", { timeoutSeconds: 120 });
    const first = await destroy();
    expect({ code: first.code, said: first.stdout + first.stderr }).toEqual({
      code,
      said: expect.stringMatching(patternOf(message ?? "")),
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
});

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
