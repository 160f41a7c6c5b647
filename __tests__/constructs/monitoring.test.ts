import { App, TerraformStack, Testing } from "cdktf";
import {
  AlertRules,
  MetricsDashboard,
  type Problem,
  renderAlertRules,
  renderDashboard,
} from "../../src/index.js";
import { sayings } from "../../testkit/sayings.js";

/** Files for Prometheus and Grafana, as Terraform writes them. */

const allSaid = sayings("monitoring");
const stack = (): TerraformStack => new TerraformStack(new App(), "monitoring");

interface Files {
  readonly resource: { readonly local_file: Readonly<Record<string, { filename: string; content: string }>> };
}

test("are local files, with the texts that the functions return", () => {
  const site = stack();
  new AlertRules(site, "alerts", { file: "monitoring/rules.yml", job: "front" });
  new MetricsDashboard(site, "dashboard", { file: "/srv/grafana/portico.json", uid: "front" });
  const { resource } = JSON.parse(Testing.synth(site)) as Files;
  const [rules, dashboard] = Object.values(resource.local_file);
  // As Terraform reads it: `$${` is `${`.
  const text = (content: string): string => content.replaceAll("$${", "${").replaceAll("%%{", "%{");
  expect(rules!.filename).toBe("${path.module}/../../../monitoring/rules.yml");
  expect(text(rules!.content)).toBe(renderAlertRules({ job: "front" }));
  expect(dashboard!.filename).toBe("/srv/grafana/portico.json");
  expect(text(dashboard!.content)).toBe(renderDashboard({ uid: "front" }));
  expect(dashboard!.content).not.toMatch(/(?<!\$)\$\{/);
});

test.each<[() => unknown, string]>([
  [() => new AlertRules(stack(), "a", { file: "../rules.yml" }), "config.bad-file-path monitoring/a.file"],
  [() => new AlertRules(stack(), "a", { file: "" }), "config.bad-file-path monitoring/a.file"],
  [
    () => new AlertRules(stack(), "a", { file: "a", errorPercentMax: 0, certificateDays: 400 }),
    "config.out-of-range monitoring/a.errorPercentMax, config.out-of-range monitoring/a.certificateDays",
  ],
  [() => new MetricsDashboard(stack(), "d", { file: "a", uid: "a b" }), "config.bad-name monitoring/d.uid"],
  [() => new MetricsDashboard(stack(), "d", {} as never), "config.missing-field monitoring/d.file"],
])("%s is refused", (make, said) => {
  const refused: { problems?: readonly Problem[] } = (() => {
    try {
      make();
      return {};
    } catch (error) {
      return error as object;
    }
  })();
  expect(
    allSaid(refused.problems!)
      .map(({ code, path }) => `${code} ${path}`)
      .join(", "),
  ).toBe(said);
});
