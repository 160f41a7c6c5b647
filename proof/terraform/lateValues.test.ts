import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseConfigText } from "../../src/index.js";
import { LATE_CONNECTION, LATE_VALUES, type LateValue } from "./lateValues.js";
import { terraformIsHere, Workspace } from "./workspace.js";

const run = terraformIsHere() ? describe : describe.skip;
/** Known when Terraform applies: it comes from a resource that is not there yet. */
const AT_APPLY = "applied";
const AT_PLAN = LATE_VALUES.filter(({ name }) => name !== AT_APPLY);

/** What Terraform says as it refuses. */
function failure(workspace: Workspace, command: string, values: readonly LateValue[]): string {
  const variables = values.flatMap(({ name, bad }) => ["-var", `${name}=${bad}`]);
  const options = command === "apply" ? ["-auto-approve"] : [];
  try {
    workspace.terraform(command, "-input=false", "-no-color", ...options, ...variables);
  } catch (error) {
    // Terraform draws a frame around messages and wraps lines in them.
    return (error as Error).message.replace(/[│╷╵]/g, " ").replace(/\s+/g, " ");
  }
  throw new Error("nothing was refused");
}

/** Of all that is said of one prop, whatever the order. */
function saidOf(said: string, at: string): string[] {
  return said
    .split(` ${at}: `)
    .slice(1)
    .map((rest) => rest.slice(0, rest.indexOf(" fix: ")));
}

/** Static methods have no place in the tree. */
const placeOf = (at: string): string => (/^[A-Z]/.test(at) ? at : `portico/${at}`);

run("values that only Terraform knows", () => {
  const workspace = new Workspace();
  const config = join(workspace.root, "etc/portico/portico.json");
  let said: string;

  beforeAll(() => {
    workspace.synthesize(join(__dirname, "appWithLateValues.ts"));
    workspace.terraform("init", "-input=false");
    said = failure(workspace, "plan", AT_PLAN);
  }, 120_000);

  afterAll(() => workspace.remove());

  test.each(AT_PLAN)("$name = $bad stops the plan, with an error at $at", ({ at, allowed }) => {
    expect(saidOf(said, placeOf(at))).toContainEqual(expect.stringContaining(`allowed: ${allowed}`));
  });

  test("a gateway outside the subnet stops the plan", () => {
    const elsewhere = { ...LATE_VALUES.find(({ name }) => name === "gateway")!, bad: "10.0.0.1" };
    const refused = failure(workspace, "plan", [elsewhere]);
    expect(refused).toContain(" portico/lan.gateway: is outside the subnet [host.bad-network]");
  }, 60_000);

  test("a value of a resource stops the apply, before the config is written", () => {
    const bad = LATE_VALUES.find(({ name }) => name === AT_APPLY)!;
    expect(failure(workspace, "apply", [bad])).toContain(` portico/${bad.at}: is not ${bad.allowed}`);
    expect(existsSync(config)).toBe(false);
  }, 60_000);

  describe("good ones", () => {
    const text = (path: string): string => readFileSync(join(workspace.root, path), "utf8");

    beforeAll(() => {
      workspace.terraform("apply", "-input=false", "-auto-approve", "-no-color");
    }, 60_000);

    test("pass, and the config loads", () => {
      expect(parseConfigText(readFileSync(config, "utf8"))).toMatchObject({ ok: true });
      expect(JSON.parse(workspace.terraform("output", "-json", "records"))).toEqual([
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

    test("an IPv6 address of a host becomes canonical", () => {
      workspace.terraform(
        ...["apply", "-input=false", "-auto-approve", "-no-color", "-refresh=false"],
        ...["-var", "ipv6=2606:4700:0:0::00AB", "-var", "address=8.8.8.8"],
      );
      expect(JSON.parse(workspace.terraform("output", "-json", "records"))).toContainEqual({
        name: "files.example.org",
        type: "AAAA",
        value: "2606:4700::ab",
      });
    }, 60_000);

    test.each([
      ["192.168.1.2", "fd00::1", []],
      ["100.64.0.1", "2001:db8::1", []],
      ["8.8.8.8", "fe80::1", ["A"]],
      ["224.0.0.1", "2606:4700::1", ["AAAA"]],
    ])(
      "DNS records of %s and %s: %j",
      (address, ipv6, types) => {
        workspace.terraform(
          ...["apply", "-input=false", "-auto-approve", "-no-color", "-refresh=false"],
          ...["-var", `address=${address}`, "-var", `ipv6=${ipv6}`],
        );
        const records = JSON.parse(workspace.terraform("output", "-json", "records")) as { type: string }[];
        expect(records.map(({ type }) => type)).toEqual(types);
      },
      60_000,
    );
  });
});

run("connections that only Terraform knows", () => {
  const workspace = new Workspace();
  let said: string;

  beforeAll(() => {
    workspace.synthesize(join(__dirname, "appWithLateConnection.ts"));
    workspace.terraform("init", "-input=false");
    said = failure(workspace, "plan", LATE_CONNECTION);
  }, 120_000);

  afterAll(() => workspace.remove());

  test.each(LATE_CONNECTION)("$name = $bad stops the plan, with an error at $at", ({ at, allowed }) => {
    expect(saidOf(said, placeOf(at))).toContainEqual(expect.stringContaining(`allowed: ${allowed}`));
  });

  test("good ones pass", () => {
    expect(workspace.plan()).toContainEqual(expect.objectContaining({ actions: ["create"] }));
  }, 60_000);
});
