import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { App, TerraformStack } from "cdktf";
import { layOut } from "../../demo/layOut.js";
import { type ApplicationDefinition, APPLICATIONS, type PublicPlace } from "../../src/applications/index.js";
import { run } from "../../src/cli/program.js";
import {
  type ExpectedProbe,
  expectedResponses,
} from "../../src/host/diagnosis/expected/expectedResponses.js";
import { judge } from "../../src/host/diagnosis/expected/liveCheck.js";
import { probe } from "../../src/host/diagnosis/expected/probe.js";
import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { Application, Delivery, FrontEnd, Mode } from "../../src/index.js";
import { itemLabel } from "../../src/model/host/settings.js";
import { renderSettings } from "../../src/render/index.js";
import { response, configOf } from "./site.js";

/** A host as it is deployed for each application of the table, whose settings have another public name: what doctor says. */

const place = (host: string): PublicPlace => ({
  scheme: "http",
  host,
  port: 80,
  authority: host,
  origin: `http://${host}`,
  origins: [`http://${host}`],
  path: "",
});

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-applications-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Lays the host out below `root`. */
async function deploy(definition: ApplicationDefinition, root: string): Promise<FrontEnd<object, object>> {
  const app = new App({ outdir: join(folder, "cdktf.out") });
  const stack = new TerraformStack(app, "portico");
  const bundle = join(folder, "portico.mjs");
  writeFileSync(bundle, "");
  const files = new FrontEnd(stack, "files", {
    host: { address: "127.0.0.1", publicName: "files.example.org", delivery: Delivery.local({ root }) },
    mode: Mode.plain(),
    application: Application.custom(definition),
    service: { runtimeBundle: bundle },
    activation: {},
  });
  app.synth();
  for (const route of Object.values(definition.routes(place("files.example.org"))))
    if (route?.action.type === "staticFiles")
      mkdirSync(join(root, route.action.directory), { recursive: true });
  await layOut(join(folder, "cdktf.out/stacks/portico/cdk.tf.json"), root);
  return files;
}

async function doctor(root: string): Promise<readonly DiagnosisRow[]> {
  let said = "";
  const output = { out: (text: string) => void (said += text), err: (text: string) => void (said += text) };
  await run(["doctor", "--root", root, "--json"], output);
  return (JSON.parse(said) as { rows: readonly DiagnosisRow[] }).rows;
}

const told = APPLICATIONS.flatMap((definition) => {
  const { title, settings, parts } = definition;
  return settings === undefined
    ? []
    : [[`${title}, ${Object.keys(parts).join(" ")}`, definition, settings] as const];
});

test.each(told)("%s: the line to change is named", async (_title, definition, settings) => {
  const root = join(folder, "host");
  await deploy(definition, root);
  const write = (host: string): void => {
    for (const file of settings(place(host))) {
      mkdirSync(join(root, dirname(file.path)), { recursive: true });
      writeFileSync(join(root, file.path), `# of the application\n${renderSettings(file)}`);
    }
  };
  write("old.example.org");
  const failed = (await doctor(root)).filter(({ status }) => status === "failed");
  const seen = failed.flatMap(({ evidence }) => evidence);
  const items = settings(place("files.example.org")).flatMap(({ path, items: all }) =>
    all.map((item) => ({ path, ...item })),
  );
  for (const item of items) {
    const { path, value } = item;
    if (!String(value).includes("files.example.org")) continue;
    const line = seen.find((one) => one.startsWith(`${itemLabel(item)} is `));
    expect(line).toMatch(/old\.example\.org/);
    expect(line).toContain(`${path}:`);
    expect(line).toContain("files.example.org");
  }
  expect(failed.every(({ fix }) => fix!.includes("portico settings apply"))).toBe(true);
  write("files.example.org");
  const after = await doctor(root);
  expect(after.filter(({ status }) => status === "failed")).toEqual([]);
});

/** What is asked of an application without a settings file for its URL. */
async function rowOf(application: Application, named: RegExp): Promise<ExpectedProbe> {
  const { activation, proxy } = await deploy(application.definition, join(folder, "host"));
  const { expect: asked = [], rows } = activation!.deployment;
  expect(rows).toEqual([expect.objectContaining({ code: "public-urls" })]);
  return expectedResponses(configOf(proxy.config), { expect: asked }).find(({ name }) => named.test(name))!;
}

const JSON_FIELDS = { "content-type": "application/json" };

test("Nextcloud does not know its name: by its response", async () => {
  const row = await rowOf(Application.nextcloud(), /Nextcloud server/);
  // As lib/base.php of Nextcloud does for a name that it does not know.
  const said = judge(row, response(400, JSON_FIELDS));
  expect(said).toMatchObject({ pass: false, code: "public-urls", settings: ["trusted_domains"] });
  expect(said.cause).toContain("files.example.org is not among the trusted domains");
  expect(said.fix).toContain("occ config:system:set trusted_domains 1 --value=files.example.org");
});

test("Nextcloud leads clients elsewhere: by its response", async () => {
  const row = await rowOf(Application.nextcloud(), /log-in page/);
  const leads = (location: string) => judge(row, response(302, { location }));
  for (const right of ["http://files.example.org/login", "http://files.example.org/index.php/login"])
    expect(leads(right)).toMatchObject({ pass: true });
  for (const wrong of ["https://files.example.org/login", "http://10.0.0.7:11000/index.php/login"]) {
    const said = leads(wrong);
    expect(said).toMatchObject({
      pass: false,
      code: "public-urls",
      settings: ["overwriteprotocol", "overwritehost"],
    });
    expect(said.cause).toContain(wrong);
    expect(said.fix).toContain("occ config:system:set overwriteprotocol --value=http;");
    expect(said.fix).toContain("occ config:system:set overwritehost --value=files.example.org");
  }
  // Nobody may take these for a wrong name.
  expect(judge(row, response(503, {}))).toMatchObject({ pass: false, settings: ["maintenance"] });
  expect(leads("http://files.example.org/apps/").code).toBeUndefined();
});

test.each([
  ["", true],
  ["http://files.example.org", true],
  ["http://files.example.org/", true],
  ["https://files.example.org", false],
  ["https://old.example.org", false],
])("Immich with the External Domain %j: as expected, %s", async (externalDomain, right) => {
  const row = await rowOf(Application.immich(), /External Domain/);
  // What ServerConfigDto has, as far as it matters.
  const body = JSON.stringify({ loginPageMessage: "ä".repeat(5_000), isInitialized: true, externalDomain });
  const server = createServer((request, response) =>
    response.writeHead(200, JSON_FIELDS).end(request.method === "GET" ? body : ""),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const outcome = await probe({ ...row.request, port }, { timeoutMs: 5_000, insecure: false });
  server.close();
  const said = judge(row, outcome);
  if (right) return expect(said).toMatchObject({ pass: true });
  expect(said).toMatchObject({ pass: false, code: "public-urls", settings: ["externalDomain"] });
  expect(said.seen).toContain(`externalDomain: "${externalDomain}"`);
  expect(said.fix).toContain("External Domain to http://files.example.org");
});

test("Immich responds otherwise: nothing is said of its External Domain", async () => {
  const row = await rowOf(Application.immich(), /External Domain/);
  expect(judge(row, response(404, JSON_FIELDS))).toMatchObject({ pass: false });
  expect(judge(row, response(404, JSON_FIELDS)).code).toBeUndefined();
});
