import type { Construct } from "constructs";
import { DEPLOYMENT_FILE } from "../../model/index.js";
import { applicationSettingsFiles } from "../../applications/index.js";
import { Activation, type ActivationProps } from "../activation.js";
import { deploymentOf, deploymentText } from "../deploymentDocument.js";
import type { HostDescription } from "../activationOptions.js";
import type { Host } from "../host.js";
import { HostFile } from "../hostFile.js";
import type { ProxyService } from "../proxyService.js";
import type { ApplicationSettings } from "./settings.js";
import type { ApplicationDaemons } from "./daemons.js";
import type { Firewall } from "../firewall.js";
import { daemonsOf, type FileSyncActivationProps } from "./activationProps.js";
import { FILE_SYNC_ROWS, fileSyncTrees, type MediaDirectories } from "../../applications/index.js";
import { networkOf } from "../frontEndParts.js";
import type { Mode } from "../mode.js";
import type { ReverseProxy } from "../reverseProxy.js";

/** What an activation takes from its front end. */
interface ActivatedFrontEnd extends Construct {
  readonly host: Host;
  readonly service: ProxyService;
  readonly settings: Pick<ApplicationSettings, "values">;
  readonly daemons?: ApplicationDaemons;
  readonly firewall?: Firewall;
  readonly media: MediaDirectories;
  readonly mode: Mode;
  readonly proxy: ReverseProxy;
}

/** @internal The activation of a front end. */
export const activateFrontEnd = (frontEnd: ActivatedFrontEnd, props: FileSyncActivationProps): Activation =>
  new Activation(frontEnd, "Activation", activationProps(frontEnd, props));

/** @internal Without one, the deployment is a file like any other: checks of the host read it. */
export function describeFrontEnd(frontEnd: ActivatedFrontEnd): void {
  new HostFile(frontEnd, "Deployment", {
    host: frontEnd.host,
    path: DEPLOYMENT_FILE,
    content: () => deploymentText(deploymentOf(frontEnd, activationProps(frontEnd, {}))),
    role: "other",
  });
}

function activationProps(frontEnd: ActivatedFrontEnd, props: FileSyncActivationProps): ActivationProps {
  const { daemons, firewall, service } = frontEnd;
  return {
    service,
    services: {
      daemons: daemonsOf({
        webApplication: daemons?.webApplication?.name,
        fileServer: daemons?.fileServer?.name,
        webdav: daemons?.webdav?.name,
        ...props.units,
      }),
      firewall: firewall?.unit.name,
    },
    describe: () => describe(frontEnd, props),
    doctor: props.doctor,
  };
}

function describe(frontEnd: ActivatedFrontEnd, props: FileSyncActivationProps): HostDescription {
  const { settings, database, probe, requireCertificate, fixMedia = false } = props;
  const edited = settings && {
    ...settings,
    files: applicationSettingsFiles(frontEnd.settings.values, settings.files),
  };
  return {
    ...(edited === undefined ? {} : { settings: edited }),
    trees: fileSyncTrees(frontEnd.media, fixMedia),
    rows: FILE_SYNC_ROWS,
    ...(database === undefined ? {} : { database }),
    network: networkOf(frontEnd),
    ...(probe === undefined ? {} : { probe }),
    ...(requireCertificate === undefined ? {} : { requireCertificate }),
  };
}
