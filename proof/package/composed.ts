import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { publicFolder } from "../../testkit/publicFolder.js";
import { buildImage, importNode, LIMITS } from "./podman.js";
import { PODMAN_COMPOSE } from "./podmanCompose.js";

/** A directory with the files of a proxy, the image, and what Compose runs of them. */
export class Composed {
  private readonly folder = publicFolder("portico-compose-");
  private readonly node = `portico-compose-node-${process.pid}`;
  private readonly image = `portico-compose-image-${process.pid}`;

  constructor(private readonly files: readonly string[]) {}

  buildImages(): void {
    importNode(this.node);
    buildImage(this.image, this.node);
  }

  get nodeImage(): string {
    return this.node;
  }

  get porticoImage(): string {
    return `localhost/${this.image}`;
  }

  path(...names: readonly string[]): string {
    return join(this.folder, ...names);
  }

  put(path: string, content: string | Buffer): void {
    mkdirSync(dirname(this.path(path)), { recursive: true });
    writeFileSync(this.path(path), content);
  }

  compose(...args: readonly string[]): void {
    const files = this.files.flatMap((file) => ["-f", this.path(file)]);
    const done = spawnSync(PODMAN_COMPOSE, [`--podman-run-args=${LIMITS.join(" ")}`, ...files, ...args], {
      encoding: "utf8",
    });
    if (done.status !== 0) throw done.error ?? new Error(done.stderr + done.stdout);
  }

  end(): void {
    const { image, node, folder } = this;
    try {
      this.compose("down", "--volumes");
    } catch {
      // Nothing was up, or what is left is removed below.
    }
    spawnSync("sh", [
      "-c",
      `podman ps -aq --filter ancestor=localhost/${image} --filter ancestor=localhost/${node} | xargs -r podman rm -f`,
    ]);
    spawnSync("podman", ["rmi", "--force", image, node]);
    rmSync(folder, { recursive: true, force: true });
  }
}
