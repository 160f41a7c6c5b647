import type { TerraformResource } from "cdktf";
import type { DeliveryHost } from "./way.js";
import { TerraformData } from "./terraformData.js";

/** What stands for all that a host gets. Its id is the deployment's identity, in Terraform's state and on the host. */
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
