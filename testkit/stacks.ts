import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type App,
  DefaultTokenResolver,
  StringConcat,
  TerraformProvider,
  TerraformStack,
  Testing,
  Tokenization,
} from "cdktf";
import {
  Application,
  type ApplicationDaemons,
  type ApplicationSettings,
  type FileSyncRoutes,
  type FileSyncUpstreams,
  FrontEnd,
  type FrontEndProps,
  Mode,
  type Problem,
  ProblemError,
} from "../src/index.js";
import { FILE_SYNC_OPTIONS } from "../src/constructs/application/fileSync.js";

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

/** A front end of the file-sync service. */
export type FileSyncFrontEnd = FrontEnd<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>;
export type FileSyncFrontEndProps = FrontEndProps<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>;

/** A front end of the file-sync service with a stand-in for the runtime, which is large. */
export function frontEnd(
  more: Partial<FileSyncFrontEndProps> = {},
  id = "files",
  stack = newStack(),
): FileSyncFrontEnd {
  return new FrontEnd(stack, id, {
    host: { address: "192.0.2.10" },
    mode: Mode.tls(),
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
    ...more,
    service: { runtimeBundle: __filename, ...more.service },
  });
}

/** Props in which the options of the service stand beside those of the front end; for mistakes in one of the two. */
export function withService(props: Readonly<Record<string, unknown>>): Readonly<Record<string, never>> {
  const entries = Object.entries(props);
  const own = entries.filter(([name]) => name in FILE_SYNC_OPTIONS);
  const others = entries.filter(([name]) => !(name in FILE_SYNC_OPTIONS));
  const options = { installDirectory: "/srv/sync", ...Object.fromEntries(own) };
  const given = "application" in props ? {} : { application: Application.fileSync(options) };
  return { ...given, ...Object.fromEntries(others) } as Readonly<Record<string, never>>;
}

/** Units of the service's daemons; undefined if it brings its own. */
export const daemonsOf = ({ site }: FrontEnd): ApplicationDaemons | undefined =>
  site.node.tryFindChild("Daemons") as ApplicationDaemons | undefined;

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

/** A value as Terraform gets it, with references in place of tokens. */
export function resolved<T>(scope: TerraformStack, value: T): T {
  return Tokenization.resolve(value, {
    scope,
    resolver: new DefaultTokenResolver(new StringConcat()),
  }) as T;
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
