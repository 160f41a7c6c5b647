import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Image {
  /** With its tag, such as `localhost/portico:1`. */
  readonly name: string;
  /** Layers, the lowest first: paths in the container and the files they are copies of. */
  readonly layers: readonly Readonly<Record<string, string>>[];
  readonly entrypoint: readonly string[];
}

/** Writes images as archives that `ctr images import` reads. They need no base image, and no program that builds images. */
export class ImageWriter {
  /** Digests of layers by what they hold, so that images share them. */
  private readonly written = new Map<string, string>();

  constructor(private readonly folder: string) {
    mkdirSync(folder, { recursive: true });
  }

  /** The archive's path. */
  write({ name, layers, entrypoint }: Image): string {
    const digests = layers.map((files) => this.layer(files));
    const config = JSON.stringify({
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: { Entrypoint: entrypoint, WorkingDir: "/" },
      rootfs: { type: "layers", diff_ids: digests.map((digest) => `sha256:${digest}`) },
    });
    const configFile = `${sha256(config)}.json`;
    const manifest = [{ Config: configFile, RepoTags: [name], Layers: digests.map((one) => `${one}.tar`) }];
    writeFileSync(join(this.folder, configFile), config);
    writeFileSync(join(this.folder, "manifest.json"), JSON.stringify(manifest));
    const archive = join(this.folder, `${name.replaceAll(/[^a-z0-9]/g, "-")}.tar`);
    const members = new Set(["manifest.json", configFile, ...manifest[0]!.Layers]);
    execFileSync("tar", ["-cf", archive, "-C", this.folder, ...members]);
    return archive;
  }

  private layer(files: Readonly<Record<string, string>>): string {
    const key = JSON.stringify(files);
    const known = this.written.get(key);
    if (known !== undefined) return known;
    const root = join(this.folder, "layer");
    for (const [path, source] of Object.entries(files)) {
      mkdirSync(join(root, dirname(path)), { recursive: true, mode: 0o755 });
      cpSync(source, join(root, path), { dereference: true });
    }
    const draft = join(this.folder, "layer.tar");
    execFileSync("tar", [
      "--sort=name",
      "--numeric-owner",
      "--owner=0",
      "--group=0",
      "-cf",
      draft,
      "-C",
      root,
      ".",
    ]);
    const digest = createHash("sha256").update(readFileSync(draft)).digest("hex");
    execFileSync("mv", [draft, join(this.folder, `${digest}.tar`)]);
    rmSync(root, { recursive: true });
    this.written.set(key, digest);
    return digest;
  }
}

/** A program and the libraries that it is linked to, where it finds them. */
export function withLibraries(path: string, program: string): Record<string, string> {
  const linked = execFileSync("ldd", [program], { encoding: "utf8" });
  const libraries = [...linked.matchAll(/(\/\S+) \(0x/g)].map(([, file]) => [file!, file!]);
  return { [path]: program, ...Object.fromEntries(libraries) };
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
