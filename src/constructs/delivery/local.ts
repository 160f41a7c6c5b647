import { isAbsolute, normalize, resolve } from "node:path";
import type { TerraformResource } from "cdktf";
import type { Construct } from "constructs";
import { DEPLOYMENT_FILE, DEPLOYMENT_STORE } from "../../model/deployment.js";
import { problem } from "../../model/index.js";
import { documentCheck, LOST, quote, refuseLost, removalCheck } from "../../render/index.js";
import { refuse } from "../props/checks.js";
import type {
  DeliveredActivation,
  DeliveredFile,
  DeliveryHost,
  DeliveryOptions,
  DeliveryWay,
  FileResource,
} from "./way.js";
import { localFile } from "../providers/local.js";
import { flag, type PropTable, text } from "../props/propTable.js";
import { constructOf, dependOn, deploymentOf, onDestroy, TerraformData } from "./terraformData.js";

/** Options of a local delivery. */
export interface LocalDeliveryOptions extends DeliveryOptions {
  /**
   * Folder for the host's `/`. `"/"` installs the files on the machine that runs Terraform. A relative folder starts
   * at the project's folder, which contains the app's output folder (`cdktf.out`); the path in the stack is relative
   * too, so the stack is the same in every checkout. Must not be empty; `~` is not expanded.
   * @default - `out/` plus the host's construct path, such as `out/stack/files/Host`
   */
  readonly root?: string;
}

/** @internal */
export const LOCAL_DELIVERY_OPTIONS: PropTable<LocalDeliveryOptions> = { root: text, takeOver: flag };

/** From where Terraform runs, `cdktf.out/stacks/STACK`, to the folder that holds `cdktf.out`. */
const PROJECT = "${path.module}/../../..";

/**
 * Mode of directories that have to be made. Both providers make every missing parent with this one mode, with a
 * default of 0777 or 0700: the one would let any user add units, the other would hide the config from the
 * unprivileged user that serves it. Private files are private by their own mode.
 */
const DIRECTORY_MODE = "0755";

const LOST_HERE =
  "Nothing was changed, and services still run. Install Node 20.19 or later at that path, or run `terraform apply`, which writes a file again that Terraform delivered.";

/** @internal Made by `Delivery.local`. */
export class LocalDelivery implements DeliveryWay {
  readonly needsActivation = false;
  private readonly root: string | undefined;
  private readonly takeOver: boolean;

  constructor({ root, takeOver = false }: LocalDeliveryOptions) {
    this.takeOver = takeOver;
    if (root === undefined) return;
    if (root === "" || root.startsWith("~") || /[\u0000-\u001f\u007f]/.test(root) || /[$%]\{/.test(root)) {
      const allowed = "`/`, an absolute path, or a path relative to the project, without `~`, `${` and `%{`";
      const message = "is not the path of a folder";
      refuse([problem("host.bad-root", "Delivery.local.root", message, { received: root, allowed })]);
    }
    this.root = root;
  }

  onThisMachine(host: DeliveryHost, path: string): string {
    return resolve(this.place(host)) + path;
  }

  problemsOf(): [] {
    return [];
  }

  portOn(): undefined {
    return undefined;
  }

  leftOut(): this {
    return this;
  }

  login(): undefined {
    return undefined;
  }

  place(host: DeliveryHost): string {
    return normalize(this.root ?? `out/${host.node.path}`).replace(/(?<=.)\/$/, "");
  }

  deliver(scope: Construct, id: string, file: DeliveredFile): FileResource {
    const config = {
      sensitive: file.sensitive,
      filename: this.below(file.host, file.path),
      filePermission: file.mode,
      directoryPermission: DIRECTORY_MODE,
      ...(file.source === undefined ? { content: file.content } : { source: file.source }),
    };
    const resource = localFile(scope, id, config);
    return { resource, sha256: resource.contentSha256 };
  }

  activate(scope: Construct, activation: DeliveredActivation): TerraformResource {
    const { host, document: content, dependsOn } = activation;
    const whose = this.identity(host);
    const named = whose === "" ? "" : `${whose} --construct ${constructOf(host)}`;
    const { resource: document, sha256 } = this.deliver(scope, "DocumentFile", {
      ...activation,
      path: DEPLOYMENT_FILE,
      mode: "0640",
      content,
      sensitive: false,
    });
    const activate = `activate --document ${sha256}${named}${this.takeOver ? " --take-over" : ""}`;
    const store = this.below(host, DEPLOYMENT_STORE);
    const id = this.place(host) === "/" ? deploymentOf(host).id : undefined;
    // Terraform removes the files itself. Their services have to stop before that, so this resource is destroyed first.
    const taking = new TerraformData(scope, "Deactivation", {
      input: {
        command: this.command(activation, `deactivate${whose}`, removalCheck(store, id)),
      },
      provisioners: [onDestroy({ type: "local-exec", command: "${self.input.command}" })],
    });
    dependOn(taking, () => [document, ...dependsOn()]);
    return new TerraformData(scope, "Resource", {
      triggersReplace: { document: sha256 },
      dependsOn: [taking],
      provisioners: [
        {
          type: "local-exec",
          command: this.command(activation, activate, documentCheck(store, sha256)),
        },
      ],
    });
  }

  /** Options by which a machine knows its deployment. */
  private identity(host: DeliveryHost): string {
    return this.place(host) === "/" ? ` --identity ${deploymentOf(host).id}` : "";
  }

  /** @param check of what the command did, whatever the program says */
  private command({ host, node, runtime }: DeliveredActivation, command: string, check: string): string {
    const root = this.below(host, "") || "/";
    const isHost = root === "/";
    // Nothing below a folder can be assumed to be installed, or to be built for this machine.
    const programs = `${isHost ? quote(node.path) : "node"} ${quote(this.below(host, runtime.path))}`;
    const found = isHost ? `${LOST}if lost ${programs}; then ${refuseLost(LOST_HERE)}; fi\n` : "";
    return `set -eu\n${found}${programs} ${command} --root ${quote(root)}\n${check}`;
  }

  /** A path of the host as Terraform writes it. */
  private below(host: DeliveryHost, path: string): string {
    const place = this.place(host);
    if (place === "/") return path;
    return (isAbsolute(place) ? place : `${PROJECT}/${place}`) + path;
  }
}
