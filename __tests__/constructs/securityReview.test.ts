import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, Aspects, TerraformStack } from "cdktf";
import {
  Application,
  FrontEnd,
  Mode,
  SecurityReview,
  type SecurityReviewOptions,
  TlsMaterial,
} from "../../src/index.js";

/** The security review as an Aspect of a stack. */

const folder = mkdtempSync(join(tmpdir(), "portico-review-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ACME = TlsMaterial.acme({ email: "admin@example.org", agreeToTerms: true });

function synthesized(
  options: SecurityReviewOptions,
  vault: object = {},
  hsts: object | false = {},
): () => void {
  const app = new App({ outdir: mkdtempSync(join(folder, "out-")) });
  const stack = new TerraformStack(app, "s");
  const front = new FrontEnd(stack, "front", {
    host: { address: "192.0.2.10", publicName: "www.example.org" },
    passwordGuard: {},
    mode: Mode.tls({ material: ACME, ...(hsts === false ? {} : { hsts }) }),
  });
  const site = front.addSite("vault", {
    serverNames: ["vault.example.org"],
    application: Application.vaultwarden({ directory: "/srv/vaultwarden" }),
  });
  site.routes.admin.configure(vault);
  Aspects.of(stack).add(new SecurityReview(options));
  return () => app.synth();
}

let said: string;
beforeEach(() => {
  said = "";
  jest.spyOn(process.stderr, "write").mockImplementation((text) => ((said += String(text)), true));
});
afterEach(() => jest.restoreAllMocks());

test("an open private path makes synthesis fail, at its route", () => {
  expect(synthesized({}, { access: "open" })).toThrow(
    /\[s\/front\/.*admin\] A path that the application's manual tells to close .* \(\/admin\)\. .*\[security\.private-open\]/,
  );
});

test("a finding that does not fail is a warning at its construct", () => {
  synthesized({ failOn: "never" }, { access: "open" }, false)();
  expect(said).toMatch(/^warning: s\/front\/\S*admin: A path that .*\[security\.private-open\]$/m);
  expect(said).toMatch(/^warning: s\/front\/\S*vault: Browsers may be led to http.*\[security\.no-hsts\]$/m);
});

test("warnings can fail, and a sound stack says nothing", () => {
  expect(synthesized({ failOn: "warning" }, {}, false)).toThrow(/security\.no-hsts/);
  expect(synthesized({ failOn: "warning" })).not.toThrow();
  expect(said).not.toContain("security.");
});
