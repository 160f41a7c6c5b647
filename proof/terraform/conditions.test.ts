import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fn } from "cdktf";
import { Action } from "../../src/index.js";
import { frontEnd, newStack, synthesize } from "../../testkit/stacks.js";

/** Checks of values from functions alone, which Terraform itself has to accept. */

test("a stack with values that refer to nothing can be initialized", () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-conditions-"));
  try {
    const stack = newStack();
    const files = frontEnd({ host: { address: Fn.cidrhost("192.0.2.0/24", 10) } }, "files", stack);
    const url = Fn.format("http://%s:%d", [Fn.lower("WEB"), 3000]);
    const web = files.proxy.addUpstream("more", { url });
    files.site.virtualServer.addRoute("more", { path: "/more", action: Action.proxy(web) });
    const { resource } = synthesize(stack);
    const precondition = Object.values(resource.local_file!).flatMap(
      (file: { lifecycle?: { precondition?: object[] } }) => file.lifecycle?.precondition ?? [],
    );
    expect(precondition.length).toBeGreaterThan(1);
    // Without a provider that has to be downloaded.
    const config = { resource: { terraform_data: { checked: { lifecycle: { precondition } } } } };
    writeFileSync(join(folder, "main.tf.json"), JSON.stringify(config));
    for (const command of ["init", "validate"]) {
      const { status, stdout, stderr } = spawnSync("terraform", [command, "-no-color"], {
        cwd: folder,
        encoding: "utf8",
      });
      expect({ status, said: status === 0 ? "" : stdout + stderr }).toEqual({ status: 0, said: "" });
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
