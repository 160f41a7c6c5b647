import {
  DataResource,
  type FileProvisioner,
  Fn,
  type RemoteExecProvisioner,
  type SSHProvisionerConnection,
  TerraformLocal,
  type TerraformResource,
  TerraformSelf,
  TerraformStack,
} from "cdktf";
import type { Construct, IConstruct } from "constructs";
import { DEPLOYMENT_STORE, INCOMING_DIRECTORY } from "../model/deployment.js";
import { problem } from "../model/index.js";
import { activateScript, deactivateScript, prepareScript } from "../render/index.js";
import { refuse } from "./checks.js";
import type { DeliveredActivation, DeliveredFile, DeliveryWay, FileResource } from "./deliveryWay.js";
import type { Host } from "./host.js";
import { dependOn, onDestroy } from "./provisioning.js";
import { sshConnection, type SshDeliveryOptions, sshFields, sshProblems } from "./sshConnection.js";

const PLACES = { store: DEPLOYMENT_STORE, incoming: INCOMING_DIRECTORY };
/** Where a user without root's rights uploads to, below the home directory. */
const STAGING = ".portico-incoming";

/**
 * @internal Made by `Delivery.ssh`.
 *
 *     Deployment   one a host; makes the directory for uploads, and takes everything away on destroy
 *     Staging      only with sudo; makes the user's own directory for uploads
 *     file …       one each; uploads the content, under its hash, when it changes
 *     activation   uploads the document that says what goes where, and runs `portico activate`
 *
 * Everything depends on the first, so it is the last to be destroyed; replacing it delivers everything again.
 */
export class SshDelivery implements DeliveryWay {
  readonly needsActivation = true;

  constructor(private readonly options: SshDeliveryOptions) {
    refuse(sshProblems(options));
  }

  deliver(scope: Construct, _id: string, file: DeliveredFile): FileResource {
    const deployment = this.deployment(file.host, scope);
    const { content, sha256 } = contentOf(scope, file);
    const resource = new DataResource(scope, "Resource", {
      triggersReplace: { deployment: deployment.id, path: file.path, mode: file.mode, sha256 },
      connection: this.connection(file.host),
      dependsOn: this.staging(file.host),
      provisioners: this.upload(scope, content, sha256),
    });
    return { resource, sha256 };
  }

  activate(scope: Construct, activation: DeliveredActivation): TerraformResource {
    const { host, node, runtime } = activation;
    const deployment = this.deployment(host, scope);
    const document = new TerraformLocal(scope, "Document", activation.document);
    const resource = new DataResource(scope, "Resource", {
      triggersReplace: { deployment: deployment.id, document: Fn.sha256(document.asString) },
      connection: this.connection(host),
      provisioners: [
        ...this.upload(scope, { content: document.asString }, "deployment.json"),
        // A script of its own: Terraform repeats an inline one in full when it fails.
        ...this.upload(scope, { content: activateScript(PLACES, { node, runtime }) }, "activate.sh"),
        // sudo keeps no variable that tells where the session comes in.
        this.asRoot(`/bin/sh -eu ${INCOMING_DIRECTORY}/activate.sh "$SSH_CONNECTION"`),
      ],
    });
    dependOn(resource, () => [...this.staging(host), ...activation.dependsOn()]);
    return resource;
  }

  /** The host's deployment as a whole; made by whatever is delivered first. */
  private deployment(host: Host, scope: IConstruct): TerraformResource & { readonly id: string } {
    if (TerraformStack.of(scope) !== TerraformStack.of(host)) {
      const fix = "Make the host, its files and its activation in one stack.";
      const message = "is in another stack than its host";
      refuse([problem("delivery.other-stack", scope.node.path, message, { received: host.node.path, fix })]);
    }
    const existing = host.node.tryFindChild("Deployment");
    if (existing !== undefined) return existing as DataResource;
    const { whenDestroyed = "restore", machineId } = this.options;
    const restores = whenDestroyed !== "keep";
    const fields = Object.entries(sshFields(this.options, host)).filter(([, value]) => value !== undefined);
    const kept = fields.map(([name, value]) => [snakeCase(name), value]);
    const own = fields.map(([name]) => [name, TerraformSelf.getString(`input.${snakeCase(name)}`)]);
    return new DataResource(host, "Deployment", {
      ...(machineId === undefined ? {} : { triggersReplace: { machine: machineId } }),
      // Kept for the destroy, which can look nothing up.
      ...(restores ? { input: Object.fromEntries(kept) } : {}),
      provisioners: [
        { ...this.asRoot(heredoc(prepareScript(PLACES))), connection: this.connection(host) },
        ...(restores
          ? [
              onDestroy({
                ...this.asRoot(
                  heredoc(deactivateScript(PLACES, { purge: whenDestroyed === "purge" })),
                  this.unstage(),
                ),
                connection: sshConnection(Object.fromEntries(own)),
              }),
            ]
          : []),
      ],
    });
  }

  /** Another user has another home, whatever was delivered before. */
  private staging(host: Host): TerraformResource[] {
    const { sudo = false, user = "root" } = this.options;
    if (!sudo) return [];
    const existing = host.node.tryFindChild("Staging");
    if (existing !== undefined) return [existing as DataResource];
    return [
      new DataResource(host, "Staging", {
        triggersReplace: { user },
        connection: this.connection(host),
        provisioners: [{ type: "remote-exec", inline: [`mkdir -p -m 0700 ${STAGING}`] }],
      }),
    ];
  }

  private connection(host: Host): SSHProvisionerConnection {
    return sshConnection(sshFields(this.options, host));
  }

  /** Terraform uploads several at a time, and two files may have the same content: each has a draft of its own. */
  private upload(
    scope: Construct,
    from: Pick<FileProvisioner, "content" | "source">,
    name: string,
  ): (FileProvisioner | RemoteExecProvisioner)[] {
    const destination = `${INCOMING_DIRECTORY}/${name}`;
    if (this.options.sudo !== true) return [{ type: "file", ...from, destination }];
    const staged = `${STAGING}/${scope.node.addr}-${name}`;
    const draft = `${INCOMING_DIRECTORY}/${scope.node.addr}.new`;
    const move = [
      `sudo -n install -m 0600 -o root -g root ${staged} ${draft}`,
      `sudo -n mv -f ${draft} ${destination}`,
      `rm -f ${staged}`,
    ];
    return [
      { type: "file", ...from, destination: staged },
      { type: "remote-exec", inline: [move.join(" && ")] },
    ];
  }

  private unstage(): string[] {
    return this.options.sudo === true ? [`rm -rf ${STAGING}`] : [];
  }

  private asRoot(command: string, before: readonly string[] = []): RemoteExecProvisioner {
    const become = this.options.sudo === true ? "sudo -n " : "";
    return { type: "remote-exec", inline: ["set -e", ...before, become + command] };
  }
}

/** Attributes of `self` have such names only. */
const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function heredoc(script: string): string {
  return `/bin/sh -eu <<'PORTICO'\n${script}PORTICO`;
}

/**
 * What the file provisioner uploads, and its hash. A text becomes a local value, so that Terraform both hashes and
 * sends it, whatever references it holds; a sensitive one makes its hash sensitive too.
 */
function contentOf(
  scope: Construct,
  { content, source }: DeliveredFile,
): { content: Pick<FileProvisioner, "content" | "source">; sha256: string } {
  if (source !== undefined) return { content: { source }, sha256: Fn.filesha256(source) };
  const text = new TerraformLocal(scope, "Content", content).asString;
  return { content: { content: text }, sha256: Fn.sha256(text) };
}
