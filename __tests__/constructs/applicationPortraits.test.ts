import type { ProxyConfigInput } from "../../src/model/index.js";
import { APPLICATIONS } from "../../src/applications/index.js";
import { Application, FrontEnd, Mode } from "../../src/index.js";
import { newStack, synthesize } from "../../testkit/stacks.js";
import { expectGolden } from "../render/golden.js";

/** What a front end makes of each application of the table, where nobody gives other addresses or times. */

const HOST = { address: "192.0.2.10", publicName: "files.example.org" };

const said = (value: unknown): string => JSON.stringify(value).replaceAll('"', "");

function frontEndOf(definition: (typeof APPLICATIONS)[number]) {
  const stack = newStack();
  const application = Application.custom(definition);
  const mode = Mode.tls();
  const files = new FrontEnd(stack, "files", { host: HOST, mode, application, activation: {} });
  const written: { filename: string; content: string }[] = Object.values(
    synthesize(stack).resource.local_file!,
  );
  return { written, deployment: files.activation!.deployment };
}

/** Every value that a user would have to look up. */
function portrait(definition: (typeof APPLICATIONS)[number]): string[] {
  const { written, deployment } = frontEndOf(definition);
  const config = written.find(({ filename }) => filename.endsWith("/portico.json"))!;
  const { upstreams = [], virtualServers } = JSON.parse(config.content) as ProxyConfigInput;
  const { routes = [] } = virtualServers.find(({ name }) => name === "application")!;
  return [
    `# ${definition.title}`,
    ...upstreams.map(({ name, ...upstream }) => `upstream ${name} ${said(upstream)}`),
    ...routes.map(({ name, path, ...route }) => `route ${name} ${path} ${said(route)}`),
    ...(deployment.expect ?? []).map(
      ({ request, status, location }) => `asked ${said({ ...request, status, location })}`,
    ),
  ];
}

test("every application is at the address, and has the time, that its manual says", () => {
  expectGolden("applications.txt", `${APPLICATIONS.flatMap(portrait).join("\n")}\n`);
});

test("each entry's log-ins say how a failed one differs from another", () => {
  for (const { name, clients } of APPLICATIONS) {
    // A redirect follows a successful log-in as well.
    for (const { failed, failedLocation } of clients.logIns)
      if (failed.every((status) => status >= 300 && status < 400))
        expect([name, failedLocation]).toEqual([name, expect.any(String)]);
  }
});

/** What is told: to the application, to `portico doctor` and its reader, and to who adds a guard or single sign-on. */
function told(definition: (typeof APPLICATIONS)[number]): string[] {
  const { written, deployment } = frontEndOf(definition);
  const { services, trees = [], rows = [], settings, expect: expected = [] } = deployment;
  const commands = written.filter(({ filename }) => filename.endsWith("commands"));
  const titles = Object.values(definition.parts).map((part) => part!.title);
  const { builtIn = [], logIns, ...clients } = definition.clients;
  return [
    ...(services.daemons ?? []).map((daemon) => `daemon ${said(daemon)}`),
    ...trees.map((tree) => `tree ${said(tree)}`),
    ...rows.map(({ code, title }) => `row ${code} ${title}`),
    ...(settings?.files ?? []).flatMap(({ path, kind, items }) => [
      `settings ${path} ${kind}`,
      ...items.map((item) => `  ${said(item)}`),
    ]),
    ...commands.flatMap(({ content }) => content.split("\n").filter((line) => line !== "")),
    `built in ${builtIn.join(" ")}`,
    ...logIns.map((one) => `log-in ${said(one)}`),
    `clients ${said(clients)}`,
    `parts ${titles.join(", ")}`,
    `asked ${expected.map(({ name }) => name).join(", ")}`,
    // The causes of the file-sync service are tested one by one.
    ...(definition.name === "fileSync" ? [] : expected).flatMap(({ members = [], causes = [] }) => [
      ...members.map((member) => `  ${said(member)}`),
      ...causes.map(({ message, ...cause }) => `  ${titles.reduce(withoutTitle, message)} ${said(cause)}`),
    ]),
  ];
}

const withoutTitle = (text: string, title: string): string => text.replace(`the ${title}`, "the …");

test("every application, its users and its administrator are told what its manual says", () => {
  const seen = new Set<string>();
  // What others have said already is left out.
  const isNew = (line: string): boolean => !seen.has(line) && seen.add(line).size > 0;
  const lines = APPLICATIONS.flatMap((one) => [`# ${one.title}`, ...told(one).filter(isNew)]);
  expectGolden("applications-told.txt", `${lines.join("\n")}\n`);
});
