import { posix } from "node:path";
import { TerraformStack } from "cdktf";
import type { Construct, IConstruct } from "constructs";
import { DEPLOYMENT_FILE, type DeploymentInput, DEPLOYMENT_VERSION } from "../../model/deployment.js";
import { FIREWALL_UNIT } from "../../render/index.js";
import type { DeploymentUnits, HostDescription } from "../host/activationOptions.js";
import type { IHost } from "../host/host.js";
import { HostFile } from "../host/hostFile.js";
import { renderJsonAroundTokens, settleTokens } from "../props/tokens.js";
import type { IProxyService } from "./proxyInterfaces.js";

/** The parts that describe a deployment. */
export interface DeployedParts {
  readonly service: IProxyService;
  readonly services?: DeploymentUnits;
  readonly describe?: () => HostDescription;
}

/** @internal What a host gets, and how it should respond. */
export function deploymentOf(
  scope: IConstruct,
  { service, services = {}, describe }: DeployedParts,
  keepalived?: string,
): DeploymentInput {
  const files = filesOf(scope, service.host).filter((file) => !isDescription(file));
  const late = new Map(files.flatMap((file) => file.lateValues).map((one) => [JSON.stringify(one), one]));
  return settleTokens(scope, {
    version: DEPLOYMENT_VERSION,
    config: service.config.path,
    files: files.map(({ path, mode, sha256, role }) => ({ path, mode, sha256, role })),
    services: {
      proxy: { service: service.serviceUnit.name, socket: service.socketUnit.name },
      // A `Firewall` of the host, whichever construct made it.
      firewall: files.some(({ path }) => posix.basename(path) === FIREWALL_UNIT) ? FIREWALL_UNIT : undefined,
      ...services,
      keepalived,
    },
    ...(late.size === 0 ? {} : { lateValues: [...late.values()] }),
    expect: service.proxy.virtualServers.flatMap((server) => server.expectedRows()),
    ...describe?.(),
  } satisfies DeploymentInput);
}

/** The parts of described deployments, by host; a front end's are those of an activation that is added later, too. */
const described = new WeakMap<IHost, DeployedParts>();

/**
 * @internal Notes that a deployment of the host is described, by an activation or by a front end.
 *
 * @returns the parts together with those of a front end that described the same service before
 */
export function noteDescription(parts: DeployedParts): DeployedParts {
  const { service, services, describe } = parts;
  const before = described.get(service.host);
  const all: DeployedParts =
    before?.service !== service
      ? parts
      : {
          service,
          services: { ...before.services, ...services },
          describe: () => ({ ...before.describe?.(), ...describe?.() }),
        };
  described.set(service.host, all);
  return all;
}

/** @internal Whether expected responses of the host's proxy are in a deployment, so that something checks them. */
export const isDescribed = (host: IHost): boolean => described.has(host);

/** @internal Adds the deployment as a file like any other, if there is no activation: checks of the host read the file. */
export function describeHost(scope: Construct, parts: DeployedParts): void {
  noteDescription(parts);
  new HostFile(scope, "Deployment", {
    host: parts.service.host,
    path: DEPLOYMENT_FILE,
    content: () => deploymentText(deploymentOf(scope, parts)),
  });
}

/** @internal Whether a file is the deployment itself, of a front end without an activation. */
export const isDescription = ({ node, path }: HostFile): boolean =>
  path === DEPLOYMENT_FILE && node.id === "Deployment";

/** @internal The document around values that only Terraform knows. */
export const deploymentText = (deployment: DeploymentInput): string =>
  renderJsonAroundTokens(deployment, (value) => `${JSON.stringify(value, undefined, 2)}\n`);

/** @internal Every file of a host in the stack, sorted by path. */
export function filesOf(scope: IConstruct, host: IHost): HostFile[] {
  const constructs = TerraformStack.of(scope).node.findAll();
  const files = constructs.filter((c): c is HostFile => c instanceof HostFile && c.host === host);
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}
