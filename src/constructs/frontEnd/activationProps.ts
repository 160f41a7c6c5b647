import type { InputOf } from "../../model/schema/inferred.js";
import { deploymentSchema } from "../../model/deployment.js";
import type {
  DatabaseConnection,
  DescribedSettings,
  ReplayGate,
  ResponseProbe,
} from "../host/activationOptions.js";
import { DAILY_DOCTOR_PROPS, type DoctorProps } from "../service/dailyDoctor.js";
import { kindsOf } from "../props/fieldTable.js";
import { fields, flag, type PropTable } from "../props/propTable.js";

/** Options of a front end's activation. */
export interface FrontEndActivationProps
  extends
    DoctorProps,
    Pick<InputOf<typeof deploymentSchema>, "database" | "probe" | "replay" | "requireCertificate"> {
  /**
   * Whether the activation edits the applications' settings files, or only compares them.
   * @default - only compares
   */
  readonly settings?: Pick<DescribedSettings, "apply">;
  readonly database?: DatabaseConnection;
  readonly probe?: ResponseProbe;
  readonly replay?: ReplayGate;
}

/** @internal */
export const ACTIVATION_PROPS: PropTable<FrontEndActivationProps> = {
  settings: fields<Pick<DescribedSettings, "apply">>({ apply: flag }),
  ...kindsOf(deploymentSchema, "database", "probe", "replay", "requireCertificate"),
  doctor: fields(DAILY_DOCTOR_PROPS),
};
