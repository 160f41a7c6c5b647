import { addBans } from "./bansCommand.js";
import type { Command } from "commander";
import { addActivate } from "./activateCommand.js";
import { addCertificates } from "./certificatesCommand.js";
import { addCheck } from "./checkOptions.js";
import { addCompletion } from "./completionCommand.js";
import { addDoctor } from "./doctorCommand.js";
import { addExplain } from "./explainCommand.js";
import { addLog } from "./logCommand.js";
import type { CommandOutput } from "../output.js";
import { addMaintenance } from "./maintenanceCommand.js";
import { addNotify } from "./notifyCommand.js";
import { addPassword } from "./passwordCommand.js";
import { addPreview } from "./previewOptions.js";
import { addQuiesce } from "./quiesceCommand.js";
import { addReload } from "./reloadCommand.js";
import { addReplay } from "./replayCommand.js";
import { addResolve } from "./resolveCommand.js";
import { addSettings } from "./settingsCommand.js";
import { addStatus } from "./statusCommand.js";
import { addUpgrade } from "./upgradeCommand.js";
import { addUpstreams } from "./upstreamsCommand.js";
import { addWhy } from "./whyCommand.js";

/** Every command but `serve`, in the order of the help. A process that serves loads none of them. */
export function addCommands(program: Command, output: CommandOutput, done: (code: number) => void): void {
  addReload(program, output, done);
  addUpgrade(program, output, done);
  addStatus(program, output, done);
  addCertificates(program, output, done);
  addUpstreams(program, output, done);
  addBans(program, output, done);
  addMaintenance(program, output, done);
  addQuiesce(program, output, done);
  addNotify(program, output, done);
  addCheck(program, output, done);
  addResolve(program, output, done);
  addWhy(program, output, done);
  addLog(program, output, done);
  addReplay(program, output, done);
  addPassword(program, output, done);
  addPreview(program, output, done);
  addDoctor(program, output, done);
  addExplain(program, output, done);
  addActivate(program, output, done);
  addSettings(program, output, done);
  addCompletion(program, output);
}
