import type { ITerraformDependable, TerraformResource } from "cdktf";
import type { Construct } from "constructs";
import type { HostAddresses } from "../../model/host/host.js";
import type { Problem } from "../../model/index.js";
import type { Machine } from "../../render/index.js";

/** Options of every delivery. */
export interface DeliveryOptions {
  /**
   * Whether this deployment replaces another deployment (`activation.other-deployment`): that of another stack, or of
   * a renamed construct. Set this for one apply, then remove it. The other stack then no longer changes the host, and
   * destroying the other stack does not change the host. A local delivery needs the root `/`: a folder for inspection
   * has no owner.
   * @default false
   */
  readonly takeOver?: boolean;
}

/** What a delivery needs from the host it delivers to. */
export interface DeliveryHost extends Construct {
  readonly address: string;
  readonly sshPort?: number;
  readonly props: HostAddresses & { readonly sshPort?: number | false };
}

/** @internal What every way of getting files onto a host does. */
export interface DeliveryWay {
  /** Whether files take effect by activation only, so that every host needs one. */
  readonly needsActivation: boolean;
  /** The path of a host's file on the machine that synthesizes; undefined if the file is elsewhere. */
  onThisMachine(host: DeliveryHost, path: string): string | undefined;
  /** Names the machine or the folder that files of a host land on. */
  place(host: DeliveryHost): string;
  /** Problems that keep the files of a host from taking effect; called once everything is made. */
  problemsOf(host: DeliveryHost): readonly Problem[];
  /** Makes the resource that brings a file. */
  deliver(scope: Construct, id: string, file: DeliveredFile): FileResource;
  /** Port of the host's own address to which it connects; undefined if it does not, or another machine forwards it. */
  portOn(host: Pick<DeliveryHost, "address" | "sshPort">): number | undefined;
  /** How to log in to a host; undefined if that is not how files get there. */
  login(host: DeliveryHost): Login | undefined;
  /** The same way to a host that nothing may connect to. */
  leftOut(): DeliveryWay;
  /** Makes the resources that run `portico activate` and, on destroy, `portico deactivate`. */
  activate(scope: Construct, activation: DeliveredActivation): TerraformResource;
}

/** @internal How OpenSSH's client logs in to a host. */
export interface Login {
  /** Variables for {@link secretExchangeScript}, by the prefix of their names. */
  readonly variables: (prefix: string) => Readonly<Record<string, string>>;
  /** Created at the first connection to a machine; a new one means another machine, or one that was away. */
  readonly machine: TerraformResource & { readonly id: string };
}

/** @internal A file as a delivery gets it. */
export interface DeliveredFile {
  /** The host that gets it. */
  readonly host: DeliveryHost;
  /** Absolute path on the host, as a Terraform template. */
  readonly path: string;
  /** Four octal digits. */
  readonly mode: string;
  /** The text, as a Terraform template. Either this or `source`. */
  readonly content?: string;
  /** A file next to the synthesized stack. */
  readonly source?: string;
  /** Size of `source`. */
  readonly bytes?: number;
  /** The processor that it is for, if it is a program that runs on one only. */
  readonly machine?: Machine;
  /** Whether plans must not show the content. */
  readonly sensitive: boolean;
}

/** @internal */
export interface FileResource {
  readonly resource: TerraformResource;
  /** SHA-256 of the content, in hexadecimal digits; Terraform computes it. */
  readonly sha256: string;
}

/** @internal An activation as a delivery gets it. */
export interface DeliveredActivation {
  readonly host: DeliveryHost;
  /** The deployment document, as a Terraform template. */
  readonly document: string;
  /** Dependencies of the delivery. */
  readonly dependsOn: () => readonly ITerraformDependable[];
  readonly node: ActivationProgram;
  readonly runtime: ActivationProgram;
  /** Only while the host does not have this address. */
  readonly withoutAddress?: string;
}

/** @internal A program that activation runs with. */
export interface ActivationProgram {
  /** Path on the host, as a Terraform template. */
  readonly path: string;
  /** SHA-256 of its content if it comes with the deployment. */
  readonly sha256?: string;
}
