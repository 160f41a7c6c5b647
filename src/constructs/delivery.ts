import { resolve } from "node:path";
import { File } from "@cdktf/provider-local/lib/file";
import { SensitiveFile } from "@cdktf/provider-local/lib/sensitive-file";
import type { TerraformResource } from "cdktf";
import type { Construct } from "constructs";
import { problem } from "../model/index.js";
import { refuse } from "./checks.js";

/** How files get onto a host. A closed choice: take one of the static methods. */
export abstract class Delivery {
  /**
   * Files are written by the machine that runs Terraform (`local_file`, `local_sensitive_file`): onto itself, or into
   * a folder to look at and to copy from.
   */
  static local(options: LocalDeliveryOptions = {}): Delivery {
    return new LocalDelivery(options);
  }

  /** @internal Makes the resource that puts the file onto the host. */
  abstract deliver(scope: Construct, id: string, file: DeliveredFile): TerraformResource;
}

export interface LocalDeliveryOptions {
  /**
   * Folder that stands for the host's `/`. `/` writes onto this machine; a relative folder is taken from where the
   * app is synthesized. Must not be empty and is not expanded (`~`).
   *
   * @default "/"
   */
  readonly root?: string;
}

/** @internal A file as a delivery gets it. */
export interface DeliveredFile {
  /** Absolute path on the host. */
  readonly path: string;
  /** Four octal digits. */
  readonly mode: string;
  /** The text, as a Terraform template. Either this or `source`. */
  readonly content?: string;
  /** A file beside the synthesized stack. */
  readonly source?: string;
  /** Whether plans must not show the content. */
  readonly sensitive: boolean;
}

/**
 * Mode of directories that have to be made. Both providers make every missing parent with this one mode, and set it
 * to 0777 or 0700 if left alone: the one would let anybody add units, the other would hide the config from the
 * unprivileged user that serves it. Private files are private by their own mode.
 */
const DIRECTORY_MODE = "0755";

class LocalDelivery extends Delivery {
  private readonly root: string;

  constructor({ root = "/" }: LocalDeliveryOptions) {
    super();

    if (root === "" || root.startsWith("~") || /[\u0000-\u001f\u007f]/.test(root) || /[$%]\{/.test(root)) {
      const allowed = "`/`, an absolute path, or a folder relative to where the app is synthesized";
      refuse([problem("host.bad-root", "Delivery.local.root", "is no folder", { received: root, allowed })]);
    }
    this.root = resolve(root);
  }

  override deliver(scope: Construct, id: string, file: DeliveredFile): TerraformResource {
    const config = {
      filename: (this.root === "/" ? "" : this.root) + file.path,
      filePermission: file.mode,
      directoryPermission: DIRECTORY_MODE,
      ...(file.source === undefined ? { content: file.content } : { source: file.source }),
    };
    return file.sensitive ? new SensitiveFile(scope, id, config) : new File(scope, id, config);
  }
}
