import { spawn } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { VERSION } from "../../src/model/text/version.js";
import { layOut } from "../../demo/layOut.js";
import { freePortOffset } from "../../testkit/ports.js";
import { deadLinks } from "../../testkit/links.js";
import { codeBlocks } from "../../testkit/markdown.js";
import { testWith } from "../../testkit/testWith.js";
import { Consumer } from "./consumer.js";
import { EXAMPLES } from "./pageExamples.js";

/** The package as users install it: the packed tarball, in projects of every usual kind. */
let consumer: Consumer;
beforeAll(() => {
  consumer = new Consumer();
});
afterAll(() => consumer?.remove());

const PROGRAM = `
import { App, TerraformStack } from "cdktf";
import { Application, FrontEnd, Mode } from "cdktf-portico";
import { VERSION } from "cdktf-portico/runtime";
import { renderProxyConfig } from "cdktf-portico/testing";

const app = new App();
const stack = new TerraformStack(app, "portico");
new FrontEnd(stack, "files", {
  host: { address: "192.0.2.10" },
  mode: Mode.tls(),
  application: Application.fileSync({ installDirectory: "/srv/sync" }),
});
app.synth();
console.log(VERSION, renderProxyConfig(stack).listeners.length);
`;

const STRICT = { strict: true, skipLibCheck: false, types: ["node"], noEmit: true };

const blocks = (title: string, language: string): string[] => codeBlocks("README.md", language, title);

const MAIN = "README.md-1.ts";

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
  const examples = Object.keys(EXAMPLES).map((file) => `../../${file}`);
  const bundler = { module: "esnext", moduleResolution: "bundler", target: "es2022" };
  // One process for all projects of a compiler reads and parses the libraries once.
  test.each<["tsc" | "tsc7", Record<string, { compilerOptions: object; include?: string[] }>]>([
    // TypeScript 7 no longer knows the template's resolution.
    [
      "tsc",
      {
        "types/template": { compilerOptions: { ...template, skipLibCheck: true } },
        "types/template-libraries-checked": {
          compilerOptions: { ...template, ...STRICT, esModuleInterop: false },
        },
      },
    ],
    [
      "tsc7",
      {
        "types/node16": { compilerOptions: { ...STRICT, module: "node16", target: "es2022" } },
        "types/nodenext-and-the-README": {
          compilerOptions: { ...STRICT, module: "nodenext", target: "es2022" },
          include: examples,
        },
        "types/bundler": { compilerOptions: { ...STRICT, ...bundler } },
      },
    ],
  ])("resolve in every kind of project that %s knows", (compiler, projects) => {
    for (const [name, text] of Object.entries(EXAMPLES)) consumer.write(name, text);
    for (const [folder, { compilerOptions, include = [] }] of Object.entries(projects)) {
      consumer.write(`${folder}/main.ts`, PROGRAM);
      const config = { compilerOptions, include: ["main.ts", ...include] };
      consumer.write(`${folder}/tsconfig.json`, JSON.stringify(config));
    }
    expect(consumer.types(["--build", ...Object.keys(projects)], compiler)).toBe("");
  });
});

test("the Containerfile finds in the package what it copies", () => {
  const own = join(consumer.folder, "node_modules/cdktf-portico");
  const [, copied] = /^COPY (.*) \S+$/m.exec(readFileSync(join(own, "Containerfile"), "utf8"))!;
  const sizes = copied!.split(" ").map((file) => statSync(join(own, file)).size);
  expect(sizes.length).toBe(2);
  expect(Math.min(...sizes)).toBeGreaterThan(1000);
});

test("licences and the bill of materials are in the package, with those of what it holds", () => {
  const own = join(consumer.folder, "node_modules/cdktf-portico");
  const text = (file: string): string => readFileSync(join(own, file), "utf8");
  expect(text("LICENSE")).toContain("Apache License");
  const { metadata, components } = JSON.parse(text("dist/portico.cdx.json"));
  expect(metadata.component).toMatchObject({ name: "cdktf-portico", version: VERSION });
  expect(JSON.parse(text("package.json")).version).toBe(VERSION);
  for (const { name, version } of components as { name: string; version: string }[]) {
    const notice = `/*! ${name} ${version}\n`;
    expect(text("dist/portico.mjs")).toContain(notice);
    if (name !== "commander") expect(text("dist/lib/licenses.txt")).toContain(notice);
  }
});

test("the man page names every command of the help", () => {
  const own = join(consumer.folder, "node_modules/cdktf-portico");
  const { man } = JSON.parse(readFileSync(join(own, "package.json"), "utf8"));
  const page = readFileSync(join(own, man), "utf8");
  const help = consumer.run(process.execPath, [join(own, "dist/portico.mjs"), "--help"]);
  const names = [
    ...help
      .split("\nCommands:\n")[1]!
      .split("\n\n")[0]!
      .matchAll(/^ {2}(\w+)/gm),
  ].map(([, name]) => name!);
  expect(names).toContain("resolve");
  const sections = [...page.matchAll(/^\.SS portico (\w+)/gm)].map(([, name]) => name!);
  expect([...new Set(sections)]).toEqual(names.filter((name) => name !== "help"));
});

testWith("mandoc")("mandoc finds no error in the man page", () => {
  const page = join(consumer.folder, "node_modules/cdktf-portico/dist/portico.1");
  const { status, stdout, stderr } = consumer.spawn("mandoc", ["-W", "error", "-T", "ascii", page]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const text = stdout.replace(/.\u0008/g, "");
  expect(text).toContain("portico certificates renew NAME");
  expect(text).toContain("--port-offset N");
});

test("every link of a page in the package leads to a file and a heading in the package", () => {
  const own = join(consumer.folder, "node_modules/cdktf-portico");
  const pages = readdirSync(own, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".md"),
  );
  expect(pages).toContain("README.md");
  const dead = pages.flatMap((page) => {
    const path = join(own, page);
    return deadLinks(path, readFileSync(path, "utf8")).map((link) => `${page}: ${link}`);
  });
  expect(dead).toEqual([]);
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
    const required = PROGRAM.replace(/^import (\{.*\}) from (".*");$/gm, "const $1 = require($2);");
    consumer.write("main.cjs", required);
    expect(consumer.run(process.execPath, ["main.cjs"])).toMatch(/^\d+\.\d+\.\d+ 2\n/m);
  });

  test("runs as an ECMAScript module", () => {
    consumer.write("main.mjs", PROGRAM);
    expect(consumer.run(process.execPath, ["main.mjs"])).toMatch(/^\d+\.\d+\.\d+ 2\n/m);
  });
});

describe("the pages", () => {
  /** What was said of each example, by its name. */
  let said: Record<string, string>;
  const stackOf = (name: string): string =>
    join(consumer.folder, `${name}.out`, "stacks/portico/cdk.tf.json");

  // Whether they compile is the compiler's test above. One process runs all: to load what they need takes longest.
  beforeAll(() => {
    for (const [name, text] of Object.entries(EXAMPLES)) consumer.write(name, text);
    const program = `
      const said = {};
      for (const name of ${JSON.stringify(Object.keys(EXAMPLES))}) {
        process.env.CDKTF_OUTDIR = name + ".out";
        said[name] = "synthesized";
        try {
          require("./" + name);
        } catch (error) {
          said[name] = error.message;
        }
      }
      console.log(JSON.stringify(said));`;
    const env = { HOST_KEY: "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=" };
    said = JSON.parse(consumer.run(process.execPath, ["--import", "tsx", "-e", program], env));
  });

  test.each(Object.keys(EXAMPLES))("%s synthesizes", (name) => {
    expect(said[name]).toBe("synthesized");
  });

  test("the smallest deployment writes the host's files", () => {
    expect(readFileSync(stackOf(MAIN), "utf8")).toContain('out/portico/files/Host/etc/portico/portico.json"');
  });

  test("the command that makes the state private finds the state and its backup", () => {
    const { terraform } = JSON.parse(readFileSync(stackOf(MAIN), "utf8"));
    const state = basename(terraform.backend.local.path);
    for (const name of [state, `${state}.backup`]) consumer.write(name, "{}");
    const chmod = codeBlocks("docs/deploying.md", "sh", "Where secrets are");
    consumer.run("sh", ["-euc", chmod.join("")]);
    const modes = [state, `${state}.backup`].map(
      (name) => statSync(join(consumer.folder, name)).mode & 0o777,
    );
    expect(modes).toEqual([0o600, 0o600]);
  });

  test("the files can be tried on loopback", async () => {
    const [, trial] = blocks("The smallest deployment", "sh");
    const root = join(consumer.folder, "out/portico/files/Host");
    await layOut(stackOf(MAIN), root);
    const portico = join(consumer.folder, "node_modules/cdktf-portico/dist/portico.mjs");
    const offset = await freePortOffset();
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
  });

  test("it has no module that no entry point needs, and 1.85 MB at most", () => {
    expect(statSync(join(consumer.folder, "cdktf-portico.tgz")).size).toBeLessThan(1_850_000);
    const library = join(consumer.folder, "node_modules/cdktf-portico/dist/lib");
    const folders = readdirSync(library).filter((name) => !name.includes("."));
    expect(folders).toEqual([
      "applications",
      "constructs",
      "kubernetes",
      "model",
      "render",
      "runtime",
      "testing",
    ]);
  });

  test("an import loads nothing that is for the host, and no packages but cdktf and constructs", () => {
    const program = `
      require("cdktf");
      const before = new Set(Object.keys(require.cache));
      require("cdktf-portico");
      const loaded = Object.keys(require.cache).filter((file) => !before.has(file));
      console.log(JSON.stringify(loaded));`;
    const loaded = JSON.parse(consumer.run(process.execPath, ["-e", program])) as string[];
    const own = join(consumer.folder, "node_modules/cdktf-portico/dist/lib/");
    expect(loaded.filter((file) => !file.startsWith(own))).toEqual([]);
    const texts = loaded.map((file) => readFileSync(file, "utf8"));
    // A problem of the model, and one that the runtime logs.
    expect(texts.filter((text) => text.includes("config.missing-package"))).not.toEqual([]);
    expect(texts.filter((text) => text.includes("client resets too many streams"))).toEqual([]);
  });

  test("cdktf.json names the app", () => {
    const [json] = codeBlocks("docs/composing.md", "json");
    expect(JSON.parse(json!)).toMatchObject({ language: "typescript", app: "npx tsx main.ts" });
  });
});

describe("the entry point for clusters, whose peer only its users install", () => {
  const PROVIDER = "@cdktf/provider-kubernetes";
  const ENTRIES = ["", "/testing", "/runtime", "/kubernetes"].map((entry) => `cdktf-portico${entry}`);

  test("nothing needs the provider before a pod is made", () => {
    // Each of them loads all that it needs of the package.
    const program = `
      const load = (entry) => {
        for (const file of Object.keys(require.cache))
          if (file.includes("/node_modules/cdktf-portico/")) delete require.cache[file];
        return require(entry);
      };
      for (const entry of ${JSON.stringify(ENTRIES)}) console.log(typeof load(entry));`;
    expect(consumer.run(process.execPath, ["-e", program])).toBe("object\n".repeat(ENTRIES.length));
  });

  describe("with the provider", () => {
    const cluster = "cluster.ts";
    let bytes: number;

    // One process runs the example and measures the runtime: to load what both need takes longest.
    beforeAll(() => {
      consumer.install(PROVIDER);
      consumer.write(cluster, codeBlocks("docs/kubernetes.md", "ts")[0]!);
      const program = `
        require("./${cluster}");
        const { Testing, TerraformStack } = require("cdktf");
        const { ContainerProxy } = require("cdktf-portico");
        const { KubernetesFrontEnd } = require("cdktf-portico/kubernetes");
        const stack = new TerraformStack(Testing.app(), "stack");
        const proxy = new ContainerProxy(stack, "proxy");
        const listeners = [proxy.addListener("http", { port: 8080, publishedPort: 80 })];
        proxy.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
        const props = { namespace: "files", proxy, image: "node:24.1.0-slim", runtime: "configMap" };
        const { manifests } = new KubernetesFrontEnd(stack, "files", props);
        console.log(Math.max(...manifests.map((one) => JSON.stringify(one).length)));`;
      bytes = Number(consumer.run(process.execPath, ["--import", "tsx", "-e", program]));
    });

    test("the example of the page compiles", () => {
      const strict = [
        "--noEmit",
        "--strict",
        "--module",
        "nodenext",
        "--target",
        "es2022",
        "--types",
        "node",
      ];
      expect(consumer.types([...strict, "--ignoreConfig", cluster])).toBe("");
    });

    test("the example of the page gives Terraform and kubectl the same objects", () => {
      const json = (file: string) => JSON.parse(readFileSync(join(consumer.folder, file), "utf8"));
      const { resource } = json("cdktf.out/stacks/cluster/cdk.tf.json");
      const { kind, items } = json("files.json");
      expect(kind).toBe("List");
      expect(items.map((item: { kind: string }) => item.kind)).toEqual([
        "ConfigMap",
        "NetworkPolicy",
        "Service",
        "Deployment",
        "PodDisruptionBudget",
      ]);
      expect(Object.keys(resource).sort()).toEqual([
        "kubernetes_config_map_v1",
        "kubernetes_deployment_v1",
        "kubernetes_network_policy_v1",
        "kubernetes_pod_disruption_budget_v1",
        "kubernetes_service_v1",
      ]);
    });

    test("the runtime fits into a ConfigMap beside the config", () => {
      expect(bytes).toBeGreaterThan(100_000);
      expect(bytes).toBeLessThan(1024 * 1024);
    });
  });
});
