import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** Which provider packages a process loads that uses the built package. */

const PROGRAM = `
const { App, TerraformStack, Testing } = require("cdktf");
const { Delivery, FileSyncFrontEnd, Mode, TlsMaterial } = require(process.argv[1]);
const ssh = Delivery.ssh({ hostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB1Ys0xCkSTpFLUZbP0GZtGEBeSTyc1pfLaSZ2BdZzzz" });
const files = TlsMaterial.fromFiles({ certificate: "/c.pem", key: "/k.pem" });
const [delivery, material] = { none: [], ssh: [ssh, files], local: [Delivery.local(), files], tls: [ssh, TlsMaterial.selfSigned()] }[process.argv[2]];
if (delivery !== undefined) {
  const stack = new TerraformStack(Testing.app(), "stack");
  new FileSyncFrontEnd(stack, "files", {
    host: { address: "192.0.2.10", delivery }, mode: Mode.tls({ material }), installDirectory: "/srv/sync",
  });
  Testing.synth(stack);
}
const loaded = Object.keys(require.cache).map((file) => /provider-(local|tls)/.exec(file)?.[1]);
console.log([...new Set(loaded)].filter(Boolean).join());
`;

test.each([
  ["none", ""],
  ["ssh", ""],
  ["local", "local"],
  ["tls", "tls"],
])("a stack loads the providers that it uses: %s", (what, loaded) => {
  const entry = join(__dirname, "../../dist/lib/index.js");
  const out = execFileSync(process.execPath, ["-e", PROGRAM, entry, what], { encoding: "utf8" });
  expect(out.trim().split("\n").at(-1)).toBe(loaded);
});
