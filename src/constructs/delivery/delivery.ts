import type { TerraformResource } from "cdktf";
import type { Construct } from "constructs";
import type { Problem } from "../../model/index.js";
import type {
  DeliveredActivation,
  DeliveredFile,
  DeliveryHost,
  DeliveryWay,
  FileResource,
  Login,
} from "./way.js";
import { LOCAL_DELIVERY_OPTIONS, LocalDelivery, type LocalDeliveryOptions } from "./local.js";
import { DELIVERY } from "../props/instances.js";
import { refuseNew, refuseOptions } from "../props/propTable.js";
import { SSH_DELIVERY_OPTIONS, type SshDeliveryOptions } from "./connection.js";
import { sshProblems } from "./sshRules.js";
import { SshDelivery } from "./ssh.js";

/** How files reach a host. Each static method creates one kind of delivery. */
export class Delivery {
  private constructor(private readonly way: DeliveryWay) {
    refuseNew("Delivery", DELIVERY, way === undefined);
  }

  /**
   * Terraform writes the files on its own machine (`local_file`, `local_sensitive_file`): for use on that machine, or
   * into a folder for inspection and copying.
   */
  static local(options: LocalDeliveryOptions = {}): Delivery {
    refuseOptions("Delivery.local", options, LOCAL_DELIVERY_OPTIONS);
    return new Delivery(new LocalDelivery(options));
  }

  /**
   * Terraform uploads files to a remote host over ssh, each file only when its content changes. The files take effect
   * together when an {@link Activation} runs on the host. The host needs only an SSH server; see docs/deploying.md.
   */
  static ssh(options: SshDeliveryOptions = {}): Delivery {
    refuseOptions("Delivery.ssh", options, SSH_DELIVERY_OPTIONS, sshProblems);
    return new Delivery(new SshDelivery(options));
  }

  /** Whether files take effect only by an {@link Activation}. */
  get needsActivation(): boolean {
    return this.way.needsActivation;
  }

  /** @internal The path of a host's file on the machine that synthesizes; undefined if the file is elsewhere. */
  onThisMachine(host: DeliveryHost, path: string): string | undefined {
    return this.way.onThisMachine(host, path);
  }

  /** @internal Names the machine or the folder that files of a host land on. */
  place(host: DeliveryHost): string {
    return this.way.place(host);
  }

  /** @internal Problems that keep the files of a host from taking effect; called once everything is made. */
  problemsOf(host: DeliveryHost): readonly Problem[] {
    return this.way.problemsOf(host);
  }

  /** @internal Port of the host's own address to which it connects; undefined if there is none. */
  portOn(host: Pick<DeliveryHost, "address" | "sshPort">): number | undefined {
    return this.way.portOn(host);
  }

  /** @internal The same delivery to a host that nothing may connect to: resources are made, and do nothing. */
  leftOut(): Delivery {
    return new Delivery(this.way.leftOut());
  }

  /** @internal */
  login(host: DeliveryHost): Login | undefined {
    return this.way.login(host);
  }

  /** @internal */
  deliver(scope: Construct, id: string, file: DeliveredFile): FileResource {
    return this.way.deliver(scope, id, file);
  }

  /** @internal */
  activate(scope: Construct, activation: DeliveredActivation): TerraformResource {
    return this.way.activate(scope, activation);
  }
}
