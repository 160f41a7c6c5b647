import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { terraformIsHere, Workspace } from "../terraform/workspace.js";
import { Deployment } from "./deploy/deployment.js";
import { bootHost, mustRun, type Namespace, type TestHost } from "./harness/index.js";

/**
 * docs/deploying.md, done as it is written: its program and its commands, with the test host's address in the place of
 * the one in the guide, and with the provider's version that is here. What it installs from the registry is linked from
 * here.
 */
const run = terraformIsHere() ? describe : describe.skip;

const REPOSITORY = join(__dirname, "../..");
const GUIDE = readFileSync(join(REPOSITORY, "docs/deploying.md"), "utf8");

/** The code blocks of a chapter, by its heading. */
function blocks(heading: string, language: string): string[] {
  const chapter = GUIDE.split(/^## /m).find((text) => text.startsWith(heading))!;
  return [...chapter.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].flatMap(([, kind, code]) =>
    kind === language ? [code!] : [],
  );
}

run("the guide for a deployment over ssh", () => {
  const home = mkdtempSync(join(tmpdir(), "portico-guide-"));
  const folder = join(home, "front-end");
  const workspace = new Workspace();
  const env: NodeJS.ProcessEnv = {
    ...workspace.environment,
    HOME: home,
    XDG_CACHE_HOME: join(REPOSITORY, ".cache"),
    TF_CLI_ARGS: "-no-color",
  };
  let host: TestHost;
  let outside: Namespace;
  let deployment: Deployment;

  const follow = (commands: string, input = ""): Promise<string> =>
    outside.must(`set -eu\n${withAddress(commands)}`, { cwd: folder, env, input, timeoutSeconds: 300 });
  const withAddress = (text: string): string => text.replaceAll("192.0.2.10", host.address);

  beforeAll(async () => {
    host = await bootHost({ name: "guide" });
    outside = await host.outside();
    deployment = new Deployment(host, {}, workspace);
    await deployment.installApplication();
    mkdirSync(join(folder, "node_modules"), { recursive: true });
    const modules = join(REPOSITORY, "node_modules");
    for (const name of readdirSync(modules))
      symlinkSync(join(modules, name), join(folder, "node_modules", name));
    symlinkSync(REPOSITORY, join(folder, "node_modules/cdktf-portico"));
    mkdirSync(join(home, ".ssh"));
    writeFileSync(join(home, ".ssh/id_ed25519"), readFileSync(host.sshKey), { mode: 0o600 });
  }, 600_000);

  afterAll(async () => {
    deployment?.remove();
    rmSync(home, { recursive: true, force: true });
    await host?.stop();
  });

  test("leads to a front end that responds, and to its removal", async () => {
    const [written] = blocks("1. ", "ts");
    const program = written!;
    writeFileSync(join(folder, "main.ts"), withAddress(program));
    const [, trust] = blocks("1. ", "sh");
    env.HOST_KEY = (await follow(`${trust}\nprintf %s "$HOST_KEY"`)).trim();
    expect(env.HOST_KEY).toMatch(/^ecdsa-sha2-nistp256 /);

    const [first, look] = blocks("2. ", "sh");
    // Up to the apply the registry is asked, which the test host's network does not reach.
    const at = first!.lastIndexOf("terraform");
    await mustRun(["bash", "-euc", first!.slice(0, at)], { cwd: folder, env, timeoutSeconds: 120 });
    const said = await follow(first!.slice(at), "yes\n");
    // The application was never behind a front end: that is said, and no reason to go back.
    expect(said).toContain("(remote-exec): activated\n");
    expect(said).toMatch(
      /the application does not respond as expected yet, because its settings differ: SITE_ROOT/,
    );
    expect(said).toMatch(new RegExp(`files_Url_\\w+ = "https://${host.address}/sync/"`));
    expect(await follow(look!)).toMatch(/^HTTP\/2 404/);

    const [settings] = blocks("3. ", "ts");
    const configured = withAddress(program)
      .replace(/^ *application: .*\n/m, "")
      .replace(/^( *outputs: true,\n)/m, `$1${settings!}`);
    writeFileSync(join(folder, "main.ts"), configured);
    const [deploy] = blocks("3. ", "sh");
    expect(await follow(deploy!, "yes\n")).not.toContain("does not respond as expected");
    expect(await follow(look!)).toMatch(/^HTTP\/2 302[^]*location: \S+\/sync\/accounts\/login\//m);

    const command = "/var/lib/portico/deployment/command";
    const [doctor, drift] = blocks("7. ", "sh");
    expect(doctor).toBe(`${command} doctor\n`);
    expect(await host.must(doctor!)).toMatch(/ 0 failed/);
    await host.must("nft flush ruleset 2> /dev/null; chmod 644 /etc/portico/tls/privkey.pem");
    expect((await host.run(doctor!)).stdout).toContain(`fix:     ${command} activate --again`);
    expect(await host.must(drift!)).toMatch(/privkey\.pem: mode 0644 instead of 0600[^]*activated\n$/);
    expect(await host.must(doctor!)).toMatch(/ 0 failed/);

    const [again, replace] = blocks("4. ", "sh");
    expect(await follow(again!)).toContain("No changes.");
    expect(await follow(replace!, "yes\n")).toContain("nothing to do: the host is as deployed");

    const [destroy] = blocks("6. ", "sh");
    expect(await follow(destroy!, "yes\n")).toContain("the deployment is gone");
  }, 600_000);
});
