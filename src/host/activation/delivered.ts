import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import {
  type Deployment,
  DEPLOYMENT_FILE,
  parseConfigText,
  parseDeploymentText,
  type Problem,
  problem,
  ProblemError,
  type ProxyConfig,
} from "../../model/index.js";
import { systemReason } from "../../runtime/files/systemReason.js";
import { type FileState, hashOf, observe, obstacleTo } from "./fileState.js";
import { filesOf, type GoodState, type Store } from "./store.js";

/** A deployment as it arrived, with all its contents found and intact. */
export interface Delivered {
  readonly deployment: Deployment;
  /** Hash of the document's text. */
  readonly document: string;
  /** What it will serve; undefined if its config is not valid, which `checkStaged` reports. */
  readonly config: ProxyConfig | undefined;
  /** The path of each content, by its hash. */
  readonly contents: ReadonlyMap<string, string>;
  /** The current state of each path of the deployment. */
  readonly now: ReadonlyMap<string, FileState>;
  /**
   * Whether nothing was uploaded: the delivery may have overwritten files, so that their earlier content is unknown.
   */
  readonly inPlace: boolean;
}

/**
 * Reads the deployment to be activated and looks for the content of every file: in its place, in the store of earlier
 * activations, among the uploads. Only what changed was uploaded. Changes nothing.
 */
export async function readDelivered(
  store: Store,
  { incoming, document: expected }: { readonly incoming?: string; readonly document?: string },
): Promise<Delivered> {
  const { text, file } = await readDocument(store, incoming, expected);
  return findContents(store, text, file, incoming);
}

async function readDocument(
  store: Store,
  incoming: string | undefined,
  expected: string | undefined,
): Promise<{ readonly text: Buffer; readonly file: string }> {
  if (incoming !== undefined && expected !== undefined) {
    const file = await upload(expected, "the deployment", incoming);
    if (typeof file !== "string") throw new ProblemError([file]);
    return { text: await readFile(file), file };
  }
  const file = incoming === undefined ? store.onHost(DEPLOYMENT_FILE) : join(incoming, "deployment.json");
  const text = await readFile(file).catch((error: Error) => {
    throw new ProblemError([problem("files.unreadable", file, `cannot be read ${systemReason(error)}`)]);
  });
  const document = createHash("sha256").update(text).digest("hex");
  if (expected === undefined || document === expected) return { text, file };
  const message = "is the document of another apply";
  const allowed = `the document of this apply, ${expected}`;
  throw new ProblemError([
    problem("activation.other-document", file, message, { received: `the document ${document}`, allowed }),
  ]);
}

/** The same for the last activated deployment, whatever has happened to its files on the host since. */
export async function readLast(store: Store, last: GoodState | undefined): Promise<Delivered> {
  if (last === undefined) {
    const message = "does not exist: nothing was activated on this host";
    const fix = "Deliver a deployment to this host, for example with `terraform apply`.";
    throw new ProblemError([problem("activation.damaged-store", store.at("state.json"), message, { fix })]);
  }
  for (const path of [store.blob(last.document), store.onHost(DEPLOYMENT_FILE)]) {
    const text = await readFile(path).catch(() => Buffer.alloc(0));
    if (createHash("sha256").update(text).digest("hex") !== last.document) continue;
    return findContents(store, text, path);
  }
  const message = "is missing or damaged, and the document on the host is too";
  const fix = "Deliver the deployment again, for example with `terraform apply`.";
  throw new ProblemError([problem("activation.damaged-store", store.blob(last.document), message, { fix })]);
}

async function findContents(
  store: Store,
  text: Buffer,
  source: string,
  incoming?: string,
): Promise<Delivered> {
  const parsed = parseDeploymentText(text.toString("utf8"));
  if (!parsed.ok) {
    const at = (p: Problem): string => (p.path === "" ? source : `${source}: ${p.path}`);
    throw new ProblemError(parsed.problems.map((p) => ({ ...p, path: at(p) })));
  }
  const deployment = parsed.value;
  const document = createHash("sha256").update(text).digest("hex");
  const now = await observeAll(
    store,
    filesOf(deployment, document).map(({ path }) => path),
  );
  const contents = new Map([[document, source]]);
  const problems: Problem[] = [];
  for (const { path, sha256 } of deployment.files) {
    const found = await find(sha256, path, now, store, incoming);
    if (typeof found === "string") contents.set(sha256, found);
    else problems.push(found);
  }
  if (problems.length > 0) throw new ProblemError(problems);
  const config = parseConfigText(await readFile(contents.get(configHash(deployment))!, "utf8"));
  return {
    ...{ deployment, document, contents, now, inPlace: incoming === undefined },
    config: config.ok ? config.value : undefined,
  };
}

/** SHA-256 of a deployment's config. */
export const configHash = ({ config, files }: Deployment): string =>
  files.find(({ path }) => path === config)!.sha256;

/** The state of paths of the host; a directory where a file belongs is a problem. */
export async function observeAll(store: Store, paths: readonly string[]): Promise<Map<string, FileState>> {
  const states = new Map<string, FileState>();
  const problems: Problem[] = [];
  for (const path of paths) {
    try {
      const state = await observe(store.onHost(path));
      if (state !== "unfit") states.set(path, state);
      else problems.push(problem("activation.bad-target", path, await unfitness(store, path)));
    } catch (error) {
      const message = `cannot be examined ${systemReason(error as Error)}`;
      problems.push(problem("activation.bad-target", path, message));
    }
  }
  if (problems.length > 0) throw new ProblemError(problems);
  return states;
}

async function unfitness(store: Store, path: string): Promise<string> {
  const obstacle = join("/", relative(store.root, await obstacleTo(store.onHost(path))));
  return obstacle === path ? "is not a regular file" : `is below ${obstacle}, which is not a directory`;
}

async function find(
  sha256: string,
  wanted: string,
  now: ReadonlyMap<string, FileState>,
  store: Store,
  incoming: string | undefined,
): Promise<string | Problem> {
  for (const [path, state] of now) {
    if (state.kind === "file" && state.sha256 === sha256) return store.onHost(path);
  }
  if (await store.has(sha256)) return store.blob(sha256);
  if (incoming === undefined) {
    const fix = "Write the file again, for example with `terraform apply`.";
    const message = "is missing, or differs from the deployment";
    return problem("activation.corrupt-blob", wanted, message, { fix, allowed: `SHA-256 ${sha256}` });
  }
  return upload(sha256, wanted, incoming);
}

/**
 * The path of an upload. Its name is the SHA-256 of its content, and the id of the upload: two applies may have sent the
 * same content.
 */
async function upload(sha256: string, wanted: string, incoming: string): Promise<string | Problem> {
  const names = (await readdir(incoming).catch(() => [])).filter((name) => name.split(".")[0] === sha256);
  let last = problem("activation.missing-blob", join(incoming, sha256), `is missing, but ${wanted} needs it`);
  for (const name of names) {
    const path = join(incoming, name);
    const hash = await hashOf(path).catch((error: NodeJS.ErrnoException) => error);
    if (hash === sha256) return path;
    last =
      typeof hash === "string"
        ? problem(
            "activation.corrupt-blob",
            path,
            `does not match the hash in its name, but ${wanted} needs it`,
            { received: `SHA-256 ${hash}` },
          )
        : problem(
            "activation.missing-blob",
            path,
            `cannot be read ${systemReason(hash)}, but ${wanted} needs it`,
          );
  }
  return last;
}
