import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseConfigText } from "../../src/index.js";
import { issue } from "../../testkit/certificates.js";
import { LATE_CONNECTION, LATE_RECORDS, LATE_VALUES, type LateValue } from "../../testkit/lateValues.js";
import { terraformIsHere, Workspace } from "./workspace.js";

const run = terraformIsHere() ? describe : describe.skip;
/** The document lists it, and is refused as a whole. */
const PATH = "path";
const IN_FILES = LATE_VALUES.filter(({ name }) => name !== PATH);

type Given = readonly Pick<LateValue, "name" | "bad">[];

/** What Terraform says of values that it, or the host, refuses. */
function messages(workspace: Workspace, command: string, values: Given): Message[] {
  const variables = values.flatMap(({ name, bad }) => ["-var", `${name}=${bad}`]);
  const options = command === "apply" ? ["-auto-approve"] : [];
  try {
    workspace.terraform(command, "-input=false", "-json", ...options, ...variables);
  } catch (error) {
    const lines = (error as Error).message.split("\n");
    return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Message);
  }
  throw new Error("nothing was refused");
}

interface Message {
  readonly diagnostic?: { readonly severity: string; readonly detail: string };
  readonly hook?: { readonly output?: string };
}

/** The problems with which the activation of an apply ends, each on one line. */
function refused(workspace: Workspace, values: Given): string[] {
  const [, ...lines] = messages(workspace, "apply", values).flatMap(({ hook }) => hook?.output ?? []);
  expect(lines.at(-1)).toBe("nothing was changed");
  const problems = lines
    .slice(0, -1)
    .join("\n")
    .split(/\n(?=\S)/);
  return problems.map((one) => one.replace(/\s+/g, " "));
}

/** Static methods have no place in the tree. */
const placeOf = (at: string): string =>
  /^[A-Z]|^(?:listeners|upstreams|virtualServers)\[|^(?:workers|trustedProxies)/.test(at)
    ? at
    : `portico/${at}`;

run("values that only Terraform knows", () => {
  const workspace = new Workspace();
  const config = join(workspace.root, "etc/portico/portico.json");
  const lastGood = join(workspace.root, "var/lib/portico/deployment/state.json");
  let said: string[];

  beforeAll(async () => {
    const { key, cert } = await issue({ names: ["files.example.org"], to: 365 });
    mkdirSync(join(workspace.root, "etc/ssl"), { recursive: true });
    writeFileSync(join(workspace.root, "etc/ssl/site.pem"), cert);
    writeFileSync(join(workspace.root, "etc/ssl/site.key"), key, { mode: 0o600 });
    workspace.synthesize(join(__dirname, "appWithLateValues.ts"));
    workspace.terraform("init", "-input=false");
    said = refused(workspace, IN_FILES);
  });

  afterAll(() => workspace.remove());

  test.each(IN_FILES)("$name = $bad is refused by the host, at $at", ({ at, allowed, code }) => {
    const own = said.filter((one) => one.startsWith(`${placeOf(at)}: `) && one.includes(` [${code}] `));
    expect(own).toContainEqual(expect.stringContaining(`allowed: ${allowed}`));
  });

  test("nothing is said twice, and nothing is put into operation", () => {
    expect(said.filter((error, i) => said.indexOf(error) !== i)).toEqual([]);
    expect(existsSync(lastGood)).toBe(false);
  });

  test("a gateway outside the subnet, and a value of a resource, are refused", () => {
    const gateway = { name: "gateway", bad: "10.0.0.1" };
    const bad = LATE_VALUES.filter(({ name }) => name === "applied");
    expect(refused(workspace, [gateway, ...bad])).toEqual([
      expect.stringContaining("upstreams[1].url: is not http://HOST:PORT"),
      expect.stringContaining("portico/host.gateway: is outside the host's subnet [host.bad-network]"),
    ]);
  });

  test("the path of a file is refused where the document lists it", () => {
    const bad = LATE_VALUES.filter(({ name }) => name === PATH);
    expect(refused(workspace, bad)).toEqual([
      expect.stringMatching(/deployment\.json: files\[\d+\]\.path: .*\[config\.bad-file-path\]/),
    ]);
  });

  describe("good ones", () => {
    let outputs: Record<string, { value: unknown }>;
    const text = (path: string): string => readFileSync(join(workspace.root, path), "utf8");

    beforeAll(() => {
      workspace.apply();
      ({ outputs } = JSON.parse(readFileSync(join(workspace.folder, "terraform.tfstate"), "utf8")));
    });

    test("pass, and the config loads", () => {
      expect(parseConfigText(readFileSync(config, "utf8"))).toMatchObject({ ok: true });
      expect(outputs.records!.value).toEqual([
        { name: "files.example.org", type: "A", value: "93.184.216.34" },
        { name: "files.example.org", type: "AAAA", value: "2a00:1450::1" },
      ]);
    });

    test("an IPv6 address has brackets in the socket unit and in URLs, and a scheme's own port is left out", () => {
      expect(text("etc/systemd/system/portico.socket")).toMatch(
        /^ListenStream=0\.0\.0\.0:8080\nListenStream=\[::\]:8443$/m,
      );
      expect(text("usr/share/portico/application-settings/web-application-settings.py")).toContain(
        "CSRF_TRUSTED_ORIGINS = ['https://sync.example.org', 'https://[2001:db8::5]']\n",
      );
    });

    test("a credential is named after the last segment of its path, and served directories may be homes", () => {
      const unit = text("etc/systemd/system/portico.service");
      expect(unit).toContain("LoadCredential=site.pem:/etc/ssl/site.pem\n");
      expect(unit).toContain("--credential site.pem:/etc/ssl/site.pem ");
      expect(unit).toContain("ProtectHome=read-only\n");
      expect(unit).toContain("ReadWritePaths=/srv/logs\n");
    });

    test("each range is in a rule of its family", () => {
      const rules = text("etc/portico/firewall.nft");
      const source = /^\t\t(ip6?) saddr \{ (.*) \} tcp dport 9090 accept$/gm;
      expect([...rules.matchAll(source)].map(([, family, ranges]) => [family, ranges])).toEqual([
        ["ip", "192.0.2.0/24"],
        ["ip", "10.0.0.0/8"],
        ["ip6", "2001:db8::/32"],
      ]);
    });

    test.each(LATE_RECORDS.map((one, i) => ({ ...one, i })))(
      "DNS records of $address and $ipv6: $records",
      ({ i, records }) => {
        const named = records.map((record) => ({ name: "files.example.org", ...record }));
        expect(outputs[`recordsOf${i}`]!.value).toEqual(named);
      },
    );
  });
});

run("connections that only Terraform knows", () => {
  const workspace = new Workspace();
  let said: string[];

  beforeAll(() => {
    workspace.synthesize(join(__dirname, "appWithLateConnection.ts"));
    workspace.terraform("init", "-input=false");
    said = messages(workspace, "plan", LATE_CONNECTION).flatMap(({ diagnostic }) => diagnostic?.detail ?? []);
  });

  afterAll(() => workspace.remove());

  test.each(LATE_CONNECTION)("$name = $bad stops the plan, with an error at $at", ({ at, allowed }) => {
    expect(said.filter((error) => error.startsWith(`${at}: `))).toContainEqual(
      expect.stringContaining(`allowed:  ${allowed}`),
    );
  });

  test("good ones pass", () => {
    expect(workspace.plan()).toContainEqual(expect.objectContaining({ action: "create" }));
  });
});
