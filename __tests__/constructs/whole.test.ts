import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TerraformStack, TerraformVariable, Testing } from "cdktf";
import { Delivery, FileSyncFrontEnd, FrontEndPair, Mode, TlsMaterial } from "../../src/index.js";
import { difference, folded } from "../render/golden.js";
import { newStack } from "../../proof/kit/stacks.js";
import { lateStack } from "../../proof/terraform/lateStack.js";

/**
 * Whole stacks as Terraform gets them: all files with their content, what delivers them, and what Terraform checks. The
 * golden has all of them one after the other: a part that is like one before it is written as its difference from that one.
 */

const GOLDEN = join(__dirname, "golden", "whole.txt");
const outdir = mkdtempSync(join(tmpdir(), "portico-whole-"));
const written: { readonly name: string; readonly kind: string; readonly lines: readonly string[] }[] = [];
let text = "";
afterAll(() => {
  rmSync(outdir, { recursive: true });
  if (process.env.UPDATE_GOLDEN === "1") writeFileSync(GOLDEN, text);
});

function linesOf(value: unknown): string[] {
  if (typeof value === "string") return value.startsWith("{") ? folded(value.split("\n")) : value.split("\n");
  return folded(JSON.stringify(value, undefined, 2).split("\n"));
}

interface Part {
  readonly content?: string;
  readonly lifecycle?: { readonly precondition: readonly Record<"condition" | "error_message", string>[] };
}

function linesOfPart({ content: _, lifecycle, "//": __, ...others }: Part & { "//"?: unknown }): string[] {
  return [
    ...Object.entries(others).flatMap(([key, value]) => {
      const [first, ...rest] = linesOf(value);
      return [`${key}: ${first}`, ...rest];
    }),
    ...(lifecycle?.precondition ?? []).flatMap(({ condition, error_message: message }) => {
      const [what, ...more] = message.split("\n").map((line) => line.trim().replaceAll(/  +/g, " "));
      return [
        `must be ${condition}`,
        `  ${what}`,
        ...(more.length === 0 ? [] : [`  ${more.slice(0, -1).join(" ")}`]),
      ];
    }),
  ];
}

function part(kind: string, id: string, lines: readonly string[]): string {
  // Addresses have a golden of their own.
  const name = id.replace(/_[0-9A-F]{8}$/, "");
  const own = new RegExp(`\\b${name}(?=\\b|_)`, "g");
  const plain = lines.map((line) =>
    line
      // A file of this repository stands for the runtime.
      .replaceAll(/[0-9A-F]{32}\/portico\.schema\.json/g, "SCHEMA")
      .replaceAll(/[0-9A-F]{32}\/\w+(?:\.\w+)*\.ts/g, "RUNTIME")
      .replaceAll(/_[0-9A-F]{8}\b/g, "")
      .replaceAll(own, "THIS"),
  );
  const most = plain.length / 1.5;
  const [likest] = written
    .filter((one) => one.kind === kind && Math.abs(one.lines.length - plain.length) <= most)
    .map((one) => ({ name: one.name, lines: difference(one.lines, plain) }))
    .filter((one) => one.lines.length <= most)
    .sort((one, other) => one.lines.length - other.lines.length);
  written.push({ name, kind, lines: plain });
  const [title, body] =
    likest === undefined
      ? [`${kind} ${name}`, plain]
      : [`${kind} ${name}: ${likest.name}${likest.lines.length > 0 ? ", but" : ""}`, likest.lines];
  return [title, ...body.map((line) => `  ${line}`.trimEnd()), ""].join("\n");
}

function expectWhole(name: string, stack: TerraformStack): void {
  const { locals, resource, ...more } = JSON.parse(Testing.synth(stack, true)) as Record<
    string,
    Record<string, never>
  >;
  // Versions of providers, and where the constructs were made, are left out.
  const { provider: _, terraform: __, "//": ___, ...others } = more;
  const parts = Object.entries({ ...resource, ...others }).flatMap(([kind, ones]) =>
    Object.entries<Part>(ones).flatMap(([id, one]) => [
      ...(one.content === undefined ? [] : [part("content", id, linesOf(one.content))]),
      part(kind, id, linesOfPart(one)),
    ]),
  );
  const contents = Object.entries(locals ?? {}).map(([id, one]) => part("content", id, linesOf(one)));
  const whole = [`# ${name}\n`, ...contents, ...parts].join("");
  text += whole;
  if (process.env.UPDATE_GOLDEN !== "1") expect(readFileSync(GOLDEN, "utf8")).toContain(whole);
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
