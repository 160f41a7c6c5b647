import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fixed, loopback, oneServer } from "../kit/oneServer.js";
import { freePorts } from "../kit/ports.js";
import { eventually } from "../kit/waiting.js";

/** The Containerfile of the package: an image is built by it, and runs. */

const ROOT = join(__dirname, "../..");

const podman = (...args: readonly string[]): string =>
  execFileSync("podman", args, { encoding: "utf8", cwd: ROOT, stdio: ["ignore", "pipe", "ignore"] }).trim();

/** In place of an image from a registry: the Node that runs the tests, and its libraries. */
function importNode(name: string): void {
  const linked = execFileSync("ldd", [process.execPath], { encoding: "utf8" });
  const libraries = [...linked.matchAll(/(\/\S+) \(0x/g)].map(([, file]) => file!);
  const moved = `--transform=s,^${process.execPath.slice(1)}$,usr/local/bin/node,`;
  // A hundred megabytes: not written down in between.
  const archive = ["tar", "-c", "--dereference", "--mode=755", moved, process.execPath, ...libraries];
  const script = `"$@" 2>/dev/null | podman import --change "ENV PATH=/usr/local/bin" - ${name}`;
  execFileSync("sh", ["-c", script, "sh", ...archive], { stdio: "ignore" });
}

const CONFINED = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=host"];
const LIMITS = ["--runtime=runc", "--ulimit=nofile=20000:20000", "--ulimit=nproc=1000:1000"];

test("an image is built by it, which serves as a user without any right, and stops when it is asked to", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-image-"));
  const [node, image, container] = ["node", "image", "container"].map(
    (what) => `portico-${what}-${process.pid}`,
  );
  try {
    importNode(node!);
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
});

const configOn = (port: number) =>
  oneServer({
    logs: { access: { stream: "stdout" }, error: { stream: "stderr" } },
    listeners: [loopback("http", port)],
    routes: [fixed("here")],
  });
