import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { providerVersions } from "./providers/providers.js";
import { terraformIsHere, Workspace } from "./workspace.js";

/**
 * A stack works with the oldest version of each provider that is here, and is then one of the newest, with nothing to change.
 * The other tests have the newest.
 */
const run = terraformIsHere() ? describe : describe.skip;

run("versions of providers", () => {
  const workspace = new Workspace();
  afterAll(() => workspace.remove());

  function pin(at: 0 | -1): void {
    const file = join(workspace.stack, "cdk.tf.json");
    const json = JSON.parse(readFileSync(file, "utf8")) as {
      readonly terraform: { readonly required_providers: Record<string, { version?: string }> };
    };
    for (const [name, asked] of Object.entries(json.terraform.required_providers)) {
      const version = providerVersions(name).at(at);
      if (version !== undefined) asked.version = version;
    }
    writeFileSync(file, JSON.stringify(json));
    workspace.terraform("init", "-input=false", "-upgrade");
  }

  beforeAll(() => workspace.synthesize(join(ROOT, "main.ts")));

  test("the oldest ones make everything, and have nothing to change then", () => {
    pin(0);
    expect(workspace.apply().length).toBeGreaterThan(10);
    expect(workspace.plan()).toEqual([]);
  });

  test("the newest ones take over without a change", () => {
    pin(-1);
    expect(workspace.plan()).toEqual([]);
  });
});
