import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { applyEdits, planSettings } from "../../src/host/applicationSettings/index.js";
import { APPLICATIONS, type PublicPlace } from "../../src/applications/index.js";
import { itemLabel } from "../../src/model/host/settings.js";
import { renderSettings } from "../../src/render/index.js";

/** A wrong public URL in the settings of each application of the table: found with its line, and corrected by an edit. */

const place = (host: string): PublicPlace => ({
  scheme: "https",
  host,
  port: 443,
  authority: host,
  origin: `https://${host}`,
  origins: [`https://${host}`],
  path: "",
});

let root: string;
beforeEach(() => (root = mkdtempSync(path.join(tmpdir(), "applications-"))));
afterEach(() => rmSync(root, { recursive: true }));

const told = APPLICATIONS.flatMap(({ title, settings, parts }) =>
  settings === undefined ? [] : [[`${title}, ${Object.keys(parts).join(" ")}`, settings] as const],
);

test.each(told)("%s", async (_title, settings) => {
  for (const file of settings(place("old.example.org"))) {
    mkdirSync(path.join(root, path.dirname(file.path)), { recursive: true });
    const before = file.kind === "python" ? "SECRET_KEY = 'x'\n" : "";
    const after = file.kind === "python" ? "DATABASES = {}\n" : "";
    writeFileSync(path.join(root, file.path), before + renderSettings(file) + after);
  }
  const source = { files: settings(place("files.example.org")) };
  const plan = await planSettings(source, root);
  expect(plan.problems).toEqual([]);
  const wrong = plan.files.flatMap(({ findings }) => findings.filter(({ state }) => state !== "same"));
  // Each item with the host in it, and no other.
  const naming = source.files.flatMap(({ items }) =>
    items.filter(({ value }) => String(value).includes("files.example")),
  );
  expect(wrong.map(({ item }) => item)).toEqual(naming.map((item) => itemLabel(item)));
  expect(wrong.every(({ line, state }) => state === "different" && line! > 0)).toBe(true);
  expect(await applyEdits(plan)).toEqual({ ok: true, value: null });
  const again = await planSettings(source, root);
  expect(again.files.flatMap(({ findings }) => findings.filter(({ state }) => state !== "same"))).toEqual([]);
});
