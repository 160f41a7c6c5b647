import type { Construct } from "constructs";
import { formatProblem, type Problem, problem } from "../model/index.js";
import { DEFAULT_HOST_PATHS, renderUnit, type UnitDocument, unitProblems } from "../render/index.js";
import { refuse } from "./checks.js";
import type { Host } from "./host.js";
import { HostFile } from "./hostFile.js";
import { commandWords, guardStartVariant } from "./startVariantGuard.js";
import { checkAroundTokens, renderAroundTokens } from "./tokens.js";

/** A systemd unit file on a host; values are escaped, so that they mean what they say. */
export class SystemdUnit extends HostFile {
  /** Name of the unit. */
  readonly name: string;

  constructor(scope: Construct, id: string, props: SystemdUnitProps) {
    const { name, unit, directory = DEFAULT_HOST_PATHS.unitDirectory } = props;
    const document = typeof unit === "function" ? unit : () => unit;
    super(scope, id, {
      host: props.host,
      path: `${directory}/${name}`,
      content: () => renderAroundTokens(document(), renderUnit),
      role: "unit",
    });
    this.name = name;
    guardStartVariant(this, () => commandWords(document()));
    if (!UNIT_NAME.test(name)) {
      const allowed = "a name such as app.service, or app.service.d/name.conf for a drop-in";
      const message = "is no name of a unit";
      refuse([problem("unit.bad-value", `${this.node.path}.name`, message, { received: name, allowed })]);
    }
    const problems = (): Problem[] => this.problemsOf(document());
    if (typeof unit === "function")
      this.node.addValidation({ validate: () => problems().map(formatProblem) });
    else refuse(problems());
  }

  private problemsOf(unit: UnitDocument): Problem[] {
    // A drop-in may leave the command to the unit it belongs to.
    const dropIn = this.name.includes("/");
    return checkAroundTokens(unit, unitProblems)
      .problems.filter(
        (p) => !(dropIn && p.code === "unit.missing-command" && p.path === "Service.ExecStart"),
      )
      .map((p) => ({ ...p, path: `${this.node.path}.unit.${p.path}` }));
  }
}

// systemd.unit(5): up to 256 characters; a drop-in is one level deeper.
const UNIT_NAME =
  /^(?=.{1,256}$)[\w:.\\@-]+\.(?:service|socket|timer|path|target|mount)(?:\.d\/[\w:.\\@-]+\.conf)?$/;

export interface SystemdUnitProps {
  /** The host that gets the unit. */
  readonly host: Host;
  /** File name with its type: `app.service`, or `app.service.d/name.conf` for a drop-in. */
  readonly name: string;
  /**
   * Sections and directives, or a function that gives them when the app is synthesized. Control characters are refused
   * (`unit.bad-value`), as are a service without command (`unit.missing-command`) and the FastCGI start variant of the
   * web application (`unit.fastcgi-start`, spec 2.1).
   */
  readonly unit: UnitDocument | (() => UnitDocument);
  /**
   * Directory on the host.
   * @default "/etc/systemd/system"
   */
  readonly directory?: string;
}
