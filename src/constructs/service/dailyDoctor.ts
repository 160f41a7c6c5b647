import type { Construct, IConstruct } from "constructs";
import { problem } from "../../model/index.js";
import { DOCTOR_TIMER, DOCTOR_UNIT, doctorServiceUnit, doctorTimerUnit } from "../../render/index.js";
import { refuse } from "../props/checks.js";
import { flag, type PropTable, text } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";
import type { IProxyService } from "../proxy/proxyInterfaces.js";
import { SystemdUnit, UNIT_NAME } from "../host/systemdUnit.js";

/** The daily check of a host by a systemd timer. */
export interface DailyDoctor {
  /**
   * Whether `portico-doctor.timer` runs `portico doctor` early every morning. The journal contains the problems;
   * `systemctl --failed` lists `portico-doctor.service` until a run finds no problems.
   * @default true
   */
  readonly enabled?: boolean;
  /**
   * Unit of the host that systemd starts when the check finds a problem, such as `mail-admin.service` or
   * `mail@portico-doctor.service` (`OnFailure=`). An activation fails if the host has no such unit.
   * @default - none
   */
  readonly onFailure?: string;
}

/** Options of constructs with a daily check of their host. */
export interface DoctorProps {
  /**
   * The daily check of the host.
   * @default - `portico doctor` runs early every morning; see {@link DailyDoctor}
   */
  readonly doctor?: DailyDoctor;
}

/** @internal */
export const DAILY_DOCTOR_PROPS: PropTable<DailyDoctor> = { enabled: flag, onFailure: text };

/** @internal Has a timer run `portico doctor` on the host of a service. */
export function addDoctor(at: IConstruct, service: IProxyService, doctor: DailyDoctor = {}): void {
  const { enabled = true, onFailure } = doctor;
  if (!enabled) return;
  if (
    onFailure !== undefined &&
    isKnown(onFailure) &&
    !(UNIT_NAME.test(onFailure) && !onFailure.includes("/"))
  ) {
    const more = { received: onFailure, allowed: "a name such as mail-admin.service" };
    refuse([
      problem("unit.bad-value", `${at.node.path}.doctor.onFailure`, "is not the name of a unit", more),
    ]);
  }
  const { host, nodePath, runtime, serviceUnit } = service;
  const scope = service as IConstruct as Construct;
  const { directory } = serviceUnit;
  const unit = () => doctorServiceUnit({ nodePath, runtime: runtime.path, onFailure });
  new SystemdUnit(scope, "DoctorUnit", { host, directory, name: DOCTOR_UNIT, unit });
  new SystemdUnit(scope, "DoctorTimer", { host, directory, name: DOCTOR_TIMER, unit: doctorTimerUnit() });
}
