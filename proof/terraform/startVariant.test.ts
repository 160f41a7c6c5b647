import { readFileSync } from "node:fs";
import { join } from "node:path";
import { terraformIsHere, Workspace } from "./workspace.js";

const run = terraformIsHere() ? describe : describe.skip;

run("a word of a start command that only Terraform knows", () => {
  const workspace = new Workspace();
  const unit = join(workspace.root, "etc/systemd/system/sync-web-application.service");

  beforeAll(() => {
    workspace.synthesize(join(__dirname, "appWithUnknownWord.ts"));
    workspace.terraform("init", "-input=false");
  });

  afterAll(() => workspace.remove());

  test("stands in the command as it is", () => {
    workspace.terraform("apply", "-input=false", "-auto-approve", "-no-color", "-var", "word=start");
    expect(readFileSync(unit, "utf8")).toContain('ExecStart=/bin/sh -c "/srv/web.sh \\"$${HOME}\\" start"\n');
  });
});
