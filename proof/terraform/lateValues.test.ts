import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseConfigText } from "../../src/index.js";
import { LATE_CONNECTION, LATE_RECORDS, LATE_VALUES, type LateValue } from "../../testkit/lateValues.js";
import { terraformIsHere, Workspace } from "./workspace.js";

const run = terraformIsHere() ? describe : describe.skip;
/** Known when Terraform applies: it comes from a resource that is not there yet. */
const AT_APPLY = "applied";
const AT_PLAN = LATE_VALUES.filter(({ name }) => name !== AT_APPLY);
/** The gateway of a host whose other values are good. */
const ELSEWHERE = { name: "elsewhereGateway", bad: "10.0.0.1" };

/** The errors with which Terraform refuses, each on one line. */
function errors(
  workspace: Workspace,
  command: string,
  values: readonly Pick<LateValue, "name" | "bad">[],
): string[] {
  const variables = values.flatMap(({ name, bad }) => ["-var", `${name}=${bad}`]);
  const options = command === "apply" ? ["-auto-approve"] : [];
  try {
    workspace.terraform(command, "-input=false", "-json", ...options, ...variables);
  } catch (error) {
    return (error as Error).message
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line).diagnostic)
      .filter((diagnostic) => diagnostic?.severity === "error")
      .map(({ detail }) => detail.replace(/\s+/g, " "));
  }
  throw new Error("nothing was refused");
}

/** Of all that is said of one prop, whatever the order. */
function saidOf(said: readonly string[], at: string): string[] {
  return said
    .filter((error) => error.startsWith(`${at}: `))
    .map((error) => error.slice(0, error.indexOf(" fix: ")));
}

/** Static methods have no place in the tree. */
const placeOf = (at: string): string => (/^[A-Z]/.test(at) ? at : `portico/${at}`);

run("values that only Terraform knows", () => {
  const workspace = new Workspace();
  const config = join(workspace.root, "etc/portico/portico.json");
  let said: string[];

  beforeAll(() => {
    workspace.synthesize(join(__dirname, "appWithLateValues.ts"));
    workspace.terraform("init", "-input=false");
    said = errors(workspace, "plan", [...AT_PLAN, ELSEWHERE]);
  });

  afterAll(() => workspace.remove());

  test.each(AT_PLAN)("$name = $bad stops the plan, with an error at $at", ({ at, allowed }) => {
    expect(saidOf(said, placeOf(at))).toContainEqual(expect.stringContaining(`allowed: ${allowed}`));
  });

  test("nothing is said twice", () => {
    expect(said.filter((error, i) => said.indexOf(error) !== i)).toEqual([]);
  });

  test("a gateway outside the subnet stops the plan", () => {
    expect(said).toContainEqual(
      expect.stringContaining("portico/elsewhere.gateway: is outside the host's subnet [host.bad-network]"),
    );
  });

  test("a value of a resource stops the apply, before the config is written", () => {
    const bad = LATE_VALUES.find(({ name }) => name === AT_APPLY)!;
    expect(errors(workspace, "apply", [bad])).toEqual([
      expect.stringContaining(`portico/${bad.at}: is not ${bad.allowed}`),
    ]);
    expect(existsSync(config)).toBe(false);
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
    said = errors(workspace, "plan", LATE_CONNECTION);
  });

  afterAll(() => workspace.remove());

  test.each(LATE_CONNECTION)("$name = $bad stops the plan, with an error at $at", ({ at, allowed }) => {
    expect(saidOf(said, placeOf(at))).toContainEqual(expect.stringContaining(`allowed: ${allowed}`));
  });

  test("good ones pass", () => {
    expect(workspace.plan()).toContainEqual(expect.objectContaining({ action: "create" }));
  });
});
