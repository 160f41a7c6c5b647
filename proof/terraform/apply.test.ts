import { type ChildProcess, spawnSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { terraformIsHere, Workspace } from "./workspace.js";

/** The main job with the real Terraform and the real providers: apply, use, plan, change, destroy. */
const run = terraformIsHere() ? describe : describe.skip;

const APPS = join(__dirname, "..", "..");
const PORT_OFFSET = 21_000;

run("terraform apply", () => {
  const workspace = new Workspace();
  const file = (path: string): string => join(workspace.root, path);
  const openssl = (...args: string[]): string => {
    const { status, stdout, stderr } = spawnSync("openssl", args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`openssl ${args.join(" ")}: ${stderr}`);
    return stdout + stderr;
  };

  let applied: string;

  beforeAll(() => {
    workspace.synthesize(join(APPS, "main.ts"));
    workspace.terraform("init", "-input=false");
    applied = workspace.terraform("apply", "-input=false", "-auto-approve", "-no-color");
  });

  afterAll(() => workspace.remove());

  test("the stack is valid, and nothing is warned of", () => {
    expect(applied).toContain("\nApply complete!");
    expect(applied).not.toContain("Warning: ");
  });

  test.each([
    ["etc/portico/portico.json", 0o644],
    ["etc/portico/tls/privkey.pem", 0o600],
    ["etc/portico/tls/cacert.pem", 0o644],
    ["etc/portico/tls/dhparam2048.pem", 0o644],
    ["usr/lib/portico/portico.mjs", 0o755],
    ["usr/share/portico/default/index.html", 0o644],
    ["etc/systemd/system/portico.service", 0o644],
    ["etc/systemd/system/portico.socket", 0o644],
  ])("writes %s with mode %i", (path, mode) => {
    expect(statSync(file(path)).mode & 0o7777).toBe(mode);
  });

  test("the key is RSA 2048 and fits the certificate, which names the address and is valid for 3650 days", () => {
    const key = createPrivateKey(readFileSync(file("etc/portico/tls/privkey.pem")));
    const certificate = new X509Certificate(readFileSync(file("etc/portico/tls/cacert.pem")));
    expect(openssl("rsa", "-in", file("etc/portico/tls/privkey.pem"), "-check", "-noout")).toContain(
      "RSA key ok",
    );
    expect(key.asymmetricKeyDetails).toMatchObject({ modulusLength: 2048 });
    expect(certificate.checkPrivateKey(key)).toBe(true);
    expect(
      openssl("x509", "-in", file("etc/portico/tls/cacert.pem"), "-noout", "-ext", "subjectAltName"),
    ).toContain("IP Address:127.0.0.1");
    const days = (Date.parse(certificate.validTo) - Date.parse(certificate.validFrom)) / 86_400_000;
    expect(Math.round(days)).toBe(3650);
  });

  test("the DH parameters are a safe prime of 2048 bits", () => {
    const text = openssl(
      "dhparam",
      "-in",
      file("etc/portico/tls/dhparam2048.pem"),
      "-check",
      "-text",
      "-noout",
    );
    expect(text).toMatch(/DH Parameters: \(2048 bit\)/);
    expect(text).toContain("DH parameters appear to be ok");
  });

  test("a second plan is empty", () => expect(workspace.plan()).toEqual([]), 60_000);

  describe("the proxy, from exactly these files", () => {
    const servers: Server[] = [];
    let proxy: ChildProcess;

    beforeAll(async () => {
      const upstreams = [];
      for (const name of ["web", "fileServer", "webdav"]) {
        const server = createServer((request, response) => {
          const secure = request.headers["x-forwarded-proto"] === "https";
          response.writeHead(name === "web" ? 302 : 200, {
            "Content-Type": "text/html; charset=utf-8",
            Vary: "Accept-Language, Cookie",
            "Content-Language": "en",
            Location: `${secure ? "https" : "http"}://${request.headers.host}/sync/accounts/login/?next=${request.url}`,
          });
          response.end();
        });
        server.listen(0, "127.0.0.1");
        await once(server, "listening");
        servers.push(server);
        upstreams.push(
          "--upstream",
          `${name}=http://127.0.0.1:${(server.address() as { port: number }).port}`,
        );
      }
      mkdirSync(file("srv/sync/media/img"), { recursive: true });
      mkdirSync(file("var/log/portico"), { recursive: true });
      writeFileSync(file("srv/sync/media/img/icon.png"), "png");
      proxy = workspace.start(process.execPath, [
        file("usr/lib/portico/portico.mjs"),
        ...["preview", "--root", workspace.root, "--port-offset", String(PORT_OFFSET), ...upstreams],
      ]);
      await ready(proxy);
    });

    afterAll(async () => {
      proxy.kill("SIGTERM");
      await once(proxy, "exit");
      servers.forEach((server) => server.close());
    });

    test("passes every check of service 5.1", async () => {
      const args = ["check", "--live", "--root", workspace.root, "--port-offset", String(PORT_OFFSET)];
      // Not a synchronous call: the upstreams respond in this process.
      const check = workspace.start(process.execPath, [file("usr/lib/portico/portico.mjs"), ...args]);
      let said = "";
      check.stdout!.on("data", (chunk: Buffer) => (said += chunk.toString()));
      const [status] = await once(check, "close");
      expect(said).not.toContain("FAIL");
      expect(said.match(/^PASS/gm)?.length).toBeGreaterThanOrEqual(7);
      expect(status).toBe(0);
    });
  });

  test("another route changes only the config and the deployment", () => {
    workspace.synthesize(join(__dirname, "appWithRoute.ts"));
    // The deployment lists its hash and how the route should respond.
    expect(
      workspace
        .apply()
        .map(({ address }) => address)
        .sort(),
    ).toEqual([
      expect.stringMatching(/^local_file\.files_Deployment_/),
      expect.stringMatching(/^local_file\.files_Proxy_Config_/),
    ]);
    expect(readFileSync(file("etc/portico/portico.json"), "utf8")).toContain('"/health"');
    expect(workspace.plan()).toEqual([]);
  });

  test("destroy removes every file", () => {
    workspace.terraform("destroy", "-input=false", "-auto-approve");
    const left = (folder: string): string[] =>
      readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
        entry.isDirectory() ? left(join(folder, entry.name)) : [join(folder, entry.name)],
      );
    const ours = ["etc", "usr"].flatMap((folder) => left(file(folder)));
    expect(ours).toEqual([]);
  });
});

/** Resolves when the preview says that it serves; rejects with what it said if it ends instead. */
function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    const hear = (chunk: Buffer): void => {
      said += chunk.toString();
      if (said.includes("Stop it with Ctrl-C")) resolve();
    };
    child.stdout!.on("data", hear);
    child.stderr!.on("data", hear);
    child.on("exit", (code) => reject(new Error(`preview exited ${code}: ${said}`)));
  });
}
