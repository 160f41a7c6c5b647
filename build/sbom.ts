import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "./paths.js";

/** A package whose code is in the bundle. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression of its `package.json`. */
  readonly license: string;
}

/**
 * Software bill of materials of the bundle (CycloneDX 1.6, JSON): what is in the one file that gets deployed, with the
 * checksums that the lock file holds the packages to. No time and no serial number, so that the same sources give the
 * same document.
 */
export function renderSbom(bundle: Uint8Array, packages: readonly BundledPackage[]): string {
  const own = manifestOf(ROOT);
  const root = { ...component("application", own), "bom-ref": purl(own) };
  const locked = lockedIntegrity();
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { ...root, hashes: [{ alg: "SHA-256", content: sha256(bundle) }] } },
    components: packages.map((bundled) => ({
      ...component("library", bundled),
      "bom-ref": purl(bundled),
      hashes: [{ alg: "SHA-512", content: hexOf(locked(bundled.name)) }],
    })),
    dependencies: [{ ref: purl(own), dependsOn: packages.map(purl) }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** What the `package.json` in a folder says of its package. */
export function manifestOf(folder: string): BundledPackage {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  return { name, version, license };
}

function component(type: "application" | "library", { name, version, license }: BundledPackage) {
  return { type, name, version, purl: purl({ name, version }), licenses: [{ expression: license }] };
}

/** Package URL of an npm package; the `@` of a scope is percent-encoded. */
function purl({ name, version }: Pick<BundledPackage, "name" | "version">): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Looks up what the lock file says a package's archive must hash to. */
function lockedIntegrity(): (name: string) => string {
  const { packages } = JSON.parse(readFileSync(path.join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { integrity?: string }>;
  };
  return (name) => {
    const integrity = packages[`node_modules/${name}`]?.integrity;
    if (integrity === undefined)
      throw new Error(`package-lock.json has no checksum for ${name}, which is bundled`);
    return integrity;
  };
}

/** `sha512-<base64>` (Subresource Integrity) in hexadecimal. */
function hexOf(integrity: string): string {
  const match = /^sha512-(\S+)$/.exec(integrity);
  if (match === null) throw new Error(`package-lock.json has a checksum that is no SHA-512: ${integrity}`);
  return Buffer.from(match[1]!, "base64").toString("hex");
}
