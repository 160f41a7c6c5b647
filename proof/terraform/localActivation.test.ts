import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { terraformIsHere, Workspace } from "./workspace.js";

const run = terraformIsHere() ? describe : describe.skip;

run("a local delivery with activation", () => {
  const workspace = new Workspace();
  const app = join(__dirname, "appWithActivation.ts");
  const lastGood = () =>
    JSON.parse(readFileSync(join(workspace.root, "var/lib/portico/deployment/state.json"), "utf8"));

  afterAll(() => workspace.remove());

  test("activates once the files are there, again when one changes, and leaves nothing when destroyed", () => {
    workspace.synthesize(app, { PORTICO_PAGE: "one\n" });
    workspace.terraform("init", "-input=false");
    workspace.apply();
    const first = lastGood();
    expect(first.deployment.files).toHaveLength(15);
    expect(workspace.plan()).toEqual([]);

    workspace.synthesize(app, { PORTICO_PAGE: "two\n" });
    workspace.apply();
    const changed = ({ deployment }: typeof first) =>
      deployment.files.find(({ role }: { role: string }) => role === "page").sha256;
    expect(changed(lastGood())).not.toBe(changed(first));
    expect(workspace.plan()).toEqual([]);

    workspace.terraform("destroy", "-input=false", "-auto-approve");
    const left = readdirSync(workspace.root, { recursive: true, withFileTypes: true });
    expect(left.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual([]);
  });
});
