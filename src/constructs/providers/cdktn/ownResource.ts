import { type TerraformMetaArguments, TerraformResource } from "cdktf";
import type { Construct } from "constructs";
import { MAPS } from "../../../render/kubernetes/index.js";

/**
 * A resource of a provider whose package cdktn's registry may lack: arguments go to Terraform under its names, attributes
 * come back as references. Type and names are the provider's, so state is the same as with a package's resource.
 */
export class OwnResource extends TerraformResource {
  private readonly own: Record<string, unknown>;

  constructor(scope: Construct, id: string, type: string, config: object) {
    const { lifecycle, ...own } = config as TerraformMetaArguments;
    super(scope, id, {
      terraformResourceType: type,
      terraformGeneratorMetadata: { providerName: type.split("_")[0]! },
      lifecycle,
    });
    this.own = { ...own };
  }

  /** An argument as it was given. */
  protected argument(name: string): unknown {
    return this.own[name];
  }

  protected change(name: string, value: unknown): void {
    this.own[name] = value;
  }

  protected override synthesizeAttributes(): Record<string, unknown> {
    return renamed(this.own);
  }
}

function renamed(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      // Their keys are data.
      MAPS.includes(name) ? value : within(value),
    ]),
  );
}

function within(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(within);
  const isPlain =
    typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? renamed(value) : value;
}
