import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const MIRROR = join(__dirname, "../../../.cache/terraform-providers");

/** Where Terraform gets the providers of a synthesized stack from. */
export interface Providers {
  readonly from: "mirror" | "configuration" | "registry";
  /** File for `TF_CLI_CONFIG_FILE`; undefined for Terraform's own defaults. */
  readonly configFile?: string;
  /** Versions that differ from those that the constructs ask for; see README.md. */
  readonly versions: Readonly<Record<string, string>>;
}

/**
 * The providers for tests: the mirror of this project if it was built; else what `TF_CLI_CONFIG_FILE` names; else the
 * registry; else the mirror, which is built now where there is Go. Nobody has to set a variable.
 *
 * @returns undefined where there are none, or no Terraform; `reason` says why
 */
export function findProviders(): Providers | { readonly from: undefined; readonly reason: string } {
  if (!isInstalled("terraform")) return { from: undefined, reason: "terraform is missing" };
  if (existsSync(join(MIRROR, "stamp"))) return mirror();
  const { TF_CLI_CONFIG_FILE: named = "" } = process.env;
  if (existsSync(named)) return { from: "configuration", configFile: named, versions: {} };
  if (registryAnswers()) return { from: "registry", versions: {} };
  if (!isInstalled("go")) {
    return {
      from: undefined,
      reason: "the Terraform registry does not answer, and without Go no mirror can be built",
    };
  }
  const { status } = spawnSync(join(__dirname, "build.sh"), [MIRROR], { stdio: ["ignore", 2, 2] });
  return status === 0
    ? mirror()
    : { from: undefined, reason: "the mirror of Terraform's providers cannot be built" };
}

function mirror(): Providers {
  return {
    from: "mirror",
    configFile: join(MIRROR, "terraform.tfrc"),
    versions: { local: "2.9.0", tls: "4.0.4" },
  };
}

/** Asked by Terraform itself, which knows the user's proxies and credentials. */
function registryAnswers(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "portico-registry-"));
  try {
    const providers = { local: { source: "hashicorp/local" } };
    writeFileSync(
      join(folder, "main.tf.json"),
      JSON.stringify({ terraform: { required_providers: providers } }),
    );
    const env = { ...process.env, CHECKPOINT_DISABLE: "1", TF_CLI_CONFIG_FILE: undefined };
    return (
      spawnSync("terraform", ["init", "-input=false", "-backend=false"], {
        cwd: folder,
        env,
        stdio: "ignore",
        timeout: 30_000,
      }).status === 0
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
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
