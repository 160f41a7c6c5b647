import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { type Arguments, type Attributes, privateKey, selfSignedCertificate } from "./tlsResources.js";

/** A file that was written. */
export interface LaidOutFile {
  /** Address of the resource, such as `local_file.portico_Config_A1B2`. */
  readonly resource: string;
  readonly path: string;
  readonly mode: number;
}

/**
 * Does with a synthesized stack what `terraform apply` would do with its files: writes every `local_file` and
 * `local_sensitive_file`, with keys and certificates created on the spot. Nothing outside `root` is written.
 *
 * @param stackFile the stack's `cdk.tf.json`
 */
export async function layOut(stackFile: string, root: string): Promise<LaidOutFile[]> {
  const stack = JSON.parse(await readFile(stackFile, "utf8")) as {
    resource?: Record<string, Record<string, Arguments>>;
  };
  const resources = new Resources(stack.resource ?? {}, path.dirname(stackFile));
  const written: LaidOutFile[] = [];
  for (const type of ["local_file", "local_sensitive_file"]) {
    for (const name of Object.keys(stack.resource?.[type] ?? {})) {
      written.push(await writeResource(`${type}.${name}`, resources, path.resolve(root)));
    }
  }
  if (written.length === 0) throw new Error(`${stackFile} has no local_file to lay out`);
  return written;
}

async function writeResource(address: string, resources: Resources, root: string): Promise<LaidOutFile> {
  const args = await resources.arguments(address);
  const file = resources.resolvePath(String(args["filename"]));
  if (!file.startsWith(root + path.sep)) {
    throw new Error(
      `${address}: ${file} is outside ${root}; synthesize with PORTICO_ROOT set to that folder`,
    );
  }
  const content = await fileContent(address, args, resources);
  const sensitive = address.startsWith("local_sensitive_file.");
  const mode = permission(args["file_permission"], sensitive ? 0o700 : 0o777);
  await makeDirectories(
    path.dirname(file),
    permission(args["directory_permission"], sensitive ? 0o700 : 0o777),
  );
  // A new file, so that a mode or owner of an earlier run does not stay.
  await rm(file, { force: true });
  await writeFile(file, content, { mode });
  await chmod(file, mode);
  return { resource: address, path: file, mode };
}

async function fileContent(address: string, args: Arguments, resources: Resources): Promise<string | Buffer> {
  if (args["content"] !== undefined) return String(args["content"]);
  if (args["content_base64"] !== undefined) return Buffer.from(String(args["content_base64"]), "base64");
  if (args["source"] === undefined) throw new Error(`${address} has neither content nor source`);
  return readFile(resources.resolvePath(String(args["source"])));
}

function permission(value: unknown, byDefault: number): number {
  return value === undefined ? byDefault : parseInt(String(value), 8);
}

/** Creates what is missing of a path; directories that exist keep their mode, as with Terraform. */
async function makeDirectories(directory: string, mode: number): Promise<void> {
  const first = await mkdir(directory, { recursive: true });
  if (first === undefined) return;
  for (let at = directory; at.length >= first.length; at = path.dirname(at)) await chmod(at, mode);
}

/** The resources of a stack, each evaluated once when something refers to it. */
class Resources {
  private readonly created = new Map<string, Promise<Attributes>>();

  constructor(
    private readonly all: Readonly<Record<string, Record<string, Arguments>>>,
    private readonly folder: string,
  ) {}

  /** A resource's arguments with every reference resolved. */
  async arguments(address: string): Promise<Arguments> {
    const [type = "", name = ""] = address.split(".");
    const args = this.all[type]?.[name];
    if (args === undefined) throw new Error(`${address} is referred to, but is not a resource of the stack`);
    for (const meta of ["count", "for_each"]) {
      if (meta in args) throw new Error(`${address} uses ${meta}, which needs Terraform`);
    }
    const resolved = await Promise.all(
      Object.entries(args).map(async ([key, value]) => [
        key,
        META.has(key) ? value : await this.value(address, key, value),
      ]),
    );
    return Object.fromEntries(resolved);
  }

  /** Relative paths of a stack start at its own folder, where its assets are. */
  resolvePath(file: string): string {
    return path.resolve(this.folder, file);
  }

  private async value(address: string, key: string, value: unknown): Promise<unknown> {
    if (typeof value === "string") return this.template(`${address}.${key}`, value);
    if (Array.isArray(value)) return Promise.all(value.map((item) => this.value(address, key, item)));
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).map(async ([k, v]) => [
      k,
      await this.value(address, `${key}.${k}`, v),
    ]);
    return Object.fromEntries(await Promise.all(entries));
  }

  /** A string as Terraform reads it: escapes undone, references filled in. */
  private async template(where: string, text: string): Promise<string> {
    let out = "";
    let from = 0;
    for (const match of text.matchAll(/\$\$\{|%%\{|\$\{([^}"]*)\}?|%\{/g)) {
      const [whole, expression] = match;
      out += text.slice(from, match.index);
      from = match.index + whole.length;
      if (whole === "$${" || whole === "%%{") out += whole.slice(1);
      else if (expression !== undefined && whole.endsWith("}"))
        out += await this.reference(where, expression.trim());
      else throw unresolvable(where, text.slice(match.index, match.index + 60));
    }
    return out + text.slice(from);
  }

  private async reference(where: string, expression: string): Promise<string> {
    const encoded = /^jsonencode\((.*)\)$/.exec(expression);
    if (encoded !== null) return JSON.stringify(await this.reference(where, encoded[1]!));
    if (expression === "path.module" || expression === "path.root") return this.folder;
    const [type = "", name = "", attribute = "", ...rest] = expression.split(".");
    const create = CREATORS[type];
    if (create === undefined || rest.length > 0) throw unresolvable(where, `\${${expression}}`);
    const address = `${type}.${name}`;
    let attributes = this.created.get(address);
    if (attributes === undefined) {
      attributes = this.arguments(address).then((args) => create(args, this, address));
      this.created.set(address, attributes);
    }
    const value = (await attributes)[attribute];
    if (value === undefined) throw unresolvable(where, `\${${expression}}`);
    return value;
  }
}

/** Arguments that are addresses or settings for Terraform, not values. */
const META = new Set(["depends_on", "lifecycle", "provider", "provisioner", "connection"]);

/** What others refer to of a file. */
async function fileHash(args: Arguments, resources: Resources, address: string): Promise<Attributes> {
  const content = await fileContent(address, args, resources);
  return { content_sha256: createHash("sha256").update(content).digest("hex") };
}

type Create = (args: Arguments, resources: Resources, address: string) => Attributes | Promise<Attributes>;

const CREATORS: Readonly<Record<string, Create>> = {
  local_file: fileHash,
  local_sensitive_file: fileHash,
  tls_private_key: privateKey,
  tls_self_signed_cert: selfSignedCertificate,
};

function unresolvable(where: string, expression: string): Error {
  const known =
    "tls_private_key.NAME.private_key_pem, tls_self_signed_cert.NAME.cert_pem and local_file.NAME.content_sha256";
  return new Error(`${where}: ${expression} cannot be resolved without Terraform (what can: ${known})`);
}
