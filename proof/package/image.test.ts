import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { freePorts } from "../kit/ports.js";
import { eventually } from "../kit/waiting.js";

/** The Containerfile of the package: an image is built by it, and runs. */

const ROOT = join(__dirname, "../..");

const podman = (...args: readonly string[]): string =>
  execFileSync("podman", args, { encoding: "utf8", cwd: ROOT, stdio: ["ignore", "pipe", "ignore"] }).trim();

/** In place of an image from a registry: the Node that runs the tests, and its libraries. */
function importNode(folder: string, name: string): void {
  const linked = execFileSync("ldd", [process.execPath], { encoding: "utf8" });
  const libraries = [...linked.matchAll(/(\/\S+) \(0x/g)].map(([, file]) => file!);
  const files = {
    "/usr/local/bin/node": process.execPath,
    ...Object.fromEntries(libraries.map((f) => [f, f])),
  };
  for (const [path, source] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    copyFileSync(source, join(folder, path));
    chmodSync(join(folder, path), 0o755);
  }
  const archive = `${folder}.tar`;
  execFileSync("tar", ["-C", folder, "-cf", archive, "."]);
  podman("import", "--change", "ENV PATH=/usr/local/bin", archive, name);
  rmSync(archive);
}

const CONFINED = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=host"];
const LIMITS = ["--runtime=runc", "--ulimit=nofile=20000:20000", "--ulimit=nproc=1000:1000"];

test("an image is built by it, which serves as a user without any right, and stops when it is asked to", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-image-"));
  const [node, image, container] = ["node", "image", "container"].map(
    (what) => `portico-${what}-${process.pid}`,
  );
  try {
    importNode(join(folder, "node"), node!);
    podman("build", "--isolation=chroot", "--build-arg", `NODE=localhost/${node}`, "--tag", image!, ROOT);
    const [{ Config: config }] = JSON.parse(podman("inspect", image!));
    expect(config).toMatchObject({
      User: "65532:65532",
      Entrypoint: ["node", "/usr/lib/portico/portico.mjs"],
      Cmd: ["serve"],
    });
    const [port] = (await freePorts(1)) as [number];
    writeFileSync(join(folder, "portico.json"), JSON.stringify(configOn(port)));
    chmodSync(join(folder, "portico.json"), 0o644);
    const mount = `--volume=${join(folder, "portico.json")}:/etc/portico/portico.json:ro`;
    podman("run", "--detach", `--name=${container}`, ...CONFINED, ...LIMITS, mount, image!);
    const answered = (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } }).then(
        ({ status }) => status === 200,
        () => false,
      );
    await eventually(answered, "for an answer", { everyMs: 100 });
    const who = podman("exec", container!, "node", "-p", "process.getuid() + ' ' + process.env.HOME");
    expect(who).toMatch(/^65532 /);
    podman("stop", "--time=20", container!);
    const logs = spawnSync("podman", ["logs", container!], { encoding: "utf8" });
    expect(logs.stdout).toMatch(/^portico \S+ ready: \S+, 1 worker\n/);
    expect(logs.stderr).toBe("");
    expect(podman("inspect", "--format={{.State.ExitCode}}", container!)).toBe("0");
  } finally {
    spawnSync("podman", ["rm", "--force", container!]);
    spawnSync("podman", ["rmi", "--force", image!, node!]);
    rmSync(folder, { recursive: true });
  }
}, 120_000);

function configOn(port: number): object {
  const action = { type: "respond", status: 200, body: "here" };
  return {
    version: 1,
    workers: 1,
    logs: { access: { stream: "stdout" }, error: { stream: "stderr" } },
    listeners: [{ name: "http", address: "127.0.0.1", port, protocol: "http" }],
    virtualServers: [
      {
        name: "only",
        serverNames: ["_"],
        default: true,
        listeners: ["http"],
        routes: [{ name: "fixed", path: "/", match: "prefix", action }],
      },
    ],
  };
}
