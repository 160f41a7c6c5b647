import { eventually } from "../../testkit/waiting.js";
import { terraformIsHere, Workspace } from "../terraform/workspace.js";
import type { BansApp } from "./deploy/bansApp.js";
import { Deployment } from "./deploy/deployment.js";
import { bootHost, FAIL2BAN_PACKAGES, type Namespace, type TestHost } from "./harness/index.js";

/** Debian's fail2ban on a real host, with the filter and the jail of a deployment: who guesses is shut out, and nobody else. */
const run = terraformIsHere() ? describe : describe.skip;

const JAIL = "portico-application";
const FILES = ["filter.d", "jail.d"].map((name) => `/etc/fail2ban/${name}/portico.conf`);
/** Debian's own jail, on a system without a log of the SSH server in a file: fail2ban does not start without that log. */
const SSH_JAIL = { "/etc/fail2ban/jail.d/sshd.local": "[sshd]\nbackend = systemd\n" };
const ATTACKER6 = "2001:db8:113::79";
const SERVER = `require("http").createServer((request, response) => {
  let body = "";
  request.on("data", (bytes) => (body += bytes));
  request.on("end", () => response.writeHead(request.method === "POST" && body !== "right" ? 401 : 200).end());
}).listen(3000, "127.0.0.1");
`;

run("bans by fail2ban", () => {
  let host: TestHost;
  let outside: Namespace;
  let deployment: Deployment;

  beforeAll(async () => {
    host = await bootHost({ name: "fail2ban", packages: FAIL2BAN_PACKAGES, files: SSH_JAIL });
    outside = await host.outside();
    const ssh = {
      privateKeyFile: host.sshKey,
      hostKey: await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub"),
      whenDestroyed: "purge",
    } as const;
    deployment = new Deployment(host, ssh, new Workspace(), "bansApp.ts");
    await host.copyIn(process.execPath, "/srv/notes/node", "0755");
    await host.write("/srv/notes/notes.cjs", SERVER);
    await host.write(
      "/etc/systemd/system/notes.service",
      "[Service]\nExecStart=/srv/notes/node /srv/notes/notes.cjs\n",
    );
    await host.must("systemctl start notes");
    await deployment.buildRuntime();
    deployment.synthesize<BansApp>();
    deployment.init();
    await deployment.apply();
  }, 600_000);

  afterAll(async () => {
    deployment?.remove();
    await host?.stop();
  });

  /** Status of a log-in from an address of the network outside, or the status of curl where nobody responds. */
  async function logIn(from: string, password: string): Promise<string> {
    const to = from.includes(":") ? `[${host.address6}]` : host.address;
    const curl = `curl -gso /dev/null -m 5 -w '%{http_code}' --interface ${from} -d ${password} 'http://${to}/login'`;
    const { code, stdout } = await outside.run(curl);
    return code === 0 ? stdout : `curl ${code}`;
  }

  /** Another address of the network outside. */
  async function client(address: string): Promise<string> {
    const [, device] = /dev (\S+)/.exec(await outside.must(`ip -o route get ${host.address}`))!;
    // An IPv6 address can be used at once if nobody is asked whether he has it.
    await outside.must(`ip address add ${address} dev ${device} ${address.includes(":") ? "nodad" : ""}`);
    return address;
  }

  const banned = async (address: string): Promise<boolean> =>
    (await host.run("nft list table inet f2b-table")).stdout.includes(address);

  const guess = async (from: string): Promise<void> => {
    for (let i = 0; i < 3; i++) expect(await logIn(from, `wrong${i}`)).toBe("401");
    await eventually(() => banned(from), `until ${from} is banned`, { everyMs: 100 });
  };

  test("the jail runs after the first activation, which made its log, and beside the host's own jail", async () => {
    expect(await host.must("fail2ban-client status")).toContain(`Jail list:\t${JAIL}, sshd`);
    expect((await host.run(`cat ${FILES.join(" ")}`)).code).toBe(0);
  });

  test("who guesses is refused, a user with the right password is not, and an unban lets in again", async () => {
    const attacker = await client("203.0.113.77");
    await guess(attacker);
    expect(await logIn(attacker, "right")).toBe("curl 7");
    const user = await client("203.0.113.78");
    for (let i = 0; i < 5; i++) expect(await logIn(user, "right")).toBe("200");
    expect(await logIn(user, "wrong")).toBe("401");
    expect(await logIn(user, "right")).toBe("200");
    expect(await host.must(`fail2ban-client set ${JAIL} unbanip ${attacker}`)).toBe("1\n");
    expect(await logIn(attacker, "right")).toBe("200");
  }, 60_000);

  test("the next log is read after a rotation, and a ban outlasts an apply", async () => {
    await host.must("logrotate --force /etc/logrotate.d/portico && test -s /var/log/portico/access.log.1");
    const attacker = await client(ATTACKER6);
    await guess(attacker);
    await deployment.applyAgain();
    expect(await logIn(attacker, "right")).toBe("curl 7");
  }, 120_000);

  test("without the option, the files and the jail go, and so do the bans", async () => {
    deployment.synthesize<BansApp>({ withoutBans: true });
    expect(await deployment.apply()).toContain("reload-or-restart fail2ban.service");
    expect((await host.run(`ls ${FILES.join(" ")}`)).stdout).toBe("");
    expect(await host.must("fail2ban-client status")).toContain("Jail list:\tsshd\n");
    expect(await logIn(ATTACKER6, "right")).toBe("200");
  }, 120_000);

  test("a destroyed deployment leaves nothing to fail2ban, which goes on", async () => {
    deployment.synthesize<BansApp>();
    await deployment.apply();
    expect(await host.must("fail2ban-client status")).toContain(JAIL);
    expect((await deployment.terraform("destroy -auto-approve -no-color")).code).toBe(0);
    expect((await host.run(`ls ${FILES.join(" ")} /var/log/portico`)).stdout).toBe("");
    expect(await host.must("fail2ban-client status")).toContain("Jail list:\tsshd\n");
  }, 120_000);
});
