import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { providerVersions } from "./providers/providers.js";
import { terraformIsHere, Workspace } from "./workspace.js";

/**
 * The resources of `cdktn-portico` are what the providers' schemas say. The provider for clusters is not among those that the
 * tests have: its file is written by hand of the same script, and compared with cdktf's package by the golden files of
 * `__tests__/kubernetes/`, which `npm run cdktn` runs on both.
 */
const run = terraformIsHere() ? describe : describe.skip;

/** Of those that are here, the oldest, by which the files are written: later versions have further arguments. */
const OLDEST = { local: providerVersions("local")[0], tls: providerVersions("tls")[0] };

run("the resources of cdktn-portico", () => {
  const workspace = new Workspace();
  afterAll(() => workspace.remove());

  beforeAll(() => {
    mkdirSync(workspace.stack, { recursive: true });
    const sources = Object.entries(OLDEST).map(([name, version]) => [
      name,
      { source: `hashicorp/${name}`, version },
    ]);
    const wanted = { terraform: { required_providers: Object.fromEntries(sources) } };
    writeFileSync(join(workspace.stack, "main.tf.json"), JSON.stringify(wanted));
    workspace.terraform("init", "-input=false");
    const schemas = join(workspace.folder, "schemas.json");
    writeFileSync(schemas, workspace.terraform("providers", "schema", "-json"));
    const script = ["--import", "tsx", "build/providerResources.ts", schemas, workspace.folder];
    execFileSync(process.execPath, script, { cwd: ROOT });
  });

  test.each(["local", "tls"])("of %s are written from its schema", (provider) => {
    const file = `src/constructs/providers/cdktn/${provider}Resources.ts`;
    const [kept, written] = [ROOT, workspace.folder].map((folder) =>
      readFileSync(join(folder, file), "utf8"),
    );
    // Another version than that of the mirror may have further arguments, but none less.
    if (providerVersions(provider).length > 0) expect(kept).toBe(written);
    else expect(written!.split("\n")).toEqual(expect.arrayContaining(kept!.split("\n")));
  });
});
