import {
  anyToHclTerraform,
  anyToTerraform,
  dependable,
  hashMapper,
  hashMapperHcl,
  type ITerraformDependable,
  Lazy,
  TerraformResource,
  type TerraformMetaArguments,
} from "cdktf";
import type { Construct } from "constructs";
import type { DeliveryHost } from "./way.js";

export interface TerraformDataConfig extends TerraformMetaArguments {
  /** Kept in the state, and known to provisioners as `self.input`. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** The resource is replaced when one of these changes. */
  readonly triggersReplace?: Readonly<Record<string, unknown>> | readonly unknown[];
}

/**
 * A `terraform_data`, for which no provider is needed. The class of the library (`DataResource`) runs `terraform
 * version` at each synth, for each resource again, which takes most of the synth's time, and fails where only OpenTofu
 * is installed. Terraform before 1.4 does not know the resource, and reports that in the plan.
 */
export class TerraformData extends TerraformResource {
  constructor(
    scope: Construct,
    id: string,
    private readonly config: TerraformDataConfig = {},
  ) {
    super(scope, id, {
      ...config,
      terraformResourceType: "terraform_data",
      terraformGeneratorMetadata: { providerName: "terraform" },
    });
  }

  /** Made by Terraform, another one with each resource. */
  get id(): string {
    return this.getStringAttribute("id");
  }

  protected override synthesizeAttributes(): Record<string, unknown> {
    return this.attributes(hashMapper(anyToTerraform));
  }

  protected override synthesizeHclAttributes(): Record<string, unknown> {
    return this.attributes(hashMapperHcl(anyToHclTerraform));
  }

  private attributes(mapped: (value: unknown) => unknown): Record<string, unknown> {
    const { input, triggersReplace } = this.config;
    return { input: mapped(input), triggers_replace: mapped(triggersReplace) };
  }
}

/** Represents the deployment of a host. Its id is the deployment's identity, in Terraform's state and on the host. */
export type DeploymentResource = TerraformResource & { readonly id: string };

const NAME = "Deployment";

/** The host's deployment, made with the first file. */
export function deploymentOf(
  host: DeliveryHost,
  make = () => new TerraformData(host, NAME),
): DeploymentResource {
  return (host.node.tryFindChild(NAME) as TerraformData | undefined) ?? make();
}

/** Whether anything is delivered to a host. */
export const isDelivered = (host: DeliveryHost): boolean => host.node.tryFindChild(NAME) !== undefined;

/** The deployment's name in messages, which pass through shells, templates and JSON. */
export const constructOf = (host: DeliveryHost): string => host.node.path.replaceAll(/[^\w./@+-]/g, "_");

/** Adds dependencies that are known only when the app is synthesized. */
export function dependOn(resource: TerraformResource, on: () => readonly ITerraformDependable[]): void {
  const addresses = (): string[] => on().map(dependable);
  resource.addOverride("depends_on", Lazy.listValue({ produce: addresses }));
}

/**
 * A provisioner that runs when the resource is destroyed. It may refer to nothing but `self`, so all of its values have
 * to be in the resource's `input`. (The types of cdktf know `when` for one kind of provisioner only.)
 */
export function onDestroy<P>(provisioner: P): P {
  return { ...provisioner, when: "destroy" };
}
