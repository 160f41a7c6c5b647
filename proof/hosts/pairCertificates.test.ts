import { eventually } from "../../testkit/waiting.js";
import { terraformIsHere } from "../terraform/workspace.js";
import { HostCa } from "./deploy/hostCa.js";
import { differences, hostTree } from "./deploy/hostTree.js";
import type { TestHost } from "./harness/index.js";
import { PairHosts, VIRTUAL } from "./pairHosts.js";

/** Certificates by ACME on a pair: the host that has the address asks the authority, and the other one gets them. */
const run = terraformIsHere() ? describe : describe.skip;

const FIVE_MINUTES = 300_000;
const CA = "203.0.113.1";
const ROOTS = "/etc/ssl/private-ca.pem";
const STATE = "/var/lib/private/portico-certificates/acme";
const COPY_KEY = "/var/lib/portico/shared/copy-key";
const PORTICO = "/var/lib/portico/deployment/command";

run("certificates by ACME on a pair", () => {
  let pair: PairHosts;
  let ca: HostCa;
  let before: readonly ReadonlyMap<string, string>[];
  /** Everything that Terraform said. */
  let said = "";

  beforeAll(async () => {
    pair = await PairHosts.boot();
    ca = await HostCa.start(pair.outside, CA);
    for (const host of pair.hosts) await host.write(ROOTS, ca.roots);
    before = await Promise.all(pair.hosts.map((host) => hostTree(host)));
    await pair.synthesize({ acme: { directory: ca.directory, roots: ROOTS } });
  }, 600_000);

  afterAll(async () => {
    ca?.remove();
    await pair?.remove();
  });

  test(
    "the holder of the address gets a certificate, and the other one serves the same",
    async () => {
      said += await pair.must("apply -input=false -auto-approve");
      await pair.settled();
      const holder = await pair.holder();
      await eventually(
        async () => new Set(await bothServe()).size === 1,
        "until both serve the same certificate",
        { everyMs: 200 },
      );
      const [first, second] = await bothServe();
      expect(first).toMatch(/issuer=.*Pebble/);
      expect(first).toContain(`IP Address:${VIRTUAL}`);
      expect(second).toBe(first);
      expect(ca.orders).toBe(1);
      expect(await kept(pair.other(holder))).toEqual(await kept(holder));
      expect(await log(holder)).toMatch(/copied to 203\.0\.113\.\d+: certificate for 203\.0\.113\.20$/m);
      expect(await log(pair.other(holder))).toMatch(/taken from 203\.0\.113\.\d+: certificate for/);
      said += await pair.must("plan -input=false -detailed-exitcode");
    },
    FIVE_MINUTES,
  );

  test("what they share is nowhere else, and nobody else reaches where it is copied", async () => {
    const [first, second] = pair.hosts;
    const key = await first.must(`cat ${COPY_KEY}`);
    expect(await second.must(`cat ${COPY_KEY}`)).toBe(key);
    const documents = await Promise.all(
      pair.hosts.map((host) =>
        host.must("cat /etc/portico/*.json /var/log/portico/*; journalctl --no-pager"),
      ),
    );
    const secret = await first.must(`cat ${STATE}/*/account.json ${STATE}/certificates/*/*.pem`);
    const lines = [key.trim(), ...secret.replaceAll("\\n", "\n").match(/^[\w+/=]{60,}$/gm)!];
    expect(lines.length).toBeGreaterThan(10);
    for (const text of [said, pair.synthesized, pair.state, ...documents]) {
      expect(text).not.toContain("PRIVATE KEY");
      expect(lines.filter((line) => text.includes(line))).toEqual([]);
    }
    for (const host of pair.hosts) {
      const modes = await host.must(`find ${STATE}/ -printf '%m %y\\n' | sort -u`);
      expect(modes).toBe("600 f\n700 d\n");
      expect(await host.must("systemctl show -P NRestarts portico-copies.service")).toBe("0\n");
      // From the network outside, past the firewall's rule for the other host.
      const reached = await pair.outside.run(`timeout 2 bash -c '< /dev/tcp/${host.address}/9181'`);
      expect(reached.code).not.toBe(0);
    }
  });

  test(
    "the holder dies: the other one serves the same, renews it by the same account, and gives it back",
    async () => {
      const dead = await pair.holder();
      const other = pair.other(dead);
      const [serving] = await bothServe();
      const lan = await dead.outside();
      await lan.must("ip link set host nomaster");
      await eventually(async () => (await served(VIRTUAL)) !== "", "until the address responds", {
        everyMs: 100,
      });
      expect(await served(VIRTUAL)).toBe(serving);
      // It has just been issued, so the other one has to be asked to.
      const renewed = await other.run(`${PORTICO} certificates renew`);
      expect(renewed).toEqual({ code: 0, stdout: `renewed: ${VIRTUAL}\n`, stderr: "" });
      const next = await served(VIRTUAL);
      expect(next).not.toBe(serving);
      expect(ca.orders).toBe(2);
      expect((await kept(other)).account).toBe((await kept(dead)).account);
      await eventually(async () => /not copied to/.test(await log(other)), "until the log says so");

      await lan.must("ip link set host master lan");
      await pair.settled();
      await eventually(
        async () => (await served(dead.address)) === next,
        "until the host that is back serves the renewed one",
        { everyMs: 500 },
      );
      expect((await kept(dead)).certificate).toBe((await kept(other)).certificate);
      expect(ca.orders).toBe(2);
    },
    FIVE_MINUTES,
  );

  test(
    "another runtime is taken by what copies as well",
    async () => {
      const pids = async (): Promise<string[]> =>
        Promise.all(pair.hosts.map((host) => host.must("systemctl show -P MainPID portico-copies.service")));
      const old = await pids();
      await pair.synthesize({ version: "0.1.1", acme: { directory: ca.directory, roots: ROOTS } });
      said += await pair.must("apply -input=false -auto-approve");
      await eventually(
        async () => (await pids()).every((pid, i) => pid !== old[i] && pid !== "0\n"),
        "until both run anew",
        { everyMs: 500 },
      );
      expect(ca.orders).toBe(2);
    },
    FIVE_MINUTES,
  );

  test(
    "with a new key, after one of them began anew, the other one follows",
    async () => {
      const [key] = await Promise.all(
        pair.hosts.map((host) => host.must(`cat ${COPY_KEY} && rm ${COPY_KEY}`)),
      );
      const address = /terraform_data\.pair_CopyKey_\w+/.exec(await pair.must("state list"))![0];
      said += await pair.must(`apply -input=false -auto-approve -replace=${address}`);
      const keys = await Promise.all(pair.hosts.map((host) => host.must(`cat ${COPY_KEY}`)));
      expect(keys[1]).toBe(keys[0]);
      expect(keys[0]).not.toBe(key);
      await pair.hosts[0].must("systemctl restart portico-copies.service");
      const holder = await renewedByHolder();
      const next = await served(VIRTUAL);
      await eventually(
        async () => (await served(pair.other(holder).address)) === next,
        "until the other one serves the renewed one",
        { everyMs: 500 },
      );
    },
    FIVE_MINUTES,
  );

  test(
    "a destroy leaves both hosts as they were",
    async () => {
      await pair.must("destroy -auto-approve");
      for (const [i, host] of pair.hosts.entries())
        expect(differences(before[i]!, await hostTree(host))).toEqual([]);
    },
    FIVE_MINUTES,
  );

  /** What clients of an address get: serial number, issuer and names; empty if it does not respond. */
  async function served(address: string): Promise<string> {
    const { stdout } = await pair.outside.run(
      `timeout 20 openssl s_client -connect ${address}:443 -noservername < /dev/null 2> /dev/null | openssl x509 -noout -issuer -serial -ext subjectAltName`,
    );
    return stdout;
  }

  /** Asks the host that has the address; again, if the address moved while it was asked, as it does on a busy machine. */
  async function renewedByHolder(): Promise<TestHost> {
    for (;;) {
      await pair.settled();
      const holder = await pair.holder();
      const before = await moves();
      const renewed = await holder.run(`${PORTICO} certificates renew`);
      if (renewed.code !== 0 && (await moves()) > before) continue;
      expect(renewed).toEqual({ code: 0, stdout: `renewed: ${VIRTUAL}\n`, stderr: "" });
      return holder;
    }
  }

  async function moves(): Promise<number> {
    const logs = await Promise.all(
      pair.hosts.map((host) => host.must("journalctl -u portico-address.service --output=cat --no-pager")),
    );
    return logs.join("").split("Entering MASTER STATE").length - 1;
  }

  const bothServe = (): Promise<string[]> => Promise.all(pair.hosts.map(({ address }) => served(address)));

  /** What a host has on its disk. */
  async function kept(host: TestHost): Promise<{ account: string; certificate: string }> {
    const { key } = JSON.parse(await host.must(`cat ${STATE}/*/account.json`)) as { key: string };
    return { account: key, certificate: await host.must(`cat ${STATE}/certificates/*/certificate.pem`) };
  }

  const log = (host: TestHost): Promise<string> =>
    host.must("journalctl -u portico-copies.service --output=cat --no-pager");
});
