import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TerraformStack, TerraformVariable, Testing } from "cdktf";
import { Application, Delivery, FrontEnd, FrontEndPair, Mode, TlsMaterial } from "../../src/index.js";
import {
  DOMAIN_NAME_PATTERN,
  IPV4_PATTERN,
  IPV6_PATTERN,
  LOWER_IPV6_PATTERN,
} from "../../src/model/text/textRule.js";
import { difference, expectGolden } from "../render/golden.js";
import { frontEnd, newStack } from "../../testkit/stacks.js";
import { lateStack } from "../../testkit/lateStack.js";

/**
 * Stacks as Terraform gets them: what delivers the files, what Terraform fills in, and what it checks. What files say is in
 * the goldens of `render/`. Parts that differ only by name, path and host are one part with several names, each
 * condition is written once, and a long value is the difference from one before it, of any stack.
 */

const outdir = mkdtempSync(join(tmpdir(), "portico-whole-"));
afterAll(() => rmSync(outdir, { recursive: true }));

interface Part {
  readonly "//"?: unknown;
  readonly content?: string;
  readonly filename?: string;
  readonly triggers_replace?: { readonly path?: string };
  readonly lifecycle?: { readonly precondition: readonly Record<"condition" | "error_message", string>[] };
}

/** Addresses have a golden of their own, and a file of this repository stands for the runtime. */
const plain = (line: string): string =>
  line
    .replaceAll(/[0-9A-F]{32}\/portico\.schema\.json/g, "FILE")
    .replaceAll(/[0-9A-F]{32}\/\w+(?:\.\w+)*\.ts/g, "FILE")
    .replaceAll(/_[0-9A-F]{8}\b/g, "")
    .replaceAll(/\bc8[0-9a-f]{40}\b/g, "HASH")
    .replaceAll(/192\.0\.2\.1[12]/g, "ADDRESS")
    .replaceAll(/(First|Second)(?=_|Host)/g, "HOST")
    .replaceAll(/\b(?:files|pair(?:_HOST(?=Host|_))?)_?(?=[A-Z])/g, "");

/** Patterns that many conditions have in them. */
const PATTERNS = Object.entries({
  IPV6: IPV6_PATTERN,
  LOWER_IPV6: LOWER_IPV6_PATTERN,
  IPV4: IPV4_PATTERN,
  DOMAIN_NAME: DOMAIN_NAME_PATTERN,
}).map(([name, pattern]) => [`{${name}}`, JSON.stringify(pattern).slice(1, -1)] as const);
const withNames = (condition: string): string =>
  PATTERNS.reduce((text, [name, pattern]) => text.replaceAll(pattern, name), condition);

/** Scripts are run by `render/hostScripts.test.ts`; here stands what tells which one it is. */
const named = (_: string, value: unknown): unknown => {
  const lines = typeof value === "string" ? value.split("\n") : [];
  return lines.length < SCRIPT_LINES_MIN ? value : `${lines.slice(0, 2).join("\n")}\n… ${lines.length} lines`;
};
const SCRIPT_LINES_MIN = 6;

/** A line for each value, with its place; what is flat stands on one line. */
function linesOf(value: unknown, at: string): string[] {
  if (typeof value !== "object" || Object.values(value!).every((one) => typeof one !== "object"))
    return [`  ${at}: ${JSON.stringify(value, named)}`];
  return Object.entries(value!).flatMap(([key, one]) => linesOf(one, `${at}.${key}`));
}

const long: { readonly place: string; readonly pieces: readonly string[] }[] = [];

/** A long value as the difference from the one before that is most like it, if that is less than half of it. */
function shortly(title: string, line: string): string[] {
  const [, key, value] = /^ {2}(\S+): (["[{].*)$/.exec(line) ?? [];
  if (value === undefined || line.length < 120) return [line];
  const pieces = value.split(/(?<=\\n|",)/);
  const [best] = long
    .map(({ place, pieces: before }) => ({ place, lines: difference(before, pieces) }))
    .sort((a, b) => sizeOf(a.lines) - sizeOf(b.lines));
  long.push({ place: `${title} ${key}`, pieces });
  return best !== undefined && sizeOf(best.lines) < line.length / 2
    ? [`  ${key}: as ${best.place}`, ...best.lines.map((one) => `    ${one}`)]
    : [line];
}
const sizeOf = (lines: readonly string[]): number => lines.join("").length;

function textOf(stack: TerraformStack): string {
  const { locals, resource } = JSON.parse(Testing.synth(stack, true)) as Record<
    string,
    Record<string, never>
  >;
  const bodies = new Map<string, Set<string>>();
  const conditions = new Set<string>();
  const filledIn = Object.entries<string>(locals ?? {}).flatMap(([id, text]) => linesFilledIn(id, text));
  for (const [kind, ones] of Object.entries(resource!))
    for (const [id, one] of Object.entries<Part>(ones)) {
      const { content, lifecycle, "//": _, ...others } = one;
      if (content !== undefined) filledIn.push(...linesFilledIn(id, content));
      const own = plain(id);
      const path = others.filename ?? others.triggers_replace?.path;
      const fields = Object.entries(others)
        .flatMap(([key, value]) => linesOf(value, key))
        .map((line) =>
          plain(line)
            .replaceAll(own, "THIS")
            .replaceAll(JSON.stringify(path ?? own), "PATH"),
        );
      const checks = (lifecycle?.precondition ?? []).flatMap(({ condition, error_message: message }) => {
        const known = withNames(condition.replaceAll(/\bvar\.\w+/g, "VALUE"));
        const lines = [
          `  must be: ${message.split("\n")[0]}`,
          ...(conditions.has(known) ? [] : [`    ${known}`]),
        ];
        conditions.add(known);
        return lines;
      });
      const body = [...fields, ...checks].join("\n");
      bodies.set(body, (bodies.get(body) ?? new Set()).add(`${kind} ${own} ${path ?? ""}`.trim()));
    }
  const parts = [...bodies].flatMap(([body, titles]) => {
    const [title] = [...titles][0]!.split(" /");
    return [...titles, ...body.split("\n").flatMap((line) => shortly(title!, line))];
  });
  return [...filledIn, ...parts].join("\n");
}

/** What Terraform fills in; hashes of other files are a matter of `delivery.test.ts`. */
function linesFilledIn(id: string, content: string): string[] {
  const lines = content.split("\n").filter((line) => /\$\{(?!jsonencode\((?:file)?sha256\()/.test(line));
  return lines.length === 0
    ? []
    : [`content ${plain(id)}`, ...lines.map((line) => `  ${plain(line.trim())}`)];
}

const service = { runtimeBundle: __filename };

/** A connection whose every value is known only at apply, by a user that becomes root. */
function sshStack(): TerraformStack {
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
  new FrontEnd(stack, "files", {
    host: { address: "192.0.2.10", publicName: "files.example.org", delivery },
    mode: Mode.tls(),
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
    service,
  });
  return stack;
}

/** A pair of hosts with an address that both can have, and certificates by ACME. */
function pairStack(): TerraformStack {
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
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
    service,
  });
  return stack;
}

test("whole stacks: over ssh, a pair, and one whose every value is known only at apply", () => {
  const stacks = {
    ssh: sshStack(),
    pair: pairStack(),
    late: lateStack(Testing.app({ outdir }), "/out", __filename),
  };
  const texts = Object.entries(stacks).map(([name, stack]) => `# ${name}\n${textOf(stack)}\n`);
  expectGolden("whole.txt", texts.join(""));
});

test("the responses that the file-sync application is expected to give, and why it may not", () => {
  const { expect: rows = [] } = frontEnd({ activation: {} }).activation!.deployment;
  const lines = rows.flatMap(({ causes = [], ...row }) => [
    JSON.stringify(row),
    ...causes.map((cause) => `  ${JSON.stringify(cause)}`),
  ]);
  expectGolden("expected.txt", `${lines.join("\n")}\n`);
});
