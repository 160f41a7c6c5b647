import type { Construct } from "constructs";
import type { ApplicationDefinition } from "../../applications/index.js";
import type { SettingsFile } from "../../model/index.js";
import { Activation, type ActivationProps } from "../activation.js";
import { describeHost } from "../deploymentDocument.js";
import type { HostDescription } from "../activationOptions.js";
import { type FrontEndListeners, networkOf } from "../frontEndParts.js";
import type { IHost } from "../host.js";
import type { Mode } from "../mode.js";
import type { ProxyService } from "../proxyService.js";
import type { ReverseProxy } from "../reverseProxy.js";
import type { FileSyncActivationProps } from "./activationProps.js";

/** The parts of a front end that its activation uses. */
interface ActivatedFrontEnd extends Construct {
  readonly host: IHost;
  readonly service: ProxyService;
  readonly mode: Mode;
  readonly proxy: ReverseProxy;
  readonly listeners: FrontEndListeners;
}

/** @internal An application, and its settings files as they should be here; none if they are left to the user. */
export interface ActivatedApplication {
  readonly application: ApplicationDefinition;
  readonly settings?: readonly SettingsFile[];
}

/** @internal The activation of a front end. */
export const activateFrontEnd = (
  frontEnd: ActivatedFrontEnd,
  activated: ActivatedApplication,
  props: FileSyncActivationProps,
): Activation => new Activation(frontEnd, "Activation", activationProps(frontEnd, activated, props));

/** @internal The deployment of a front end without an activation. */
export const describeFrontEnd = (frontEnd: ActivatedFrontEnd, activated: ActivatedApplication): void =>
  describeHost(frontEnd, activationProps(frontEnd, activated, {}));

function activationProps(
  frontEnd: ActivatedFrontEnd,
  { application, settings }: ActivatedApplication,
  props: FileSyncActivationProps,
): ActivationProps {
  const { service } = frontEnd;
  const edited = settings?.map(({ name }) => name);
  return {
    service,
    services: {
      daemons: application.daemons?.map(({ restartOn, ...daemon }) => ({
        ...daemon,
        // A file that is not edited here restarts nothing.
        ...(restartOn === undefined
          ? {}
          : { restartOn: restartOn.filter((name) => edited?.includes(name) ?? true) }),
      })),
    },
    describe: () => describe(frontEnd, { application, settings }, props),
    doctor: props.doctor,
  };
}

function describe(
  frontEnd: ActivatedFrontEnd,
  { application, settings: files }: ActivatedApplication,
  props: FileSyncActivationProps,
): HostDescription {
  const { settings, database, probe, replay, requireCertificate } = props;
  return {
    ...(files === undefined ? {} : { settings: { ...settings, files } }),
    trees: application.trees,
    rows: application.rows,
    ...(database === undefined ? {} : { database }),
    network: networkOf(frontEnd),
    ...(probe === undefined ? {} : { probe }),
    ...(replay === undefined ? {} : { replay }),
    ...(requireCertificate === undefined ? {} : { requireCertificate }),
  };
}
