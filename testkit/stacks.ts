import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type App, TerraformProvider, TerraformStack, Testing } from "cdktf";
import {
  FileSyncFrontEnd,
  type FileSyncFrontEndProps,
  Mode,
  type Problem,
  ProblemError,
} from "../src/index.js";

let outdir: string | undefined;
afterAll(() => {
  if (outdir !== undefined) rmSync(outdir, { recursive: true });
});

/** A stack in an app that leaves no folder behind. */
export function newStack(id = "stack", app?: App): TerraformStack {
  outdir ??= mkdtempSync(join(tmpdir(), "portico-constructs-"));
  return new TerraformStack(app ?? Testing.app({ outdir }), id);
}

/** The provider of a cluster, whose arguments no test looks at. */
export class KubernetesProvider extends TerraformProvider {
  constructor(stack: TerraformStack, id: string) {
    super(stack, id, {
      terraformResourceType: "kubernetes",
      terraformGeneratorMetadata: { providerName: "kubernetes" },
      terraformProviderSource: "hashicorp/kubernetes",
    });
  }
}

/** A front end with a stand-in for the runtime, which is large. */
export function frontEnd(
  more: Partial<FileSyncFrontEndProps> = {},
  id = "files",
  stack = newStack(),
): FileSyncFrontEnd {
  return new FileSyncFrontEnd(stack, id, {
    host: { address: "192.0.2.10" },
    mode: Mode.tls(),
    installDirectory: "/srv/sync",
    ...more,
    service: { runtimeBundle: __filename, ...more.service },
  });
}

/** What the stack synthesizes to, validations run. */
export function synthesize(stack: TerraformStack): Synthesized {
  return JSON.parse(Testing.synth(stack, true)) as Synthesized;
}

export interface Synthesized {
  // Whatever Terraform's JSON holds; tests look at single fields.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly resource: Record<string, Record<string, any>>;
  readonly output?: Record<string, { value: unknown; description: string }>;
  readonly locals?: Record<string, string>;
}

/** Addresses of all resources, sorted. */
export function addresses(stack: TerraformStack): string[] {
  const { resource } = synthesize(stack);
  return Object.entries(resource)
    .flatMap(([type, byId]) => Object.keys(byId).map((id) => `${type}.${id}`))
    .sort();
}

/** Problems that making something throws; fails if it throws anything else, or nothing. */
export function problemsOf(make: () => unknown): readonly Problem[] {
  try {
    make();
  } catch (error) {
    if (error instanceof ProblemError) return error.problems;
    throw error;
  }
  throw new Error("nothing was refused");
}
