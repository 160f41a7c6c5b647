import {
  type TerraformMetaArguments,
  type FileProvisioner,
  Fn,
  Lazy,
  type RemoteExecProvisioner,
  TerraformLocal,
  type TerraformResource,
  TerraformSelf,
  TerraformStack,
} from "cdktf";
import type { Construct, IConstruct } from "constructs";
import { DEPLOYMENT_STORE, INCOMING_DIRECTORY } from "../../model/deployment.js";
import { type Problem, problem } from "../../model/index.js";
import {
  activateScript,
  deactivateScript,
  draftOf,
  heredoc,
  type HostScriptsInput,
  LOGIN_DIRECTORY,
  LOGIN_DIRECTORY_SCRIPT_PATH,
  machineScript,
  prepareScript,
  programScript,
  receiveScript,
  REFUSE_OPEN_DIRECTORY,
  REMOVE_ENDED_SCRIPTS,
  removeLoginDirectory,
  REMOVE_UPLOAD,
  roomScript,
  rootScript,
  scriptOf,
  systemdScript,
  type UploadInput,
} from "../../render/index.js";
import { neededPrograms } from "./neededPrograms.js";
import { refuse } from "../props/checks.js";
import type {
  DeliveredActivation,
  DeliveredFile,
  DeliveryHost,
  DeliveryWay,
  FileResource,
  Login,
} from "./way.js";
import {
  openSshVariables,
  sshConnection,
  type SshDeliveryOptions,
  type SshFields,
  sshFields,
} from "./connection.js";
import { connectionConditions } from "./sshRules.js";
import {
  constructOf,
  dependOn,
  deploymentOf,
  type DeploymentResource,
  isDelivered,
  onDestroy,
  TerraformData,
} from "./terraformData.js";

/** The places of a deployment on its host, by the id of its resource. */
const placesOf = (id: string) => ({
  store: DEPLOYMENT_STORE,
  incoming: `${INCOMING_DIRECTORY}/${id}`,
  identity: { id },
});

/**
 * @internal Made by `Delivery.ssh`.
 *
 *     Deployment   one per host; its id is the deployment's identity, and its destroy removes everything
 *     Staging      one per machine; makes the directories for scripts and uploads, which no other user can enter
 *     file …       one each; uploads the content, under its hash and an id of the upload, when it changes
 *     activation   uploads the deployment document, and runs `portico activate`
 *
 * Everything depends on the first, so it is the last to be destroyed. Replacing the second delivers everything again,
 * and removes nothing. Nothing connects to a host that is left out: its resources exist, and do nothing.
 */
export class SshDelivery implements DeliveryWay {
  readonly needsActivation = true;
  private readonly activated = new WeakSet<DeliveryHost>();

  constructor(
    private readonly options: SshDeliveryOptions,
    private readonly isLeftOut = false,
  ) {}

  leftOut(): SshDelivery {
    return new SshDelivery(this.options, true);
  }

  onThisMachine(): undefined {
    return undefined;
  }

  portOn(host: Pick<DeliveryHost, "address" | "sshPort">): number | undefined {
    const { host: address, port } = sshFields(this.options, host);
    return address === host.address ? (port as number) : undefined;
  }

  place(host: DeliveryHost): string {
    const { host: address, port, bastionHost, bastionPort } = sshFields(this.options, host);
    // Behind another bastion, a private address is another machine.
    return `ssh://${bastionHost === undefined ? "" : `${bastionHost}:${bastionPort}/`}${address}:${port}`;
  }

  deliver(scope: Construct, _id: string, file: DeliveredFile): FileResource {
    const deployment = this.deployment(file.host, scope);
    const { content, sha256 } = contentOf(scope, file);
    const staging = this.staging(file.host, scope);
    const upload = this.uploadOf(deployment, staging);
    const resource = new TerraformData(scope, "Resource", {
      triggersReplace: {
        uploads: staging.id,
        path: file.path,
        mode: file.mode,
        sha256,
      },
      ...this.connecting(file.host, [
        ...(file.machine === undefined ? [] : [inline(machineScript(file.machine))]),
        ...(file.bytes === undefined
          ? []
          : [this.asRoot(heredoc(roomScript(upload, { path: file.path, bytes: file.bytes, sha256 })))]),
        ...this.upload(upload, { from: content, sha256 }),
      ]),
    });
    return { resource, sha256 };
  }

  activate(scope: Construct, activation: DeliveredActivation): TerraformResource {
    const { host, node, runtime, withoutAddress } = activation;
    const deployment = this.deployment(host, scope);
    this.activated.add(host);
    const document = new TerraformLocal(scope, "Document", activation.document);
    const places = this.scriptsInput(deployment, host);
    const sha256 = Fn.sha256(document.asString);
    // The hash is in the script: as part of the command it would be sensitive, and Terraform would show no output.
    const text = activateScript(places, { node, runtime, document: sha256, withoutAddress });
    const script = new TerraformLocal(scope, "Script", text).asString;
    const staging = this.staging(host, scope);
    const upload = this.uploadOf(deployment, staging);
    const resource = new TerraformData(scope, "Resource", {
      triggersReplace: { uploads: staging.id, document: sha256 },
      ...this.connecting(host, [
        // A separate script: Terraform prints all of an inline one when it fails.
        ...this.upload(
          upload,
          { from: { content: document.asString }, sha256 },
          { from: { content: script }, sha256: Fn.sha256(script), suffix: ".sh" },
        ),
        // sudo drops the variable with the address of the session.
        this.asRoot(`/bin/sh -eu ${scriptOf(upload)} "$SSH_CONNECTION"`, [REMOVE_ENDED_SCRIPTS]),
      ]),
    });
    dependOn(resource, () => activation.dependsOn());
    return resource;
  }

  login(host: DeliveryHost): Login {
    const fields = sshFields(this.options, host);
    const { sudo = false } = this.options;
    return {
      variables: (prefix) => ({
        ...openSshVariables(fields, prefix),
        [`${prefix}_BECOME`]: sudo ? "sudo -n" : "",
      }),
      machine: this.staging(host, host),
    };
  }

  /** The host's deployment as a whole; made with the first file that is delivered. */
  private deployment(host: DeliveryHost, scope: IConstruct): DeploymentResource {
    if (TerraformStack.of(scope) !== TerraformStack.of(host)) {
      const fix = "Define the host, its files and its activation in one stack.";
      const message = "is in a different stack from its host";
      refuse([problem("delivery.other-stack", scope.node.path, message, { received: host.node.path, fix })]);
    }
    return deploymentOf(host, () => this.newDeployment(host));
  }

  private newDeployment(host: DeliveryHost): TerraformData {
    const { whenDestroyed = "restore" } = this.options;
    const restores = whenDestroyed !== "keep" && !this.isLeftOut;
    const fields = Object.entries(sshFields(this.options, host)).filter(([, value]) => value !== undefined);
    const kept = fields.map(([name, value]) => [snakeCase(name), value]);
    const own = fields.map(([name]) => [name, TerraformSelf.getString(`input.${snakeCase(name)}`)]);
    const resource = new TerraformData(host, "Deployment", {
      // Kept for the destroy, which cannot look anything up.
      ...(restores ? { input: Object.fromEntries(kept) } : {}),
      // Terraform refuses an empty list.
      ...(restores ? { provisioners: this.restoring(Object.fromEntries(own)).map(onDestroy) } : {}),
    });
    const precondition = connectionConditions(this.options);
    if (precondition.length > 0) resource.addOverride("lifecycle.precondition", precondition);
    return resource;
  }

  /** Uploads take effect only by an activation, and nothing else would report a missing one. */
  problemsOf(host: DeliveryHost): Problem[] {
    if (!isDelivered(host) || this.activated.has(host)) return [];
    const message = "gets files over ssh, but no `Activation` installs them";
    return [problem("delivery.no-activation", host.node.path, message)];
  }

  /** Provisioners that run on destroy. */
  private restoring(own: SshFields): RemoteExecProvisioner[] {
    const purge = this.options.whenDestroyed === "purge";
    const places = placesOf(TerraformSelf.getString("id"));
    const script = this.asRoot(heredoc(deactivateScript(places, { purge })));
    const inline = [...script.inline!, removeLoginDirectory(places)];
    return this.inLoginDirectory(own, { ...script, inline });
  }

  private scriptsInput({ id }: DeploymentResource, host: DeliveryHost): HostScriptsInput {
    const { takeOver = false } = this.options;
    return { ...placesOf(id), identity: { id, construct: constructOf(host) }, takeOver };
  }

  /** Replaced for another machine, for a host that comes back, and for another user, whose home is another directory. */
  private staging(host: DeliveryHost, scope: IConstruct): DeploymentResource {
    const existing = host.node.tryFindChild("Staging");
    if (existing !== undefined) return existing as TerraformData;
    const deployment = this.deployment(host, scope);
    const supported = [rootScript(this.options.sudo === true), heredoc(systemdScript())];
    const produce = () => neededPrograms(host).map(programScript).join("");
    const script = heredoc(
      Lazy.stringValue({ produce }) + prepareScript(this.scriptsInput(deployment, host)),
    );
    const make = this.asRoot(script, supported);
    const { user = "root", machineId } = this.options;
    return new TerraformData(host, "Staging", {
      triggersReplace: {
        deployment: deployment.id,
        user,
        ...(machineId === undefined ? {} : { machine: machineId }),
        ...(this.isLeftOut ? { leftOut: true } : {}),
      },
      ...(this.isLeftOut ? {} : { provisioners: this.inLoginDirectory(sshFields(this.options, host), make) }),
    });
  }

  /** Makes the login user's directory, and then runs a script in it, or where the user chose to have scripts. */
  private inLoginDirectory(fields: SshFields, script: RemoteExecProvisioner): RemoteExecProvisioner[] {
    const connection = sshConnection(fields);
    if (this.options.scriptPath !== undefined) {
      const own = `install -d -m 0700 .portico ${LOGIN_DIRECTORY}`;
      return [{ ...script, connection, inline: ["set -e", REFUSE_OPEN_DIRECTORY, own, ...script.inline!] }];
    }
    return [...this.makingLoginDirectory(fields), { ...script, connection }];
  }

  private connecting(
    host: DeliveryHost,
    provisioners: (FileProvisioner | RemoteExecProvisioner)[],
  ): Pick<TerraformMetaArguments, "connection" | "provisioners"> {
    if (this.isLeftOut) return {};
    const fields = sshFields(this.options, host);
    return {
      connection: sshConnection(fields),
      provisioners: [...this.makingLoginDirectory(fields), ...provisioners],
    };
  }

  /** Only then can a script run, which says what else is missing on a host that was reinstalled. */
  private makingLoginDirectory(fields: SshFields): RemoteExecProvisioner[] {
    if (this.options.scriptPath !== undefined) return [];
    // Nothing runs this line: the path is the command.
    const connection = sshConnection({ ...fields, scriptPath: LOGIN_DIRECTORY_SCRIPT_PATH });
    return [{ ...inline(":"), connection }];
  }

  /**
   * Several uploads come in at a time, also of another apply, and two may have the same content: so each has the id that
   * Terraform has just made for its resource.
   */
  private uploadOf(deployment: DeploymentResource, staging: DeploymentResource): UploadInput {
    const { incoming } = placesOf(deployment.id);
    return {
      incoming,
      id: TerraformSelf.getString("id"),
      byUser: this.options.sudo === true,
      staging: `${staging.terraformResourceType}.${staging.friendlyUniqueId}`,
    };
  }

  private upload(upload: UploadInput, ...contents: Upload[]): (FileProvisioner | RemoteExecProvisioner)[] {
    const suffixes = contents.map(({ suffix = "" }) => suffix);
    return [
      ...contents.map(({ from, sha256, suffix }): FileProvisioner => {
        const destination = draftOf(upload, sha256, suffix);
        return goingOn({ type: "file", ...from, destination });
      }),
      this.asRoot(heredoc(receiveScript(upload, suffixes))),
    ];
  }

  private asRoot(command: string, before: readonly string[] = []): RemoteExecProvisioner {
    const become = this.options.sudo === true ? "sudo -n " : "";
    return inline("set -e", REMOVE_UPLOAD, ...before, become + command);
  }
}

const inline = (...lines: string[]): RemoteExecProvisioner => ({ type: "remote-exec", inline: lines });

/** Attributes of `self` have such names only. */
const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** What is uploaded under its hash. */
interface Upload {
  readonly from: Pick<FileProvisioner, "content" | "source">;
  readonly sha256: string;
  readonly suffix?: string;
}

/** A provisioner whose failure the next one reports. */
const goingOn = <P>(provisioner: P): P => ({ ...provisioner, on_failure: "continue" });

/**
 * The content for the file provisioner, and its hash. A text becomes a local value, so that Terraform both hashes and
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
