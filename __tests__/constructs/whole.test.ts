import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TerraformStack, TerraformVariable, Testing } from "cdktf";
import { Delivery, FileSyncFrontEnd, FrontEndPair, Mode, TlsMaterial } from "../../src/index.js";
import { renderConfigSchema } from "../../src/render/index.js";
import { newStack } from "../../proof/kit/stacks.js";
import { lateStack } from "../../proof/terraform/lateStack.js";

/** Whole stacks as Terraform gets them: all files with their content, what delivers them, and what Terraform checks. */

const outdir = mkdtempSync(join(tmpdir(), "portico-whole-"));
afterAll(() => rmSync(outdir, { recursive: true }));

function expectWhole(name: string, stack: TerraformStack): void {
  const all = JSON.parse(Testing.synth(stack, true)) as Record<string, object>;
  const kept = (key: string, value: unknown): unknown => {
    // Versions of providers; where the constructs were made.
    if (["provider", "terraform", "//"].includes(key)) return undefined;
    if (typeof value !== "string" || !value.includes("\n")) return value;
    return value === renderConfigSchema() ? "the schema" : value.split("\n");
  };
  // A file of this repository stands for the runtime.
  const text = JSON.stringify(all, kept, 2).replaceAll(/[0-9A-F]{32}\/\w+(?:\.\w+)*\.ts/g, "RUNTIME");
  const golden = join(__dirname, "golden", `${name}.json`);
  if (process.env.UPDATE_GOLDEN === "1") writeFileSync(golden, `${text}\n`);
  expect(`${text}\n`).toBe(readFileSync(golden, "utf8"));
}

const service = { runtimeBundle: __filename };

test("every value is known only at apply", () => {
  expectWhole("late", lateStack(Testing.app({ outdir }), "/out"));
});

test("a connection whose every value is known only at apply, by a user that becomes root", () => {
  const stack = newStack();
  const text = (name: string) => new TerraformVariable(stack, name, { type: "string" }).stringValue;
  const number = (name: string) => new TerraformVariable(stack, name, { type: "number" }).numberValue;
  const delivery = Delivery.ssh({
    address: text("address"),
    port: number("port"),
    user: text("user"),
    hostKey: text("hostKey"),
    privateKeyFile: "/home/me/.ssh/id",
    certificate: text("certificate"),
    sudo: true,
    agent: false,
    bastion: {
      address: text("bastionAddress"),
      port: number("bastionPort"),
      user: text("bastionUser"),
      hostKey: text("bastionKey"),
      privateKeyFile: "/home/me/.ssh/bastion",
    },
    scriptPath: text("scriptPath"),
    connectTimeoutSeconds: number("timeout"),
    machineId: text("machine"),
    whenDestroyed: "purge",
  });
  new FileSyncFrontEnd(stack, "files", {
    host: { address: "192.0.2.10", publicName: "files.example.org", delivery },
    mode: Mode.tls(),
    installDirectory: "/srv/sync",
    service,
  });
  expectWhole("ssh", stack);
});

test("a pair of hosts with an address that both can have, and certificates by ACME", () => {
  const stack = newStack();
  const delivery = Delivery.ssh({ verifyHostKey: false });
  const host = { netmask: "255.255.255.0", interface: "eth0", delivery };
  new FrontEndPair(stack, "pair", {
    hosts: [
      { ...host, address: "192.0.2.11" },
      { ...host, address: "192.0.2.12" },
    ],
    virtualAddress: "192.0.2.20",
    publicName: "files.example.org",
    mode: Mode.tls({ material: TlsMaterial.acme({ email: "a@example.org", agreeToTerms: true }) }),
    installDirectory: "/srv/sync",
    service,
  });
  expectWhole("pair", stack);
});
