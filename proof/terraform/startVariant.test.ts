import { existsSync, readFileSync } from "node:fs";
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

  const apply = (word: string): string =>
    workspace.terraform("apply", "-input=false", "-auto-approve", "-no-color", "-var", `word=${word}`);

  test("must not select the FastCGI variant: then nothing is written", () => {
    expect(() => apply("start-fastcgi")).toThrow(/must not be started in its FastCGI variant/);
    expect(existsSync(unit)).toBe(false);
  });

  test("may be any other", () => {
    apply("start");
    expect(readFileSync(unit, "utf8")).toContain('ExecStart=/bin/sh -c "/srv/web.sh \\"$${HOME}\\" start"\n');
  });
});
