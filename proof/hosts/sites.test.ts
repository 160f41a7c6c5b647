import type { ChildProcess } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../testkit/waiting.js";
import { FORMER_ROTATION_FILE } from "../../src/render/logRotation.js";
import { terraformIsHere, Workspace } from "../terraform/workspace.js";
import { Deployment } from "./deploy/deployment.js";
import { HostCa } from "./deploy/hostCa.js";
import { differences, hostTree } from "./deploy/hostTree.js";
import type { SitesApp } from "./deploy/sitesApp.js";
import { bootHost, type Namespace, type Result, type TestHost } from "./harness/index.js";

/**
 * Three sites of different kinds on a real host, each with its own certificate: what changes, fails or goes is one site,
 * and the others notice nothing.
 */
const run = terraformIsHere() ? describe : describe.skip;

const FIVE_MINUTES = 300_000;
const ADDRESS6 = "fd00:113::10";
const ROOTS = "/etc/ssl/private-ca.pem";
const PORTICO = "/var/lib/portico/deployment/command";
const ACME = "/var/lib/private/portico-certificates/acme";
const SITES = ["wiki", "pages", "files"] as const;
type SiteName = (typeof SITES)[number] | "vault";
const nameOf = (site: SiteName): string => `${site}.example.net`;
/** Longer than all buffers between the server and a client that reads slowly. */
const BYTES = 64 * 1024 * 1024;
const FILES = { wiki: "/srv/wiki/bytes", pages: "/srv/pages/bytes" } as const;
const WIKI = `const { createReadStream } = require("fs");
require("http").createServer((request, response) => {
  if (request.url === "/") return void response.end("the wiki\\n");
  if (request.url !== "/bytes") return void response.writeHead(404).end();
  createReadStream("${FILES.wiki}").pipe(response);
}).listen(3000, "127.0.0.1");
`;
/** Exits with an error when it is stopped, as programs in Java do. */
const VAULT = `process.on("SIGTERM", () => process.exit(143));
const token = require("fs").readFileSync(process.env.CREDENTIALS_DIRECTORY + "/token");
require("http").createServer((request, response) => response.end(process.env.DOMAIN + " " + token)).listen(3001, "127.0.0.1");
`;
/** Whatever of its units, processes, ports and of the store is left; its logs are to be rotated away. */
const TRACES_OF_VAULT = `systemctl list-units --all --plain --no-legend 'vault*' | grep -v ' not-found *inactive ' || true
systemctl list-unit-files --no-legend 'vault*'
systemctl --failed --plain --no-legend
pgrep -a -f '^/srv/.*vault' || true
ss -Hltn 'sport = :3001'
grep -o '[^"]*vault[^"]*' /var/lib/portico/deployment/state.json /var/lib/portico/deployment/programs || true
ls -d /var/lib/portico/deployment/journal.json /run/vault /run/credentials/vault* 2> /dev/null || true
`;
const VAULT_ENV = "LOG_LEVEL=info\n";
const UNITS = ["portico", "wiki", "sync-web", "sync-files", "sync-webdav", "sync-database"];

run("three sites", () => {
  let host: TestHost;
  let outside: Namespace;
  let ca: HostCa;
  let deployment: Deployment;
  /** The host before the first deployment, and with two of the sites. */
  let bare: ReadonlyMap<string, string>;
  let withTwo: ReadonlyMap<string, string>;
  let hashes: Readonly<Record<keyof typeof FILES, string>>;

  beforeAll(async () => {
    host = await bootHost({ name: "sites", address6: ADDRESS6 });
    outside = await host.outside();
    ca = await HostCa.start(outside, host.address.replace(/\.\d+$/, ".1"));
    const ssh = {
      privateKeyFile: host.sshKey,
      hostKey: await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub"),
      whenDestroyed: "purge",
    } as const;
    deployment = new Deployment(host, ssh, new Workspace(), "sitesApp.ts");
    await deployment.installApplication();
    await host.write("/srv/wiki/wiki.cjs", WIKI);
    await host.write(
      "/etc/systemd/system/wiki.service",
      "[Service]\nExecStart=/srv/sync/bin/interpreter /srv/wiki/wiki.cjs\n",
    );
    await host.write("/srv/pages/index.html", "the pages\n");
    await host.write("/srv/vault/vault.cjs", VAULT);
    await host.write("/srv/vault/vault.env", VAULT_ENV);
    for (const file of Object.values(FILES)) await host.must(`head -c ${BYTES} /dev/urandom > ${file}`);
    // For `fixMedia` to make readable.
    await host.must("systemctl start wiki && chmod 600 /srv/sync/media/img/icon.svg");
    const hashOf = async (file: string): Promise<string> =>
      (await host.must(`sha256sum ${file}`)).slice(0, 64);
    hashes = { wiki: await hashOf(FILES.wiki), pages: await hashOf(FILES.pages) };
    await host.write(ROOTS, ca.roots);
    for (const site of SITES) await ca.setAddress(nameOf(site), host.address);
    bare = await hostTree(host);
    await deployment.buildRuntime();
    synthesize({ without: "files" });
    deployment.init();
    await deployment.apply();
    withTwo = await hostTree(host);
  }, 600_000);

  afterAll(async () => {
    ca?.remove();
    deployment?.remove();
    await host?.stop();
  });

  test(
    "each has its own application, and its own certificate",
    async () => {
      synthesize({});
      const said = await deployment.apply();
      expect(said).toContain("PASS  files: application over https");
      expect(said).not.toContain("WAIT");
      for (const site of SITES) expect(await certificateOf(site)).toBe(`Pebble DNS:${nameOf(site)}`);
      for (const site of ["wiki", "pages"] as const) {
        expect(await hashOfResponse(site)).toBe(hashes[site]);
        expect(await ask(site, "/")).toBe(`200 the ${site}\n`);
      }
      expect(await ask("files", "/sync/")).toMatch(/^302 /);
      expect(await ask("files", "/bytes")).toMatch(/^404 /);
      expect(await portico("check --live")).toMatchObject({ code: 0 });
      expect((await portico("doctor")).stdout).not.toMatch(/^FAIL/m);
      expect(await deployment.planned()).toEqual([]);
    },
    FIVE_MINUTES,
  );

  test(
    "a changed setting restarts the daemon that reads it, and cuts no request of another site",
    async () => {
      const before = await invocations();
      const [wiki, pages] = [new SlowRequest("wiki"), new SlowRequest("pages")];
      await Promise.all([wiki.hasBegun(), pages.hasBegun()]);
      synthesize({ settingsViaWeb: true });
      await deployment.apply();
      expect(changedSince(before, await invocations())).toEqual(["sync-web"]);
      expect(await host.must("cat /srv/sync/conf/web_settings.py")).toMatch(
        /^ENABLE_SETTINGS_VIA_WEB = True$/m,
      );
      // A route's limit changes the proxy's config: it reloads, and no daemon restarts.
      const then = await invocations();
      synthesize({ settingsViaWeb: true, bodyBytesMax: 1_000_000 });
      expect(await deployment.apply()).toContain("will reload portico.service");
      expect(changedSince(then, await invocations())).toEqual([]);
      expect([wiki.hasEnded, pages.hasEnded]).toEqual([false, false]);
      expect([await wiki.end(), await pages.end()]).toEqual([hashes.wiki, hashes.pages]);
    },
    FIVE_MINUTES,
  );

  test.each([
    ["files", "http://127.0.0.1:8080", "files: application over https"],
    ["wiki", "http://127.0.0.1:8999", "wiki web"],
  ] as const)(
    "one whose server responds wrongly is named, and the deployment goes back: %s",
    async (site, url, row) => {
      const [before, config] = [await invocations(), await host.must("cat /etc/portico/portico.json")];
      const slow = [new SlowRequest("wiki"), new SlowRequest("pages")];
      await Promise.all(slow.map((request) => request.hasBegun()));
      synthesize({ settingsViaWeb: true, wrongServer: { site, url }, probeSeconds: 2 });
      const { code, stdout, stderr } = await deployment.tryApply();
      expect({ code, text: stdout + stderr }).toEqual({
        code: 1,
        text: expect.stringMatching(
          new RegExp(
            `failed: .*${nameOf(site)}.*: ${row}: not as expected.*\\[activation\\.unexpected-response\\]`,
          ),
        ),
      });
      expect(stdout).toContain("rolling back to the last good state");
      for (const other of SITES.filter((one) => one !== site))
        expect(stdout).not.toMatch(new RegExp(`failed: .*${other}`));
      expect(await host.must("cat /etc/portico/portico.json")).toBe(config);
      expect(changedSince(before, await invocations())).toEqual([]);
      expect(await Promise.all(slow.map((request) => request.end()))).toEqual([hashes.wiki, hashes.pages]);
      expect(await ask("files", "/sync/")).toMatch(/^302 /);
      expect(await ask("wiki", "/")).toBe("200 the wiki\n");
    },
    FIVE_MINUTES,
  );

  test(
    "of a removed one nothing is left but its logs, until they are rotated, and its certificate",
    async () => {
      const certificate = await host.must(`ls ${ACME}/certificates`);
      const before = await invocations();
      const [wiki, pages] = [new SlowRequest("wiki"), new SlowRequest("pages")];
      await Promise.all([wiki.hasBegun(), pages.hasBegun()]);
      synthesize({ without: "files" });
      const said = await deployment.apply();
      expect([await wiki.end(), await pages.end()]).toEqual([hashes.wiki, hashes.pages]);
      // Of those that read the settings, which are as they were before.
      expect(changedSince(before, await invocations())).toEqual(["sync-web", "sync-files"]);
      expect(said).toContain(
        "will restart sync-web.service, which interrupts its work: its settings are no longer",
      );
      const left = differences(withTwo, await hostTree(host)).map((line) => line.split(": ")[0]!);
      expect(left.filter((path) => !isExpectedLeft(path))).toEqual([]);
      expect(await host.must(`ls ${ACME}/certificates`)).toBe(certificate);
      expect(await host.must(`cat ${FORMER_ROTATION_FILE}`)).toMatch(/files-web\.access\.log/);
      expect((await portico("certificates")).stdout).not.toContain(nameOf("files"));
      expect(await ask("files", "/sync/")).toMatch(/^404 /);
      expect(await deployment.planned()).toEqual([]);
      // Comes back without an order.
      const { orders } = ca;
      synthesize({});
      await deployment.apply();
      expect(await certificateOf("files")).toBe(`Pebble DNS:${nameOf("files")}`);
      expect(ca.orders).toBe(orders);
    },
    FIVE_MINUTES,
  );

  test(
    "of one that brought its units, of which one crashes again and again, nothing is left, and no other notices",
    async () => {
      synthesize({});
      await deployment.apply();
      const before = await hostTree(host);
      synthesize({ vault: true });
      // Its certificate takes another provider.
      deployment.init();
      await deployment.apply();
      expect(await ask("vault", "/")).toBe("200 https://vault.example.net a token of the vault\n");
      await host.must("systemctl start --no-block vault-index");
      await eventually(
        async () => (await host.must("systemctl show -P SubState vault-index")).startsWith("auto-restart"),
        "until it waits for its next start",
        { everyMs: 50 },
      );
      const others = await invocations();
      const slow = [new SlowRequest("wiki"), new SlowRequest("pages")];
      await Promise.all(slow.map((request) => request.hasBegun()));
      synthesize({});
      await deployment.apply();
      expect(await Promise.all(slow.map((request) => request.end()))).toEqual([hashes.wiki, hashes.pages]);
      expect(changedSince(others, await invocations())).toEqual([]);
      const left = differences(before, await hostTree(host)).map((line) => line.split(": ")[0]!);
      expect(left.filter((path) => !isExpectedLeft(path))).toEqual([]);
      expect(await host.must("cat /srv/vault/vault.env")).toBe(VAULT_ENV);
      expect(await host.must(TRACES_OF_VAULT)).toBe("");
      expect(await ask("vault", "/")).toMatch(/^404 /);
      expect(await deployment.planned()).toEqual([]);
    },
    FIVE_MINUTES,
  );

  test(
    "a destroy leaves the host as it was",
    async () => {
      const { code, stderr } = await deployment.terraform("destroy -auto-approve -no-color");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(differences(bare, await hostTree(host))).toEqual([]);
    },
    FIVE_MINUTES,
  );

  function synthesize(changes: Partial<SitesApp>): void {
    deployment.synthesize<SitesApp>({
      acme: { directory: ca.directory, roots: ROOTS, names: [] },
      ...changes,
    });
  }

  /** What differs after each apply, and what stays of a site for some time. */
  const isExpectedLeft = (path: string): boolean =>
    [
      "/root/.portico/incoming/",
      "/var/lib/portico/",
      "/var/log/private/portico/",
      `${ACME}/`,
      FORMER_ROTATION_FILE,
    ].some((at) => path.startsWith(at));

  const portico = (command: string): Promise<Result> => host.run(`${PORTICO} ${command}`);

  const curl = (site: SiteName, path: string, more = ""): string =>
    `curl -sk ${more} --resolve ${nameOf(site)}:443:${host.address} https://${nameOf(site)}${path}`;

  const ask = async (site: SiteName, path: string): Promise<string> => {
    const text = await outside.must(curl(site, path, "-w '\\n%{http_code}'"));
    const end = text.lastIndexOf("\n");
    return `${text.slice(end + 1)} ${text.slice(0, end)}`;
  };

  const hashOfResponse = async (site: SiteName): Promise<string> =>
    (await outside.must(`${curl(site, "/bytes")} | sha256sum`)).slice(0, 64);

  /** Who issued the certificate that a client gets, and all its names. */
  async function certificateOf(site: SiteName): Promise<string> {
    const text = await outside.must(
      `openssl s_client -connect ${host.address}:443 -servername ${nameOf(site)} < /dev/null 2> /dev/null | openssl x509 -noout -issuer -ext subjectAltName`,
    );
    return `${/Pebble/.exec(text)?.[0]} ${/Alternative Name:.*\n\s*(.*)/.exec(text)?.[1]?.trim()}`;
  }

  /** Each start of a unit has another id. */
  const invocations = async (): Promise<readonly string[]> =>
    (
      await host.must(
        `for unit in ${UNITS.join(" ")}; do systemctl show -P MainPID -P InvocationID $unit.service | paste -sd ' '; done`,
      )
    )
      .trimEnd()
      .split("\n");

  const changedSince = (before: readonly string[], after: readonly string[]): string[] =>
    UNITS.filter((_, i) => before[i] !== after[i]);

  /** A request whose response a client reads slowly until the end is wanted. */
  class SlowRequest {
    private readonly child: ChildProcess;
    private readonly wanted: string;
    private readonly begun: string;
    private text = "";

    constructor(site: SiteName) {
      this.wanted = join(host.folder, `${site}-wanted`);
      this.begun = join(host.folder, `${site}-begun`);
      for (const file of [this.wanted, this.begun]) rmSync(file, { force: true });
      const slowly = `until [ -e ${this.wanted} ]; do head -c 65536; touch ${this.begun}; sleep 0.2; done; cat`;
      this.child = outside.start(`${curl(site, "/bytes")} | (${slowly}) | sha256sum`);
      this.child.stdout!.on("data", (data) => (this.text += data));
    }

    hasBegun(): Promise<void> {
      return eventually(async () => existsSync(this.begun), "for the first bytes", { everyMs: 50 });
    }

    get hasEnded(): boolean {
      return this.text !== "";
    }

    /** @returns hash of the whole response */
    async end(): Promise<string> {
      writeFileSync(this.wanted, "");
      await eventually(async () => this.hasEnded, "for the end of the response", { everyMs: 50 });
      return this.text.slice(0, 64);
    }
  }
});
