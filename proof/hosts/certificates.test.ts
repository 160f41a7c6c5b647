import { terraformIsHere } from "../terraform/workspace.js";
import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { Deployment } from "./deploy/deployment.js";
import { HostCa, TOKEN } from "./deploy/hostCa.js";
import { differences, hostTree } from "./deploy/hostTree.js";
import { startLoad } from "./deploy/load.js";
import { eventually } from "../../testkit/waiting.js";
import { bootHost, type Namespace, type Result, type TestHost } from "./harness/index.js";

/**
 * Certificates by ACME on a real host, deployed over ssh: the hardened unit asks an authority in the network outside,
 * for the host's addresses and for names.
 */
const run = terraformIsHere() ? describe : describe.skip;

const FIVE_MINUTES = 300_000;
/** Above the IPv4 address, byte by byte: Pebble compares a request with its order by two ways of sorting addresses. */
const ADDRESS6 = "fd00:113::10";
const ROOTS = "/etc/ssl/private-ca.pem";
const PORTICO = "/var/lib/portico/deployment/command";
const STATE = "/var/lib/private/portico-certificates";
const OFFICE = "office.example.net";
const LATE = "late.example.net";
const WILD = "*.wild.example.net";

run("certificates by ACME", () => {
  let host: TestHost;
  let outside: Namespace;
  let ca: HostCa;
  let deployment: Deployment;
  let before: ReadonlyMap<string, string>;
  /** Everything that Terraform said. */
  let said = "";
  /** The network outside, where no web server is. */
  let elsewhere: string;

  beforeAll(async () => {
    host = await bootHost({ name: "certificates", address6: ADDRESS6 });
    outside = await host.outside();
    elsewhere = host.address.replace(/\.\d+$/, ".1");
    ca = await HostCa.start(outside, elsewhere);
    deployment = new Deployment(host, {
      privateKeyFile: host.sshKey,
      hostKey: await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub"),
      whenDestroyed: "purge",
    });
    await deployment.installApplication();
    await host.write(ROOTS, ca.roots);
    await host.write("/usr/local/bin/dns-record", ca.dnsProgram);
    await host.write("/etc/dns-token", `${TOKEN}\n`);
    await host.must("chmod 755 /usr/local/bin/dns-record && chmod 600 /etc/dns-token");
    before = await hostTree(host);
    await deployment.buildRuntime();
    synthesize([OFFICE], true);
    deployment.init();
  }, 600_000);

  afterAll(async () => {
    ca?.remove();
    deployment?.remove();
    await host?.stop();
  });

  test(
    "an apply that requires them fails while a name leads elsewhere, in the authority's words",
    async () => {
      await ca.setAddress(OFFICE, elsewhere);
      const { code, stdout } = await apply();
      expect(code).toBe(1);
      expect(stdout).toMatch(
        /failed: office\.example\.net: has no certificate yet: 203\.0\.113\.1 has not issued it: .*the authority could not connect to port 80: .*refused.* \[activation\.no-certificate\]/,
      );
      expect(stdout).toMatch(
        /fix: +Make port 80 of this host reachable from the internet as office\.example\.net: .* Then apply again\./,
      );
      // The other certificate is under way, and no reason to fail.
      expect(stdout).not.toMatch(/203\.0\.113\.10.*has no certificate/);
      expect(stdout).toContain("not activated; the host is as it was before");
      expect((await host.run("systemctl is-active portico.service portico.socket")).stdout).not.toMatch(
        /^active/m,
      );
    },
    FIVE_MINUTES,
  );

  test(
    "and waits for them when it leads to the host: by name, by address, and over IPv6",
    async () => {
      await ca.setAddress(OFFICE, host.address);
      const { code, stdout, stderr } = await apply();
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(/waiting for the certificate for .*office\.example\.net/);
      expect(stdout).not.toContain("WAIT");
      const [address, office] = [await served(), await served(OFFICE)];
      for (const one of [address, office]) expect(one.issuer).toMatch(/Pebble/);
      expect(address.names).toContain(`IP Address:${host.address}`);
      expect(address.names).toMatch(/IP Address:FD00:113:/);
      expect(office.names).toBe(`DNS:${OFFICE}`);
      expect((await served(undefined, `[${host.address6}]`)).serial).toBe(address.serial);
      expect(await outside.must(`curl -sk --resolve ${OFFICE}:443:${host.address} https://${OFFICE}/`)).toBe(
        `${OFFICE}\n`,
      );
      expect(await deployment.planned()).toEqual([]);
    },
    FIVE_MINUTES,
  );

  test("what it keeps is the service's alone, and nowhere else", async () => {
    const modes = await host.must(`find ${STATE}/ -printf '%m %y %P\\n'`);
    expect(
      new Set(
        modes
          .trimEnd()
          .split("\n")
          .map((line) => line.slice(0, 5)),
      ),
    ).toEqual(new Set(["700 d", "600 f"]));
    expect(modes).toMatch(/600 f acme\/[^/]+\/account\.json\n/);
    expect(modes.match(/600 f acme\/certificates\/[^/]+\/certificate\.pem\n/g)).toHaveLength(2);
    const secret = await host.must(`cat ${STATE}/acme/*/account.json ${STATE}/acme/certificates/*/*.pem`);
    expect(secret.match(/BEGIN PRIVATE KEY/g)).toHaveLength(3);
    const lines = secret.replaceAll("\\n", "\n").match(/^[\w+/=]{60,}$/gm)!;
    expect(lines.length).toBeGreaterThan(2 * 20);
    const documents = await host.must("cat /etc/portico/*.json /var/log/portico/*; journalctl -u portico");
    for (const text of [said, deployment.synthesized, deployment.state, documents]) {
      expect(text).not.toContain("PRIVATE KEY");
      expect(lines.filter((line) => text.includes(line))).toEqual([]);
    }
  });

  test(
    "an apply before the name leads here says what it waits for; then the certificate is taken under load",
    async () => {
      await ca.setAddress(LATE, elsewhere);
      synthesize([OFFICE, LATE]);
      const { code, stdout } = await apply();
      expect(code).toBe(0);
      expect(stdout).toMatch(
        /WAIT {2}certificate for late\.example\.net: (?:requested from 203\.0\.113\.1|203\.0\.113\.1 has not issued it: .*the authority could not connect to port 80: .*Make port 80.*) \| until then, a temporary certificate is served; .*`portico certificates/,
      );
      expect((await served(LATE)).issuer).toMatch(/temporary/);
      // The apply does not wait for the authority, which may still be trying to connect.
      const refused = async () => (await portico("certificates")).stdout.includes("last error");
      await eventually(refused, "for the authority to give up", { everyMs: 500 });
      const diagnosis = await failedRows(/could not connect to port 80/);
      expect(diagnosis).toEqual(["acme-port"]);
      const list = await portico("certificates");
      expect(list.code).toBe(1);
      expect(list.stdout).toMatch(
        /^office\.example\.net +Pebble .* \d+ +ACME \(203\.0\.113\.1\) +20.* UTC$/m,
      );
      expect(list.stdout).toMatch(
        /^late\.example\.net .* temporary, until 203\.0\.113\.1 issues one +20.*\n {2}last error.*\n {2}fix: .*\n {2}then: portico certificates renew late\.example\.net$/m,
      );

      const [pid, reloads] = [await mainPid(), await reloadCount()];
      const load = await startLoad(host);
      await ca.setAddress(LATE, host.address);
      const renewed = await portico(`certificates renew ${LATE}`);
      expect(renewed).toMatchObject({ code: 0, stdout: `renewed: ${LATE}\n` });
      expect((await served(LATE)).issuer).toMatch(/Pebble/);
      const { failures, transfers, responses } = await load.stop();
      expect([failures, transfers.filter(({ failure }) => failure !== undefined)]).toEqual([[], []]);
      for (const count of Object.values(responses)) expect(count).toBeGreaterThan(0);
      expect([await mainPid(), await reloadCount()]).toEqual([pid, reloads]);
      expect((await portico("certificates")).code).toBe(0);
      expect(await failedRows(/./)).toEqual([]);
    },
    FIVE_MINUTES,
  );

  test(
    "a wildcard is proved by a program, in the hardened unit, with a secret that only root can read",
    async () => {
      synthesize([OFFICE, LATE, WILD]);
      expect((await apply()).code).toBe(0);
      const name = WILD.replace("*", "any");
      const isIssued = async () => (await served(name)).issuer.includes("Pebble");
      await eventually(isIssued, "for the wildcard", { everyMs: 500 });
      expect((await served(name)).names).toBe(`DNS:${WILD}`);
      expect(await outside.must(`curl -sk --resolve ${name}:443:${host.address} https://${name}/`)).toBe(
        `${WILD}\n`,
      );
      const log = await host.must("cat /var/log/portico/*; journalctl -u portico");
      expect(log).not.toContain(TOKEN);
    },
    FIVE_MINUTES,
  );

  test(
    "an authority that is down is named, and the certificate stays; it is asked again when it is back",
    async () => {
      const { serial } = await served(OFFICE);
      await ca.kill();
      const refused = await portico(`certificates renew ${OFFICE}`);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toMatch(
        /the authority cannot be reached: .*\n?[^]*Let this host open connections to https:/,
      );
      expect(await failedRows(/the authority cannot be reached/)).toEqual(["acme-authority"]);
      expect((await served(OFFICE)).serial).toBe(serial);
      await ca.startPebble();
      expect((await portico(`certificates renew ${OFFICE}`)).stdout).toBe(`renewed: ${OFFICE}\n`);
      expect((await served(OFFICE)).serial).not.toBe(serial);
      expect(await failedRows(/./)).toEqual([]);
    },
    FIVE_MINUTES,
  );

  test(
    "port 80 that a filter closes for the authority is named",
    async () => {
      await host.must(
        `nft 'add table inet closed; add chain inet closed in { type filter hook input priority -300; }; add rule inet closed in ip saddr ${elsewhere} tcp dport 80 reject with tcp reset'`,
      );
      const refused = await portico(`certificates renew ${OFFICE}`);
      const rows = await failedRows(
        /Make port 80 of this host reachable from the internet as office\.example\.net/,
      );
      await host.must("nft delete table inet closed");
      expect(refused).toMatchObject({
        code: 1,
        stdout: "",
        stderr: expect.stringMatching(/could not connect to port 80/),
      });
      expect(rows).toEqual(["acme-port"]);
      expect((await portico(`certificates renew ${OFFICE}`)).code).toBe(0);
    },
    FIVE_MINUTES,
  );

  test(
    "a restart and a reboot order nothing, and serve the same",
    async () => {
      const names = [undefined, OFFICE, LATE];
      const all = async (): Promise<string[]> =>
        Promise.all(names.map(async (name) => (await served(name)).serial));
      const [serials, orders] = [await all(), ca.orders];
      await host.must("systemctl restart portico.service");
      expect(await all()).toEqual(serials);
      await host.reboot();
      expect(await all()).toEqual(serials);
      expect(await portico("certificates")).toMatchObject({ code: 0 });
      expect(ca.orders).toBe(orders);
      expect(orders).toBeGreaterThan(4);
    },
    FIVE_MINUTES,
  );

  test(
    "a destroy leaves the host as it was",
    async () => {
      const { code, stdout, stderr } = await deployment.terraform("destroy -auto-approve -no-color");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("/var/lib/portico-certificates/acme: removed");
      expect(differences(before, await hostTree(host))).toEqual([]);
    },
    FIVE_MINUTES,
  );

  function synthesize(names: readonly string[], requireCertificate?: boolean): void {
    deployment.synthesize({ acme: { directory: ca.directory, roots: ROOTS, names, requireCertificate } });
  }

  async function apply(): Promise<Result> {
    const result = await deployment.terraform("apply -input=false -auto-approve -no-color");
    said += result.stdout + result.stderr;
    return result;
  }

  const portico = (command: string): Promise<Result> => host.run(`${PORTICO} ${command}`);

  /** Ids of doctor's rows that fail; the first of them says this. */
  async function failedRows(message: RegExp): Promise<string[]> {
    const { stdout } = await portico("doctor --json --timeout 8");
    const { rows } = JSON.parse(stdout) as { rows: readonly DiagnosisRow[] };
    const failed = rows.filter(({ status }) => status === "failed");
    if (failed.length > 0) {
      const { cause, evidence, fix } = failed[0]!;
      expect([cause, ...evidence, fix].join("\n")).toMatch(message);
    }
    return failed.map(({ id }) => id);
  }

  const mainPid = (): Promise<string> => host.must("systemctl show -P MainPID portico.service");
  const reloadCount = (): Promise<string> =>
    host.must("journalctl -u portico.service --grep 'Reload' --output=cat | wc -l");

  /** The certificate that a client outside gets; without a name by the address alone. */
  async function served(
    name?: string,
    address = host.address,
  ): Promise<{ issuer: string; names: string; serial: string }> {
    const sni = name === undefined ? "-noservername" : `-servername ${name}`;
    const text = await outside.must(
      `openssl s_client -connect '${address}:443' ${sni} < /dev/null 2> /dev/null | openssl x509 -noout -issuer -serial -ext subjectAltName`,
    );
    const found = (pattern: RegExp): string => pattern.exec(text)?.[1]?.trim() ?? "";
    return {
      issuer: found(/^issuer=(.*)$/m),
      serial: found(/^serial=(.*)$/m),
      names: found(/Alternative Name:.*\n(.*)/),
    };
  }
});
