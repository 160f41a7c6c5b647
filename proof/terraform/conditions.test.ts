import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fn, Testing } from "cdktf";
import { Delivery, Host, HostFile } from "../../src/index.js";
import { newStack, type synthesize } from "../../testkit/stacks.js";

/** Checks of values from functions alone, which Terraform itself has to accept. */

test("a stack with a connection of values that refer to nothing can be initialized", () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-conditions-"));
  try {
    const stack = newStack();
    const delivery = Delivery.ssh({
      hostKey: Fn.format("ssh-ed25519 %s", ["AAAA"]),
      address: Fn.lower("FILES.example.org"),
    });
    const host = new Host(stack, "files", { address: "192.0.2.10", delivery });
    new HostFile(stack, "note", { host, path: "/etc/note", content: "note" });
    // Without validations, as of the activation that it lacks.
    const { resource } = JSON.parse(Testing.synth(stack)) as ReturnType<typeof synthesize>;
    const precondition = Object.values(resource.terraform_data!).flatMap(
      (one: { lifecycle?: { precondition?: object[] } }) => one.lifecycle?.precondition ?? [],
    );
    expect(precondition).toHaveLength(2);
    // Without what connects.
    const config = { resource: { terraform_data: { checked: { lifecycle: { precondition } } } } };
    writeFileSync(join(folder, "main.tf.json"), JSON.stringify(config));
    for (const command of [["init"], ["validate"], ["plan", "-input=false"]]) {
      const { status, stdout, stderr } = spawnSync("terraform", [...command, "-no-color"], {
        cwd: folder,
        encoding: "utf8",
      });
      expect({ status, said: status === 0 ? "" : stdout + stderr }).toEqual({ status: 0, said: "" });
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
