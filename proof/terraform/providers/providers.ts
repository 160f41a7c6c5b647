import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";
import { ROOT } from "../../../build/paths.js";
import { runUnseen } from "../../../testkit/unseen.js";

const MIRROR = join(ROOT, ".cache/terraform-providers");
/** What the registry gave. */
const FETCHED = join(ROOT, ".cache/terraform-registry");

/** Where Terraform gets the providers of a synthesized stack from. */
export interface Providers {
  readonly from: "mirror" | "configuration" | "registry";
  /** File for `TF_CLI_CONFIG_FILE`; undefined for Terraform's own defaults. */
  readonly configFile?: string;
}

/**
 * The providers for tests: the mirror of this project if it was built; else what `TF_CLI_CONFIG_FILE` names; else what was
 * fetched from the registry. Nobody has to set a variable.
 *
 * @returns undefined where there are none, or no Terraform; `reason` says why
 */
export function findProviders(): Providers | { readonly from: undefined; readonly reason: string } {
  if (!isInstalled("terraform")) return { from: undefined, reason: "terraform is missing" };
  if (existsSync(join(MIRROR, "stamp")))
    return { from: "mirror", configFile: join(MIRROR, "terraform.tfrc") };
  const { TF_CLI_CONFIG_FILE: named = "" } = process.env;
  if (existsSync(named)) return { from: "configuration", configFile: named };
  const configFile = join(FETCHED, "terraform.tfrc");
  if (existsSync(configFile)) return { from: "registry", configFile };
  const reason =
    "Terraform's providers are not here: `npm test -- proof/` gets them first, or: `npx tsx proof/prepare.ts proof/`";
  return { from: undefined, reason };
}

/**
 * Versions of a provider in the mirror, the oldest first; none where another place has it, which gives what a stack
 * asks for.
 */
export function providerVersions(name: string): readonly string[] {
  if (findProviders().from !== "mirror") return [];
  const versions = readdirSync(join(MIRROR, "mirror/registry.terraform.io/hashicorp", name));
  return versions.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/**
 * Makes ready what {@link findProviders} finds: where nothing is there, the registry is asked, and where it does not
 * respond, the mirror is built, for which Go is needed.
 */
export async function prepareProviders(): Promise<void> {
  const { TF_CLI_CONFIG_FILE: named = "" } = process.env;
  const built = existsSync(join(MIRROR, "stamp"));
  if (!isInstalled("terraform") || (!built && (existsSync(named) || (await fetched())))) return;
  if (!built && !isInstalled("go"))
    throw new Error("the Terraform registry does not respond, and without Go no mirror can be built");
  await runUnseen(join(__dirname, "build.sh"), [MIRROR]);
}

/**
 * Fetches versions that stacks ask for, unless they are there; whether they are now. Terraform itself does it,
 * which knows the user's proxies and credentials. Where it unpacks them is what it takes for a mirror.
 */
async function fetched(): Promise<boolean> {
  const providers = Object.fromEntries(
    ["local", "tls"].map((name) => [name, { source: `hashicorp/${name}`, version: askedFor(name) }]),
  );
  const wanted = JSON.stringify({ terraform: { required_providers: providers } });
  const [asked, configFile] = [join(FETCHED, "main.tf.json"), join(FETCHED, "terraform.tfrc")];
  if (existsSync(configFile) && readFileSync(asked, "utf8") === wanted) return true;
  rmSync(FETCHED, { recursive: true, force: true });
  mkdirSync(FETCHED, { recursive: true });
  writeFileSync(asked, wanted);
  const env = { ...process.env, CHECKPOINT_DISABLE: "1", TF_CLI_CONFIG_FILE: undefined };
  const options = { cwd: FETCHED, env, timeout: 120_000 };
  try {
    await runUnseen("terraform", ["init", "-input=false", "-backend=false"], options);
  } catch {
    return false;
  }
  const path = JSON.stringify(join(FETCHED, ".terraform/providers"));
  writeFileSync(configFile, `provider_installation {\n  filesystem_mirror {\n    path = ${path}\n  }\n}\n`);
  return true;
}

/** Version of a provider that its package is made for, in the range that stacks ask for. */
function askedFor(name: string): string {
  const file = join(ROOT, `node_modules/@cdktf/provider-${name}/package.json`);
  const { cdktf } = JSON.parse(readFileSync(file, "utf8")) as { cdktf: { provider: { version: string } } };
  return cdktf.provider.version;
}

/** Looked for, not run: every suite asks, and Terraform takes a tenth of a second to say its version. */
const isInstalled = (program: string): boolean =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
