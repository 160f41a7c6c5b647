import type { Construct } from "constructs";
import { Activation } from "../activation.js";
import type { HostDescription } from "../activationOptions.js";
import type { Host } from "../host.js";
import type { ProxyService } from "../proxyService.js";
import type { ApplicationSettings } from "./settings.js";
import type { ApplicationDaemons } from "./daemons.js";
import type { Firewall } from "../firewall.js";
import type { FileSyncActivationProps } from "./activationProps.js";
import type { PortForward } from "../../model/host.js";

/** What an activation takes from its front end. */
interface ActivatedFrontEnd extends Construct {
  readonly host: Host;
  readonly service: ProxyService;
  readonly settings: Pick<ApplicationSettings, "values">;
  readonly daemons?: ApplicationDaemons;
  readonly firewall?: Firewall;
  readonly media: { readonly directory: string; readonly avatarDirectory?: string };
  readonly portForwards: readonly PortForward[];
  readonly exposedPorts: readonly number[];
  readonly loopbackPorts: readonly number[];
}

/** @internal The activation of a front end. */
export function activateFrontEnd(frontEnd: ActivatedFrontEnd, props: FileSyncActivationProps): Activation {
  const { daemons, firewall, service } = frontEnd;
  const units = {
    webApplication: daemons?.webApplication?.name,
    fileServer: daemons?.fileServer?.name,
    webdav: daemons?.webdav?.name,
    firewall: firewall?.unit.name,
    ...props.units,
  };
  return new Activation(frontEnd, "Activation", {
    service,
    services: Object.fromEntries(Object.entries(units).filter(([, unit]) => unit !== undefined)),
    describe: () => describe(frontEnd, props),
    doctor: props.doctor,
  });
}

function describe(frontEnd: ActivatedFrontEnd, props: FileSyncActivationProps): HostDescription {
  const { settings, database, probe, requireCertificate, fixMedia = false } = props;
  const { values } = frontEnd.settings;
  const { host } = frontEnd;
  return {
    ...(settings === undefined ? {} : { settings: { ...settings, values } }),
    media: { ...frontEnd.media, fix: fixMedia },
    ...(database === undefined ? {} : { database }),
    network: {
      addresses: [host.address, ...(host.ipv6Address === undefined ? [] : [host.ipv6Address])],
      portForwards: frontEnd.portForwards,
      dnsRecords: frontEnd.host.dnsRecords,
      exposedPorts: frontEnd.exposedPorts,
      loopbackPorts: frontEnd.loopbackPorts,
    },
    ...(probe === undefined ? {} : { probe }),
    ...(requireCertificate === undefined ? {} : { requireCertificate }),
  };
}
