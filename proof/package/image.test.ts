import { spawnSync } from "node:child_process";
import { publicFolder } from "../../testkit/publicFolder.js";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { buildImage, importNode, LIMITS, podman } from "./podman.js";

/** The Containerfile of the package: an image is built by it, and runs. */

const CONFINED = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=host"];

test("an image is built by it, which serves as a user without any right, and stops when it is asked to", async () => {
  const folder = publicFolder("portico-image-");
  const [node, image, container] = ["node", "image", "container"].map(
    (what) => `portico-${what}-${process.pid}`,
  );
  try {
    importNode(node!);
    buildImage(image!, node!);
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
    const responded = (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } }).then(
        ({ status }) => status === 200,
        () => false,
      );
    await eventually(responded, "for a response", { everyMs: 100 });
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
