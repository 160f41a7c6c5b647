import type { Construct } from "constructs";
import type { ApplicationDefinition } from "../../applications/index.js";
import type { SettingsFile } from "../../model/index.js";
import { Activation, type ActivationProps } from "../service/activation.js";
import { describeHost } from "../proxy/deploymentDocument.js";
import type { DaemonUnit, HostDescription } from "../host/activationOptions.js";
import { type FrontEndListeners, networkOf } from "./parts.js";
import type { IHost } from "../host/host.js";
import type { Mode } from "../proxy/mode.js";
import type { ProxyService } from "../service/proxyService.js";
import type { ReverseProxy } from "../proxy/reverseProxy.js";
import type { FrontEndActivationProps } from "./activationProps.js";

/** The parts of a front end that its activation uses. */
interface ActivatedFrontEnd extends Construct {
  readonly host: IHost;
  readonly service: ProxyService;
  readonly mode: Mode;
  readonly proxy: ReverseProxy;
  readonly listeners: FrontEndListeners;
  /** Further sites may be added until synthesis. */
  readonly sites: readonly { readonly placed: readonly { readonly activated: ActivatedApplication }[] }[];
}

/** @internal An application, and its settings files as they should be here; none if they are left to the user. */
export interface ActivatedApplication {
  /** Name of a further site. */
  readonly site?: string;
  readonly application: ApplicationDefinition;
  readonly settings?: readonly SettingsFile[];
}

/** @internal The activation of a front end. */
export const activateFrontEnd = (frontEnd: ActivatedFrontEnd, props: FrontEndActivationProps): Activation =>
  new Activation(frontEnd, "Activation", activationProps(frontEnd, props));

/** @internal The deployment of a front end without an activation. */
export const describeFrontEnd = (frontEnd: ActivatedFrontEnd): void =>
  describeHost(frontEnd, activationProps(frontEnd, {}));

function activationProps(frontEnd: ActivatedFrontEnd, props: FrontEndActivationProps): ActivationProps {
  const { service } = frontEnd;
  const activated = (): ActivatedApplication[] =>
    frontEnd.sites.flatMap((site) => site.placed.map((one) => one.activated));
  return {
    service,
    services: {
      get daemons() {
        const all = activated().filter(({ application }) => application.daemons !== undefined);
        return all.length === 0 ? undefined : all.flatMap(daemonsOf);
      },
    },
    describe: () => describe(frontEnd, activated(), props),
    doctor: props.doctor,
  };
}

function daemonsOf({ application, settings }: ActivatedApplication): DaemonUnit[] {
  const edited = settings?.map(({ name }) => name);
  return (application.daemons ?? []).map(({ restartOn, ...daemon }) => ({
    ...daemon,
    // A file that is not edited here restarts nothing.
    ...(restartOn === undefined
      ? {}
      : { restartOn: restartOn.filter((name) => edited?.includes(name) ?? true) }),
  }));
}

function describe(
  frontEnd: ActivatedFrontEnd,
  activated: readonly ActivatedApplication[],
  props: FrontEndActivationProps,
): HostDescription {
  const { settings, database, probe, replay, requireCertificate } = props;
  const edited = activated.flatMap(({ site, settings: files = [] }) =>
    files.map((one) => ({ ...one, ...of(site) })),
  );
  const hasFiles = activated.some(({ settings: files }) => files !== undefined);
  return {
    ...(hasFiles ? { settings: { ...settings, files: edited } } : {}),
    trees: together(activated, ({ application }) => application.trees),
    rows: together(activated, ({ site, application }) =>
      application.rows?.map((row) => ({ ...row, ...of(site) })),
    ),
    database,
    network: networkOf(frontEnd),
    probe,
    replay,
    requireCertificate,
  };
}

const of = (site: string | undefined) => site !== undefined && { site };

/** What the applications of all sites have of one kind; undefined if none has any. */
function together<T>(
  activated: readonly ActivatedApplication[],
  kind: (one: ActivatedApplication) => readonly T[] | undefined,
): readonly T[] | undefined {
  const all = activated.flatMap((one) => kind(one) ?? []);
  return activated.some((one) => kind(one) !== undefined) ? all : undefined;
}
