import { spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { layOut } from "../../demo/layOut.js";
import { freePortOffset } from "../../demo/previewProcess.js";
import { Consumer } from "./consumer.js";

/** The package as users install it: the packed tarball, in projects of every usual kind. */
let consumer: Consumer;
beforeAll(() => {
  consumer = new Consumer();
}, 60_000);
afterAll(() => consumer?.remove());

const PROGRAM = `
import { LocalProvider } from "@cdktf/provider-local/lib/providerEXTENSION";
import { TlsProvider } from "@cdktf/provider-tls/lib/providerEXTENSION";
import { App, TerraformStack } from "cdktf";
import { FileSyncFrontEnd, Mode } from "cdktf-portico";
import { VERSION } from "cdktf-portico/runtime";
import { renderProxyConfig } from "cdktf-portico/testing";

const app = new App();
const stack = new TerraformStack(app, "portico");
new LocalProvider(stack, "local");
new TlsProvider(stack, "tls");
new FileSyncFrontEnd(stack, "files", {
  host: { address: "192.0.2.10" },
  mode: Mode.tls(),
  installDirectory: "/srv/sync",
});
app.synth();
console.log(VERSION, renderProxyConfig(stack).listeners.length);
`;

const program = (extension = ""): string => PROGRAM.replaceAll("EXTENSION", extension);
const STRICT = { strict: true, skipLibCheck: false, types: ["node"], noEmit: true };

describe("the types", () => {
  // What `cdktf init --template=typescript` writes, without what concerns the output.
  const template = {
    ...{
      alwaysStrict: true,
      declaration: true,
      experimentalDecorators: true,
      strict: true,
      noImplicitReturns: true,
    },
    ...{ lib: ["es2018"], module: "CommonJS", target: "ES2018", types: ["node"], noEmit: true },
    // The template's resolution is deprecated by the compiler that is installed here.
    ...{ moduleResolution: "node10", ignoreDeprecations: "6.0" },
  };
  test.each<[string, object, string]>([
    ["cdktf's template", { ...template, skipLibCheck: true }, ""],
    [
      "cdktf's template, libraries checked, no esModuleInterop",
      { ...template, ...STRICT, esModuleInterop: false },
      "",
    ],
    ["node16", { ...STRICT, module: "node16", target: "es2022" }, ""],
    ["nodenext", { ...STRICT, module: "nodenext", target: "es2022" }, ""],
    ["bundler", { ...STRICT, module: "esnext", moduleResolution: "bundler", target: "es2022" }, ""],
  ])(
    "resolve with %s",
    (_, compilerOptions, extension) => {
      consumer.write("types/main.ts", program(extension));
      consumer.write("types/tsconfig.json", JSON.stringify({ compilerOptions, include: ["main.ts"] }));
      expect(consumer.bin("tsc", ["-p", "types"])).toBe("");
    },
    120_000,
  );
});

test("the Containerfile finds in the package what it copies", () => {
  const own = join(consumer.folder, "node_modules/cdktf-portico");
  const [, copied] = /^COPY (.*) \S+$/m.exec(readFileSync(join(own, "Containerfile"), "utf8"))!;
  const sizes = copied!.split(" ").map((file) => statSync(join(own, file)).size);
  expect(sizes.length).toBe(2);
  expect(Math.min(...sizes)).toBeGreaterThan(1000);
});

test("the types describe every field of the config", () => {
  const file = "node_modules/cdktf-portico/dist/lib/model/config/config.d.ts";
  const text = readFileSync(join(consumer.folder, file), "utf8");
  const lines = /^export type ProxyConfig = \{\n([^]*?)^\}/m.exec(text)![1]!.split("\n");
  const isField = (line: string): boolean => /^ *readonly \w+/.test(line);
  expect(lines.filter(isField).length).toBeGreaterThan(80);
  expect(lines.filter((line, i) => isField(line) && !lines[i - 1]?.endsWith("*/"))).toEqual([]);
});

describe("the library", () => {
  test("runs as CommonJS", () => {
    const required = program().replace(/^import (\{.*\}) from (".*");$/gm, "const $1 = require($2);");
    consumer.write("main.cjs", required);
    expect(consumer.run(process.execPath, ["main.cjs"])).toMatch(/^\d+\.\d+\.\d+ 2\n/m);
  });

  test("runs as an ECMAScript module", () => {
    consumer.write("main.mjs", program("/index.js"));
    expect(consumer.run(process.execPath, ["main.mjs"])).toMatch(/^\d+\.\d+\.\d+ 2\n/m);
  });
});

const sections = readFileSync(resolve(__dirname, "../../README.md"), "utf8").split(/^## /m);

/** Code blocks of a section of the README, in order. */
function blocks(title: string, language: string): string[] {
  const section = sections.find((text) => text.startsWith(`${title}\n`));
  if (section === undefined) throw new Error(`the README has no section "${title}"`);
  return [...section.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, "gm"))].map(
    (match) => match[1]!,
  );
}

describe("the README", () => {
  const [main] = blocks("The smallest deployment", "ts");
  const stack = join("cdktf.out", "stacks", "portico", "cdk.tf.json");
  const check = (file: string): void => {
    const options = [
      "--noEmit",
      "--strict",
      "--module",
      "nodenext",
      "--target",
      "es2022",
      "--types",
      "node,jest",
    ];
    expect(consumer.bin("tsc", [...options, file])).toBe("");
  };

  test("the smallest deployment synthesizes to a stack that writes the host's files", () => {
    consumer.write("main.ts", main!);
    check("main.ts");
    consumer.bin("tsx", ["main.ts"]);
    expect(readFileSync(join(consumer.folder, stack), "utf8")).toContain(
      'out/portico/files/Host/etc/portico/portico.json"',
    );
  }, 60_000);

  test("the files can be tried on loopback", async () => {
    const [, trial] = blocks("The smallest deployment", "sh");
    const root = join(consumer.folder, "out/portico/files/Host");
    await layOut(join(consumer.folder, stack), root);
    const portico = join(consumer.folder, "node_modules/cdktf-portico/dist/portico.mjs");
    const offset = await freePortOffset([80, 443]);
    const script = `${trial!.trim().replace("npx portico", `exec ${process.execPath} ${portico}`)} --port-offset ${offset}`;
    const preview = spawn("/bin/sh", ["-c", script], {
      cwd: consumer.folder,
      stdio: ["ignore", "pipe", "pipe"],
    });
    try {
      let said = "";
      for (const stream of [preview.stdout, preview.stderr])
        stream.on("data", (text) => (said += String(text)));
      await new Promise((done) => {
        preview.stdout.on("data", () => said.includes("Stop it with Ctrl-C") && done(undefined));
        preview.once("exit", done);
      });
      expect(said).toContain(`portico preview of ${root}/etc/portico/portico.json\n`);
    } finally {
      preview.kill();
    }
  }, 60_000);

  test("cdktf.json names the app", () => {
    const [json] = blocks("The smallest deployment", "json");
    expect(JSON.parse(json!)).toMatchObject({ language: "typescript", app: "npx tsx main.ts" });
  });

  test("the additions of a larger stack synthesize", () => {
    const [added] = blocks("In a larger stack", "ts");
    // The example goes on from the smallest deployment, with values of resources that a user has.
    const imports =
      'import { TerraformOutput, TerraformVariable } from "cdktf";\nimport { Action, TlsPolicy } from "cdktf-portico";\n';
    const resources =
      'const server = { ipv4Address: new TerraformVariable(stack, "address", {}).stringValue };\n' +
      'const zone = { name: new TerraformVariable(stack, "zone", {}).stringValue };\n';
    const text = main!.replace(/new FileSyncFrontEnd\([^]*?\n\}\);\n/, `${resources}${added!}`);
    consumer.write("larger.ts", imports + text);
    check("larger.ts");
    consumer.bin("tsx", ["larger.ts"]);
    expect(readFileSync(join(consumer.folder, stack), "utf8")).toContain("http://10.0.0.7:8000");
  }, 60_000);

  test("the deployment over ssh compiles, and is refused while the variable with the host's key is not set", () => {
    const [ssh] = blocks("To a host over ssh", "ts");
    const imports = 'import { Delivery, NodeRuntime } from "cdktf-portico";\n';
    consumer.write("ssh.ts", imports + main!.replace(/new FileSyncFrontEnd\([^]*?\n\}\);\n/, ssh!));
    check("ssh.ts");
    expect(() => consumer.bin("tsx", ["ssh.ts"], { HOST_KEY: undefined })).toThrow(
      "Delivery.ssh.hostKey: is missing [delivery.unverified-host]",
    );
  }, 60_000);

  test.each(["ts-jest", "@swc/jest"])(
    "the unit tests pass with %s",
    (transform) => {
      const [setup] = blocks("Unit tests", "js");
      const [unit] = blocks("Unit tests", "ts");
      consumer.write("jest.setup.js", setup!);
      consumer.write("__tests__/stack.test.ts", unit!);
      consumer.write(
        "tsconfig.json",
        JSON.stringify({
          compilerOptions: {
            ...STRICT,
            types: ["node", "jest"],
            module: "nodenext",
            target: "es2022",
            isolatedModules: true,
          },
        }),
      );
      const config = {
        testEnvironment: "node",
        setupFilesAfterEnv: ["<rootDir>/jest.setup.js"],
        transform: { "\\.ts$": transform },
      };
      consumer.write("jest.config.json", JSON.stringify(config));
      consumer.bin("jest", ["--config", "jest.config.json", "--runInBand"]);
    },
    120_000,
  );
});
