import { existsSync } from "node:fs";
import { Lazy, TerraformAsset, type TerraformResource } from "cdktf";
import { Construct } from "constructs";
import type { FileRole } from "../model/deployment.js";
import { problem } from "../model/index.js";
import { refuse } from "./checks.js";
import type { Host } from "./host.js";
import { escapeTemplate, isKnown } from "./tokens.js";

/** A file on a host, put there by the host's delivery. */
export class HostFile extends Construct {
  /** Absolute path on the host. */
  readonly path: string;
  /** Permissions, four octal digits. */
  readonly mode: FileMode;
  /** What the file is; decides what activation does when it changes. */
  readonly role: FileRole;
  /** The host that gets it. */
  readonly host: Host;
  /** Whether plans and logs must not show the content. */
  readonly sensitive: boolean;
  /** The resource that brings the file: depend on it, or change it (escape hatch). */
  readonly resource: TerraformResource;
  /** SHA-256 of the content in hexadecimal digits, as Terraform will compute it. */
  readonly sha256: string;

  constructor(scope: Construct, id: string, props: HostFileProps) {
    super(scope, id);
    const { path, content, source, mode = "0644", role = "other", sensitive = false } = props;
    refuseFile(this.node.path, path, content, source);
    this.path = path;
    this.mode = mode;
    this.role = role;
    this.host = props.host;
    this.sensitive = sensitive;
    const asset = source === undefined ? undefined : new TerraformAsset(this, "Asset", { path: source });
    const delivered = props.host.delivery.deliver(this, "Resource", {
      host: props.host,
      path: escapeTemplate(path),
      mode,
      sensitive,
      ...(content === undefined ? {} : { content: template(content) }),
      ...(asset === undefined ? {} : { source: asset.path }),
    });
    this.resource = delivered.resource;
    this.sha256 = delivered.sha256;
  }
}

/** Owner may write; `0600` for secrets, `0755` for programs, `0644` for everything else. */
export type FileMode = "0600" | "0640" | "0644" | "0755";

export interface HostFileProps {
  /** The host that gets the file. */
  readonly host: Host;
  /** Absolute path on the host. */
  readonly path: string;
  /**
   * The text, or a function that gives it when the app is synthesized. Written as it is: `${` and `%{` mean
   * nothing, but tokens are resolved. Either this or `source`.
   */
  readonly content?: string | (() => string);
  /** An existing file that is copied, by its absolute path on the machine that synthesizes. */
  readonly source?: string;
  /**
   * Permissions.
   * @default "0644"
   */
  readonly mode?: FileMode;
  /**
   * What the file is; decides what activation does when it changes.
   * @default "other": nothing
   */
  readonly role?: FileRole;
  /**
   * Whether plans and logs must not show the content. State holds it in any case.
   * @default false
   */
  readonly sensitive?: boolean;
}

function template(content: string | (() => string)): string {
  return typeof content === "string"
    ? escapeTemplate(content)
    : Lazy.stringValue({ produce: () => escapeTemplate(content()) });
}

function refuseFile(at: string, path: string, content: unknown, source: string | undefined): void {
  const normal = /^\/(?!.*(?:\/\/|\/\.\.?(?:\/|$)))[^\u0000-\u001f\u007f]+$/;
  if (isKnown(path) && (!normal.test(path) || path.endsWith("/"))) {
    const allowed = "an absolute path of a file, without `//`, `.` or `..` segments";
    refuse([
      problem("config.bad-file-path", `${at}.path`, "is no path of a file", { received: path, allowed }),
    ]);
  }
  if ((content === undefined) === (source === undefined)) {
    const fix = "Give either `content` or `source`.";
    refuse([
      problem("config.missing-field", `${at}.content`, "is needed, or `source` instead of it", { fix }),
    ]);
  }
  if (source !== undefined && !existsSync(source)) {
    const fix = "Build or create the file first, or name another.";
    refuse([problem("files.unreadable", `${at}.source`, "does not exist", { received: source, fix })]);
  }
}
