import { setTimeout as sleep } from "node:timers/promises";
import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { eventually } from "../../testkit/waiting.js";
import { terraformIsHere } from "../terraform/workspace.js";
import { startLoad } from "./deploy/load.js";
import { PairHosts, VIRTUAL } from "./pairHosts.js";
import type { TestHost } from "./harness/index.js";

/** Two hosts with one address: what clients notice when one of them fails, and when both are upgraded. */
const run = terraformIsHere() ? describe : describe.skip;

const FIVE_MINUTES = 300_000;

run("a pair of hosts", () => {
  let pair: PairHosts;
  /** Longest time without a response, by what happened. */
  const gaps: Record<string, number> = {};

  beforeAll(async () => {
    pair = await PairHosts.boot();
    await pair.synthesize();
  }, 600_000);

  afterAll(async () => {
    await pair?.remove();
    console.log("longest times without a response, ms:", gaps);
  });

  /** The address moves while a request is sent every 10 ms, and while transfers run on the host that gets it. */
  async function moves(name: string, fail: (holder: TestHost) => Promise<void>): Promise<TestHost> {
    const holder = await pair.holder();
    const other = pair.other(holder);
    const load = await startLoad(pair.hosts[0], other.address);
    const report = await pair.probe(async () => {
      await sleep(500);
      expect(await pair.holder()).toBe(holder);
      await fail(holder);
      await eventually(
        async () => (await other.run(`ip -4 -o address show to ${VIRTUAL}`)).stdout !== "",
        "until the other host has the address",
        { everyMs: 50 },
      );
      await sleep(1_000);
    });
    const { failures, transfers } = await load.stop();
    gaps[name] = report.longestGapMs;
    expect({ failures, lost: transfers.filter(({ failure }) => failure !== undefined) }).toEqual({
      failures: [],
      lost: [],
    });
    expect(report.longestGapMs).toBeLessThan(1_000);
    return holder;
  }

  test(
    "one of them has the address, both have the same ticket key, and state has none",
    async () => {
      const said = await pair.must("apply -input=false -auto-approve");
      await pair.settled();
      const keys = await Promise.all(
        pair.hosts.map((host) => host.must("cat /var/lib/portico/shared/ticket-key")),
      );
      expect(keys[0]).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
      expect(keys[1]).toBe(keys[0]);
      for (const text of [said, pair.state]) {
        expect(text).not.toContain(keys[0]!.trim());
        expect(text).not.toContain("PRIVATE KEY");
      }
      for (const host of pair.hosts) {
        expect(await host.must("cat /srv/sync/conf/network.conf")).toContain(
          `SERVICE_URL = https://${VIRTUAL}/sync\n`,
        );
      }
      expect(await pair.must("plan -input=false -detailed-exitcode")).toContain("No changes.");
    },
    FIVE_MINUTES,
  );

  test(
    "a new secret for tickets: the file is removed from both, and the exchange run again",
    async () => {
      const keys = (command: string): Promise<string[]> =>
        Promise.all(pair.hosts.map((host) => host.must(`${command} /var/lib/portico/shared/ticket-key`)));
      const [before] = await keys("cat");
      await keys("rm");
      const [exchange] = /^terraform_data\.pair_TicketKeys_\S+$/m.exec(await pair.must("state list"))!;
      await pair.must(`apply -input=false -auto-approve -replace=${exchange}`);
      const [first, second] = await keys("cat");
      expect(first).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
      expect(first).not.toBe(before);
      expect(second).toBe(first);
    },
    FIVE_MINUTES,
  );

  test("a session begun with one host is resumed by the other", async () => {
    const [first, second] = pair.hosts.map(({ address }) => address);
    const client = "openssl s_client -tls1_2 -sess_out /tmp/pair.session -connect";
    const resumed = "openssl s_client -tls1_2 -sess_in /tmp/pair.session -connect";
    // Each takes the changed secret in its time.
    await eventually(async () => {
      await pair.outside.must(`${client} ${first}:443 < /dev/null`);
      const said = await pair.outside.must(`${resumed} ${second}:443 < /dev/null`);
      return said.includes("Reused, TLSv1.2");
    }, "until a session is resumed");
  });

  test("the master of the holder is killed", async () => {
    await moves("master killed", async (holder) => {
      await holder.must("systemctl kill --signal=KILL --kill-who=main portico.service");
    });
    await pair.settled();
  });

  test("readiness is lost", async () => {
    const lost = await moves("readiness lost", async (holder) => {
      await holder.must("systemctl stop portico.socket portico.service");
    });
    await lost.must("systemctl start portico.socket portico.service");
    await pair.settled();
    // It is ready again, and that moves nothing.
    expect(await pair.holder()).not.toBe(lost);
  });

  test(
    "both are upgraded, and no request is lost",
    async () => {
      const holder = await pair.holder();
      await pair.synthesize({ version: "0.1.1" });
      const load = await startLoad(pair.hosts[0], VIRTUAL);
      const said = await pair.must("apply -input=false -auto-approve");
      const { failures, transfers } = await load.stop();
      // The one that has the address comes last.
      expect(holder).toBe(pair.hosts[0]);
      expect(
        [...said.matchAll(/pair_(\w+)_[0-9A-F]{8} \(remote-exec\): portico upgrade/g)].map(([, id]) => id),
      ).toEqual(["Second_Activation", "First_Activation"]);
      expect({ failures, lost: transfers.filter(({ failure }) => failure !== undefined) }).toEqual({
        failures: [],
        lost: [],
      });
      expect(await pair.holder()).toBe(holder);
      for (const { address } of pair.hosts) {
        const head = await pair.outside.must(`curl -sI http://${address}/ -H 'Host: other.example'`);
        expect(head).toContain("Server: portico/0.1.1\r\n");
      }
    },
    FIVE_MINUTES,
  );

  test("the network of the holder is cut", async () => {
    const cut = await moves("network cut", async (holder) => {
      await (await holder.outside()).must("ip link set host nomaster");
    });
    await (await cut.outside()).must("ip link set host master lan");
    await pair.settled();
  });

  test(
    "one host is gone: the other is changed alone, and gives it everything when it is back, empty",
    async () => {
      const [first, second] = pair.hosts;
      const release = async ({ address }: TestHost): Promise<string> => {
        const asked = `curl -sI -m 5 http://${address}/ -H 'Host: other.example'`;
        return /portico\/(\S+)/.exec((await pair.outside.run(asked)).stdout)?.[1] ?? "none";
      };
      const key = await second.must("cat /var/lib/portico/shared/ticket-key");
      const network = await first.outside();
      // The second one, which the first is the way to, goes on alone.
      await network.must("ip link set host down");
      await pair.synthesize({ version: "0.1.2", without: "first", direct: true });
      await pair.must("apply -input=false -auto-approve");
      expect([await release(first), await release(second)]).toEqual(["none", "0.1.2"]);
      expect(await pair.must("plan -input=false -detailed-exitcode")).toContain("No changes.");

      await first.must(
        `/var/lib/portico/deployment/command deactivate --purge && rm -rf /var/lib/portico /root/.portico`,
      );
      await network.must("ip link set host up");
      await pair.synthesize({ version: "0.1.2" });
      await pair.must("apply -input=false -auto-approve");
      await pair.settled();
      expect([await release(first), await release(second)]).toEqual(["0.1.2", "0.1.2"]);
      for (const host of pair.hosts)
        expect(await host.must("cat /var/lib/portico/shared/ticket-key")).toBe(key);
    },
    FIVE_MINUTES,
  );

  describe("what keeps the address from moving, before it has to move", () => {
    const doctor = async (host: TestHost): Promise<DiagnosisRow[]> => {
      const { stdout } = await host.run("/var/lib/portico/deployment/command doctor --json --timeout 8");
      const { rows } = JSON.parse(stdout) as { rows: DiagnosisRow[] };
      return rows.filter(({ status }) => status === "failed");
    };
    const DROP =
      "table inet other {\n chain input {\n type filter hook input priority -5; policy accept;\n ip protocol 112 drop\n }\n}\n";

    // Objects: jest passes a callback in the place of a column that a row of an array leaves out.
    test.each<{ what: string; breaks: string; row: string; says: string; undo?: string }>([
      {
        what: "its unit is stopped",
        breaks: "systemctl stop portico-address",
        row: "units",
        says: "portico-address.service: is inactive",
      },
      {
        what: "readiness is not watched",
        breaks: "systemctl stop portico-ready",
        row: "units",
        says: "portico-ready.service: is inactive: it should run",
      },
      {
        what: "readiness is frozen",
        breaks: "systemctl kill --signal=SIGSTOP portico-ready",
        row: "units",
        says: "portico-ready.service: its process",
      },
      {
        what: "keepalived is removed",
        breaks: "mv /usr/sbin/keepalived /root/",
        row: "units",
        says: "portico-address.service: its program /usr/sbin/keepalived does not exist",
        undo: "mv /root/keepalived /usr/sbin/",
      },
      {
        what: "VRRP is filtered",
        breaks: `printf '${DROP}' | nft -f -`,
        row: "outside",
        says: "keeps VRRP from the other host",
      },
    ])(
      "$what",
      async ({ breaks, row, says, undo }) => {
        const waiting = pair.other(await pair.holder());
        expect(await doctor(waiting)).toEqual([]);
        await waiting.must(breaks);
        const [first] = await doctor(waiting);
        expect([first?.id, [first?.cause, ...(first?.evidence ?? [])].join("\n")]).toEqual([
          row,
          expect.stringContaining(says),
        ]);
        // As it is printed, without what is said to a person.
        await waiting.must(undo ?? first!.fix!.replace(/; to make it last.*/, ""));
        await pair.settled();
        expect(await doctor(waiting)).toEqual([]);
      },
      FIVE_MINUTES,
    );
  });

  test(
    "a destroy leaves nothing",
    async () => {
      await pair.must("destroy -auto-approve");
      expect(await pair.holders()).toEqual([]);
      for (const host of pair.hosts) {
        expect(await host.must("find / -xdev -name '*portico*'")).toBe("");
        expect(await host.must("systemctl --failed --plain --no-legend")).toBe("");
        expect((await host.run("pgrep keepalived")).stdout).toBe("");
      }
    },
    FIVE_MINUTES,
  );
});
