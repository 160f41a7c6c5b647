import { Lazy, type TerraformResource } from "cdktf";
import { Construct, type IConstruct } from "constructs";
import { freeId } from "../props/constructIds.js";
import { daemon, type DeploymentInput, parseDeployment, services } from "../../model/deployment.js";
import { formatProblem, type Problem, problem } from "../../model/index.js";
import type {
  DaemonUnit,
  DeploymentUnits,
  DescribedSettings,
  HostDescription,
} from "../host/activationOptions.js";
import {
  type DeployedParts,
  deploymentOf,
  deploymentText,
  filesOf,
  isDescription,
  noteDescription,
} from "../proxy/deploymentDocument.js";
import type { IHost } from "../host/host.js";
import type { HostFile } from "../host/hostFile.js";
import type { VirtualServer } from "../proxy/virtualServer.js";
import { addDoctor, DAILY_DOCTOR_PROPS, type DoctorProps } from "./dailyDoctor.js";
import { refuse } from "../props/checks.js";
import { PROXY_SERVICE } from "../props/instances.js";
import { kindsOf } from "../props/fieldTable.js";
import { any, fields, listOf, type PropTable, record, refuseProps, required } from "../props/propTable.js";
import { settingsFields } from "../../model/host/settings.js";
import type { IProxyService } from "../proxy/proxyInterfaces.js";
import { checkAroundTokens, escapeTemplate } from "../props/tokens.js";

/**
 * Puts everything that was delivered to a host into operation. `portico activate` checks the files, stops and starts
 * changed units, and probes the expected responses. If a response is not as expected, the host returns to the last
 * good state and the apply fails.
 *
 * The activation runs after all files of the host, including files that are added later.
 */
export class Activation extends Construct {
  /** The host that is activated. */
  readonly host: IHost;
  /** The resource that runs the activation. Resources that need a serving host depend on this resource. */
  readonly resource: TerraformResource;
  private readonly parts: DeployedParts;
  private readonly earlier: TerraformResource[] = [];
  private keepalived?: string;

  constructor(scope: Construct, id: string, props: ActivationProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, ACTIVATION_PROPS);
    this.host = props.service.host;
    refuseSecond(this);
    this.parts = noteDescription(props);
    // Descriptions that a front end without an activation left there.
    for (const { node } of filesOf(this, this.host).filter(isDescription)) {
      node.scope!.node.tryRemoveChild(node.id);
    }
    addDoctor(this, props.service, props.doctor);
    this.resource = this.activateBy(this, () => this.earlier);
    this.node.addValidation({ validate: () => this.problems.map(formatProblem) });
  }

  /** Activates the host only after a resource exists, such as the activation of another host. */
  after(resource: TerraformResource): void {
    this.earlier.push(resource);
  }

  /**
   * @internal Makes another resource with the same activation, but only while the host does not have an address. The
   * activation's own resource then has nothing left to do.
   */
  aheadWithout(address: string, scope: Construct, after: TerraformResource[]): TerraformResource {
    return this.activateBy(scope, () => after, address);
  }

  private activateBy(
    scope: Construct,
    after: () => readonly TerraformResource[],
    withoutAddress?: string,
  ): TerraformResource {
    const { service } = this.parts;
    return this.host.delivery.activate(scope, {
      host: this.host,
      document: Lazy.stringValue({ produce: () => this.document }),
      dependsOn: () => [...this.files.map((file) => file.resource), ...after()],
      runtime: { path: escapeTemplate(service.runtime.path), sha256: service.runtime.sha256 },
      node: { path: escapeTemplate(service.nodePath), sha256: service.nodeBinary?.sha256 },
      withoutAddress,
    });
  }

  /** @internal Names the unit of keepalived. */
  useKeepalived(unit: string): void {
    this.keepalived = unit;
  }

  /** All files of the host in this stack, sorted by path. */
  get files(): readonly HostFile[] {
    return filesOf(this, this.host);
  }

  /** The current deployment document; may contain tokens. */
  get deployment(): DeploymentInput {
    return deploymentOf(this, this.parts, this.keepalived);
  }

  private get document(): string {
    return escapeTemplate(deploymentText(this.deployment));
  }

  private get problems(): readonly Problem[] {
    const { problems } = checkAroundTokens(this.deployment, (deployment) => {
      const parsed = parseDeployment(deployment);
      return parsed.ok ? [] : parsed.problems;
    });
    const own = problems.map((p) => ({ ...p, path: `${this.node.path}.${p.path}` }));
    return [...own, ...unreadPageProblems(this.parts.service.proxy.virtualServers, this.files)];
  }
}

/** Files with error pages in the deployment whose changes the proxy would not notice. */
function unreadPageProblems(servers: readonly VirtualServer[], files: readonly HostFile[]): Problem[] {
  const pages = new Set(servers.flatMap(({ errorPageFiles }) => errorPageFiles.map(([, file]) => file)));
  return files
    .filter(({ path, role }) => role !== "page" && pages.has(path))
    .map(({ node, role }) =>
      problem("config.not-one-of", `${node.path}.role`, "is not the role of an error page", {
        received: role,
        allowed: '"page"',
        fix: 'Set `role: "page"`: activation then checks the page before it installs the page, and reloads the proxy.',
      }),
    );
}

/** Activations of an app by the place they activate. */
const placed = new WeakMap<IConstruct, Map<string, Activation>>();

/** Each activation would stop units that only the other one has. */
function refuseSecond(activation: Activation): void {
  const { host, node } = activation;
  const activations = placed.get(node.root) ?? new Map<string, Activation>();
  placed.set(node.root, activations);
  const place = host.delivery.place(host);
  const first = activations.get(place);
  if (first === undefined) {
    activations.set(place, activation);
    return;
  }
  const message = `activates the same place as ${first.node.path}`;
  refuse([problem("delivery.second-activation", node.path, message, { received: place })]);
}

/** Options of an activation. */
export interface ActivationProps extends DoctorProps {
  /** The service that runs the proxy on the host. */
  readonly service: IProxyService;
  /**
   * Units of the application's daemons, and the unit of a firewall that no `Firewall` of the host made. The activation
   * stops and starts a unit when the unit's settings change.
   * @default - no daemons; the unit of the host's `Firewall`
   */
  readonly services?: DeploymentUnits;
  /**
   * Further facts about the host: settings, trees, rows, database, network, and how the responses are checked. The
   * function is called when the app is synthesized. These facts take precedence over those of a front end whose service
   * is activated.
   * @default - those of the front end, if the service is one's; the expected responses are checked for a minute
   */
  readonly describe?: () => HostDescription;
}

/** @internal */
export const DAEMON_UNITS = listOf(fields<DaemonUnit>(kindsOf(daemon)));

/** @internal The document's schema checks the other fields. */
export const DESCRIBED_SETTINGS = fields<DescribedSettings>({
  ...kindsOf(settingsFields),
  files: required(listOf(record)),
});

const ACTIVATION_PROPS: PropTable<ActivationProps> = {
  service: required(PROXY_SERVICE),
  services: fields<DeploymentUnits>(kindsOf(services, "daemons", "firewall")),
  describe: any,
  doctor: fields(DAILY_DOCTOR_PROPS),
};
